import type { Clock } from '../kernel/clock.ts'
import type { Log } from '../kernel/log.ts'
import type { Nanos } from '../kernel/money.ts'
import type { RecognitionStore } from '../keys/identity.ts'
import type { KeyStore } from '../keys/key-store.ts'
import type { TokenCounts } from '../ledger/call-columns.ts'
import type { LedgerStore } from '../ledger/ledger-store.ts'
import type { RequestLogStore } from '../ledger/request-log.ts'
import type { RefusedCalls, WaitingCalls } from '../ledger/unsent-calls.ts'
import type { TokenCounter } from '../metering/token-counter.ts'
import type { Surface } from '../providers/surface.ts'
import type { Afterwards } from './afterwards.ts'
import type { ByteBudget } from './byte-budget.ts'
import type { IdentifyParts } from './identify.ts'
import type { KeyShares } from './key-shares.ts'
import type { Lines } from './lines.ts'
import type { OutputSpeeds } from './output-speed.ts'
import type { Pricer } from './pricer.ts'
import type { ReadOptions } from './read.ts'
import type { OnLeave } from './read-on.ts'
import type { Settler } from './settle.ts'
import type { Upstream } from './upstream-pool.ts'

/** What the data plane works with. Made once by the composition root, the same for every request. */
export interface Gateway {
  readonly clock: Clock
  readonly log: Log
  readonly store: RecognitionStore & LedgerStore & RequestLogStore & Pick<KeyStore, 'getKey'>
  readonly identify: IdentifyParts
  readonly reading: ReadOptions
  readonly upstreams: Readonly<Record<Surface, Upstream | null>>
  readonly stateful: 'pass' | 'refuse'
  /** Whether endpoints that hand out upstream credentials are served. */
  readonly minting: 'pass' | 'refuse'
  readonly inFlight: InFlight
  /** What each key takes of this node. */
  readonly keyShares: KeyShares
  /** While it is full nothing is admitted: what room there is belongs to what is in flight. */
  readonly disk: { readonly isFull: boolean }
  /** What goes on after its call was answered. */
  readonly afterwards: Afterwards
  /** Where calls wait for room under a cap or for credit. */
  readonly lines: Lines
  /** Those of them that wait now, for whoever asks what became of a call. */
  readonly waitingCalls: WaitingCalls
  /** Where records of refused calls go. */
  readonly refusedCalls: RefusedCalls
  /** Told of every call that has ended or was refused, when all is done; null where nobody watches. */
  readonly showCall: ShowCall | null
  /** What the logged bodies of all calls may take together. */
  readonly bodiesBytesMax: number
  /** `settled` lets calls in flight pass a cap; `exact` never lets more than one. */
  readonly budgetMode: 'exact' | 'settled'
  readonly pricer: Pricer
  readonly settler: Settler
  readonly tokenCounter: TokenCounter
  /** Memory for JSON replies that are held back until they are whole. */
  readonly heldReplies: ByteBudget
  /** Whether chat streams are asked for their usage in the client's place. */
  readonly injectUsage: boolean
  /** What becomes of a call upstream whose client left. */
  readonly onLeave: OnLeave
  /** How fast models write here. */
  readonly outputSpeeds: OutputSpeeds
  /** Tells tests that kill the process how far a call has come. Does nothing otherwise. */
  reached(point: CallPoint): void
}

/** Must not fail, and must not wait for anybody. */
export type ShowCall = (call: ShownCall) => void

/** A call for the eyes of whoever sits at the terminal. */
export interface ShownCall {
  readonly atMs: number
  readonly method: string
  readonly path: string
  readonly model: string | null
  readonly status: number | null
  /** Of a refusal. */
  readonly code: string | null
  readonly tokens: TokenCounts | null
  readonly costNanos: Nanos
  readonly ms: number
}

export type CallPoint = 'admitted' | 'before_send' | 'first_byte' | 'before_settle' | 'settled'

/** How many calls are upstream now. Bounds what a flood can make us open. */
export interface InFlight {
  count: number
  preflights: number
}
