import type { CallRecord } from '../ledger/call.ts'
import type { Metered } from '../metering/meter.ts'
import type { ReplyTimes } from './silence.ts'

/**
 * How a call ended. `left`: the client left early. `broken`: upstream broke off. `unsent`: upstream cannot have the whole
 * request, so it did nothing.
 */
export type CallEnding = 'complete' | 'left' | 'broken' | 'unsent'

/** What a carrier saw of a call. The same evidence gives the same bill. */
export interface Evidence {
  readonly end: CallEnding
  /** Null: upstream did not answer. */
  readonly answer: AnswerHead | null
  /** The result of the meter. Null for an error, and for a reply that costs nothing. */
  readonly metered: Metered | null
  /** Bytes of the reply that were sent to the client. */
  readonly delivered: number
  readonly times: ReplyTimes & { readonly elapsedMs: number }
  readonly stored?: StoredResponse | null
}

export interface AnswerHead {
  readonly status: number
  readonly contentType: string
  readonly upstreamRequestId: string | null
}

/** A stored response whose stream was cut. `deferred`: still running, billed later. `unstated`: ended without usage. */
export type StoredResponse =
  | { readonly kind: 'stated'; readonly metered: Metered }
  | ({ readonly kind: 'deleted' } & HoldFigures)
  | { readonly kind: 'deferred' | 'missing' | 'unstated' }

export type HoldFigures = Pick<CallRecord, 'holdNanos' | 'holdListNanos'>

/** What the record of a call says about its bytes and times. */
export interface Transfer {
  readonly streamed: boolean
  readonly bytesIn: number
  readonly bytesOut: number
  readonly upstreamMs: number
  readonly overheadMs: number
}

export const NOTHING_TRANSFERRED: Transfer = {
  streamed: false,
  bytesIn: 0,
  bytesOut: 0,
  upstreamMs: 0,
  overheadMs: 0,
}
