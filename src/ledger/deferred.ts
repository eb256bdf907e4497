import type { Nanos } from '../kernel/money.ts'
import type { ObjectKind, Surface } from '../kernel/vocabulary.ts'
import type { CallRecord } from './call.ts'

/**
 * Calls whose cost comes later. The batch or background response that such a call creates upstream is its **object**.
 * Until the object states its cost, the call is `deferred`: open, with its hold.
 */

/** An object belongs to the first call that created it. A later call that gets the same object is not deferred. */
export interface ObjectName {
  readonly surface: Surface
  /** Whose credential created the object: the account's id, or empty for the installation's. */
  readonly scope: string
  readonly objectId: string
}

/** From the reply that created the object. */
export interface Deferral
  extends ObjectName,
    Pick<CallRecord, 'requestId' | 'streamed' | 'upstreamRequestId' | 'bytesIn' | 'bytesOut'> {
  readonly kind: ObjectKind
  readonly dueInMs: number
  readonly atMs: number
  readonly status: number
  readonly upstreamMs: number
  readonly overheadMs: number
}

/** An object that is not settled, with the call that created it. */
export interface DeferredObject extends ObjectName {
  readonly kind: ObjectKind
  readonly call: CallRecord
}

/** One record per model of a batch. Its id is derived from the parent's, so a retry finds it. */
export interface ChildCall {
  readonly requestId: string
  readonly parentId: string
  readonly model: string | null
  /** How the record is rated: by its own model, or by one that the batch names. */
  readonly rating: string
  readonly requests: number
  /** The cost at which the record will be settled. That part of the batch's hold becomes the record's hold. */
  readonly costNanos: Nanos
  readonly listNanos: Nanos
}

/** An unsettled record of a batch, left by a process that ended after opening it. */
export type OpenChild = Pick<CallRecord, 'requestId' | 'holdNanos' | 'holdListNanos'>
