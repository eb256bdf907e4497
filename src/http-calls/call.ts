import type { CountableInput } from '../calls/estimates.ts'
import type { KeyShare } from '../calls/key-shares.ts'
import type { CallPlan } from '../calls/pricer.ts'
import type { Exchange } from '../http/exchange.ts'
import type { Upstream } from '../http/upstream-connection.ts'
import type { Target } from '../http/validate-head.ts'
import type { Surface } from '../kernel/vocabulary.ts'
import type { Admission } from '../ledger/call.ts'
import type { Endpoint } from '../providers/endpoint.ts'
import type { ReadBody } from './read.ts'

/** A request with a key, from its head to its bill. Each phase adds its results. */
export interface Call {
  readonly exchange: Exchange
  readonly target: Target
  readonly surface: Surface
  readonly endpoint: Endpoint | null
  readonly digest: Buffer
  /** Request id of the WebSocket handshake, on the handshake itself and on its turns; null for other calls. */
  readonly socketId: string | null
}

export interface IdentifiedCall extends Call {
  readonly upstream: Upstream
  readonly share: KeyShare
}

export interface ReadCall extends IdentifiedCall {
  readonly read: ReadBody
  readonly request: CountableInput
}

export interface PlannedCall extends ReadCall {
  readonly plan: CallPlan
}

/** A call after `admit`. It has a hold, which must be closed however the call ends. */
export interface AdmittedCall extends PlannedCall {
  readonly admission: Admission & { readonly kind: 'admitted' }
}
