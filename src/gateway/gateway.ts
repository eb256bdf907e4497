import type { Clock } from '../kernel/clock.ts'
import type { Log } from '../kernel/log.ts'
import type { RecognitionStore } from '../keys/recognition.ts'
import type { LedgerStore } from '../ledger/ledger-store.ts'
import type { Surface } from '../providers/surface.ts'
import type { IdentifyParts } from './identify.ts'
import type { ReadOptions } from './read.ts'
import type { Upstream } from './upstream.ts'

/** What the data plane works with. Made once by the composition root, the same for every request. */
export interface Gateway {
  readonly clock: Clock
  readonly log: Log
  readonly store: RecognitionStore & LedgerStore
  readonly identify: IdentifyParts
  readonly reading: ReadOptions
  readonly upstreams: Readonly<Record<Surface, Upstream | null>>
  readonly stateful: 'pass' | 'refuse'
  readonly inFlight: InFlight
}

/** How many calls are upstream now. Bounds what a flood can make us open. */
export interface InFlight {
  count: number
}
