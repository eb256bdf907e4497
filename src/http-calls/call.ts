import type { Ask, Asked } from '../calls/ask.ts'
import type { Hold } from '../calls/hold.ts'
import type { KeyShare } from '../calls/key-shares.ts'
import type { Exchange } from '../http/exchange.ts'
import type { RawHeaders } from '../http/raw-headers.ts'
import type { Upstream } from '../http/upstream-connection.ts'
import type { Target } from '../http/validate-head.ts'
import type { ReadBody } from './read.ts'

/** A request with a key on a proxied path. */
export interface Call extends Asked {
  readonly exchange: Exchange
  readonly target: Target
}

/** A call that may go upstream, whatever carries it: its hold is on disk, and closes however the call ends. */
export interface CarriedCall {
  readonly hold: Hold
  readonly share: KeyShare
  readonly upstream: Upstream
  /** The headers of the request; of the handshake, for a turn. */
  readonly headers: RawHeaders
}

/** A call over HTTP that may go upstream. */
export interface AdmittedCall extends Call, CarriedCall {
  readonly read: ReadBody
}

/** A handshake whose socket may carry turns: each turn asks for itself. */
export interface Handshake extends Call {
  readonly ask: Ask
  readonly share: KeyShare
  readonly upstream: Upstream
}
