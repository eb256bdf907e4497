import type { Nanos } from '../kernel/money.ts'
import type { CallFlag, CallState } from '../kernel/vocabulary.ts'
import type { CallRecord } from './call.ts'

/** A member that is null does not filter. */
export interface CallFilter {
  readonly accountId: string | null
  readonly keyId: string | null
  /** The calls with the keys of this person. */
  readonly personId?: string | null
  /** Time of admission: from `fromMs`, before `toMs`. */
  readonly fromMs: number | null
  readonly toMs: number | null
  readonly model: string | null
  /** HTTP status. */
  readonly status: number | null
  readonly state: CallState | null
  readonly minCostNanos: Nanos | null
  readonly flag: CallFlag | null
  /** The child records of the call with this id: a batch has one for each model. */
  readonly parentId?: string | null
  /** The turns of the WebSocket whose handshake has this id, and the handshake. */
  readonly socketId?: string | null
  readonly sessionId?: string | null
}

/** May have fewer calls than requested without being the last: one query reads a bounded number of records. */
export interface CallPage {
  readonly calls: readonly CallRecord[]
  /** The id of the last call that was read. The log is ordered by id, newest first. */
  readonly next: string | null
}

/** The compressed bodies of a call. Stored only for keys with `log_requests`. */
export interface CallBodies {
  readonly requestId: string
  readonly request: LoggedBody | null
  readonly response: LoggedBody | null
  readonly atMs: number
}

export interface LoggedBody {
  readonly contentType: string | null
  /** With zstd. */
  readonly compressed: Uint8Array
  /** The length of the whole body, before it was cut and compressed. */
  readonly lengthBytes: number
  readonly truncated: boolean
}

/** A refused call. The database finds the key by its digest, and stores nothing for an unknown key. */
export interface RefusedCall
  extends Pick<CallRecord, CallMember | 'modelAsked' | 'userAgent' | 'socketId' | 'sessionId'> {
  readonly digest: Uint8Array
  readonly endedAtMs: number
  /** HTTP status. */
  readonly status: number
  readonly code: string
  /** The model has no price, and may exist: clients also invent names. */
  readonly isUnpriced: boolean
}

type CallMember = 'requestId' | 'startedAtMs' | 'method' | 'path' | 'surface' | 'clientIp'

/** A portion of the calls of months that begin before `beforeMs`, in the order of their ids. */
export interface RemoveCalls {
  readonly beforeMs: number
  /** The last id of the portion before. */
  readonly after: string
  readonly limit: number
  readonly node: string
  readonly atMs: number
}

/** `next`: where the next portion begins; null: this was the last. */
export type RemovedCalls =
  | { readonly kind: 'removed'; readonly calls: number; readonly next: string | null }
  | { readonly kind: 'other_node' }
