import type { Core } from '../calls/core.ts'
import type { BackgroundQueue, ByteBudget, KeyShares } from '../calls/key-shares.ts'
import type { Exchange } from '../http/exchange.ts'
import type { Upstream } from '../http/upstream-connection.ts'
import type { Surface } from '../kernel/vocabulary.ts'
import type { RefusedCalls } from '../ledger/unsent-calls.ts'
import type { Deferrals } from '../objects/deferrals.ts'
import type { OpenSockets } from '../sockets/open-sockets.ts'
import type { Store } from '../store/store.ts'
import type { CallCounts } from '../telemetry/call-counts.ts'
import type { ObserveCall } from '../telemetry/call-log.ts'
import type { OwnUpstreams } from './own-upstreams.ts'
import type { CredentialOptions } from './parse-credential.ts'
import type { ReadOptions } from './read.ts'

/** The composition root creates them once for all requests. */
export interface Gateway extends Core {
  readonly store: Store
  /** Generates ids for socket turns. Every other call has the id of its exchange. */
  nextRequestId(): string
  readonly credentials: CredentialOptions
  readonly reading: ReadOptions
  readonly upstreams: Readonly<Record<Surface, Upstream | null>>
  readonly ownUpstreams: OwnUpstreams
  readonly stateful: 'pass' | 'refuse'
  readonly isMaintenance: boolean
  /** Whether people sign in, so that coding agents find their own paths here. */
  readonly hasSignIn: boolean
  /** Whether endpoints that issue upstream credentials are served. */
  readonly minting: 'pass' | 'refuse'
  /** The calls and preflights that are upstream now. Their number is limited, which limits connections. */
  readonly inFlight: { count: number; preflights: number }
  readonly sockets: OpenSockets
  readonly keyShares: KeyShares
  readonly background: BackgroundQueue
  readonly refusedCalls: RefusedCalls
  readonly counts: CallCounts
  /** Receives every call that ended or was refused, for the terminal, the log and traces; null if all are off. */
  readonly observeCall: ObserveCall | null
  readonly bodiesBytesMax: number
  /** Whether the address and the user agent of a client are recorded. */
  readonly recordsClients: boolean
  readonly deferrals: Deferrals
  readonly bufferedReplies: ByteBudget
  /** Whether the client uses TLS, for URLs that are rewritten to this gateway; null if none are. */
  readonly isSecure: ((exchange: Exchange) => boolean) | null
  readonly injectUsage: boolean
  readonly onLeave: OnLeave
  /** Called at the given points of a call. Tests use it to kill the process there. */
  reached(point: CallPoint): void
}

/** When a client leaves, `cancel` cancels the call if its usage can be derived; `finish` reads it to its end. */
export type OnLeave = 'cancel' | 'finish'

export type CallPoint = 'admitted' | 'before_send' | 'first_byte' | 'before_settle' | 'settled'
