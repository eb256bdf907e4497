import type { Nanos } from '../kernel/money.ts'
import type { CallFlag, CallState, Surface } from '../kernel/vocabulary.ts'
import type { CallRecord } from './call.ts'

/** The log of calls: a metadata record of every call, stored as long as the ledger. */

/** Which calls are meant. A member that is null filters nothing. */
export interface CallFilter {
  /** Null: all accounts. */
  readonly accountId: string | null
  readonly keyId: string | null
  /** The instant of admission: from `fromMs` on, and before `toMs`. */
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
}

/** A position in the log, which is ordered by the instant of admission and then by id, newest first. */
export interface CallCursor {
  readonly startedAtMs: number
  readonly requestId: string
}

/**
 * A page of the log. It may have fewer calls than were asked for, or none, and still not be the last page: one query reads
 * a bounded number of records, so that a rare filter over millions of calls does not delay other queries.
 */
export interface CallPage {
  readonly calls: readonly CallRecord[]
  /** The cursor of the next page, or null at the end. */
  readonly next: CallCursor | null
}

/** The bodies of a call, compressed. Stored only for keys that have logging switched on. */
export interface CallBodies {
  readonly requestId: string
  readonly request: LoggedBody | null
  readonly response: LoggedBody | null
  readonly atMs: number
}

export interface LoggedBody {
  readonly contentType: string | null
  /** zstd. */
  readonly compressed: Uint8Array
  /** The length of the whole body, before it was cut and compressed. */
  readonly lengthBytes: number
  /** Only the beginning was stored. */
  readonly truncated: boolean
}

/** A call that was refused. The store finds the key by its digest, and stores no call of an unknown key. */
export interface RefusedCall {
  readonly requestId: string
  readonly digest: Uint8Array
  readonly startedAtMs: number
  readonly endedAtMs: number
  readonly method: string
  readonly path: string
  readonly surface: Surface
  readonly modelAsked: string | null
  /** HTTP status. */
  readonly status: number
  readonly code: string
  readonly clientIp: string
  readonly userAgent: string | null
  readonly socketId: string | null
}

/** Wakes requests that wait for a call to be settled on this node. */
export interface SettlementWatch {
  settled(requestId: string): void
  /** Resolves when the call is settled here, or after the time, whichever comes first. */
  wait(requestId: string, forMs: number): { readonly done: Promise<void>; stop(): void }
}
