import type { Nanos } from '../kernel/money.ts'
import type { ObjectKind, Surface } from '../kernel/vocabulary.ts'
import type { CallRecord } from './call.ts'

/**
 * Calls whose cost comes later. The batch or background response that such a call creates upstream is its **object**. Until
 * the object states its cost, the call is `deferred`: open, with its hold.
 */

/** An object by upstream's id. An object belongs to one call: a second call that is given the id defers nothing. */
export interface ObjectName {
  readonly surface: Surface
  /** The credential that reaches the object: the account's id for its own, empty for the installation's. */
  readonly scope: string
  readonly objectId: string
}

/** The facts from the answer to the call that created the object. */
export interface Deferral extends ObjectName {
  readonly requestId: string
  readonly kind: ObjectKind
  readonly dueInMs: number
  readonly atMs: number
  readonly status: number
  readonly streamed: boolean
  readonly upstreamMs: number
  readonly overheadMs: number
  readonly upstreamRequestId: string | null
  readonly bytesIn: number
  readonly bytesOut: number
}

/** A call that created an object, and the credential that reaches the object. */
export type CallOfObject = Pick<Deferral, 'requestId' | 'surface' | 'scope'>

/** An object that is not settled, with the call that created it. */
export interface DeferredObject extends ObjectName {
  readonly kind: ObjectKind
  readonly call: CallRecord
}

/** One record for each model of a batch. Its id follows from the parent's, so that a repetition finds the record. */
export interface ChildCall {
  readonly requestId: string
  readonly parentId: string
  readonly model: string | null
  /** How the record is rated: as a request for its model, or for one that the batch names. */
  readonly rating: string
  readonly requests: number
  /** The cost at which the record will be settled; the same amount of the batch's hold becomes the record's own. */
  readonly costNanos: Nanos
  readonly listNanos: Nanos
}

/** A record of a batch that is not settled: a process may have ended after it opened the record. */
export type OpenChild = Pick<CallRecord, 'requestId' | 'holdNanos' | 'holdListNanos'>

export interface ClaimLimits {
  readonly max: number
  readonly perKeyMax: number
  readonly perAccountMax: number
}
