import type { Nanos } from '../kernel/money.ts'
import type { ObjectKind, Surface } from '../kernel/surface.ts'
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
  /** How soon upstream is polled first. */
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
  /** Lines that succeeded. */
  readonly requests: number
  /** The cost at which the record will be settled; the same amount of the batch's hold becomes the record's own. */
  readonly costNanos: Nanos
  readonly listNanos: Nanos
}

/** A record of a batch that is not settled: a process may have ended after it opened the record. */
export type OpenChild = Pick<CallRecord, 'requestId' | 'holdNanos' | 'holdListNanos'>

export interface DeferredStore {
  /**
   * `closed`: the call is settled or released. `known`: another call created the object, which upstream has named again for
   * this one. In both cases nothing was changed.
   */
  deferCall(deferral: Deferral): Promise<'deferred' | 'closed' | 'known'>
  /** The open object of this name. */
  findDeferred(name: ObjectName): Promise<DeferredObject | null>
  /**
   * Claims objects that are due: the first of each key, then the second of each, and so on, so that the objects of one key do
   * not delay those of another. At most `perKeyMax` of a key are claimed at a time, by all nodes together. A claim ends with
   * `postponeDeferred` or `forgetDeferred`, or by itself after some minutes.
   */
  claimDeferred(
    surfaces: readonly Surface[],
    most: ClaimLimits,
    atMs: number,
  ): Promise<readonly DeferredObject[]>
  /** Claims one object, due or not. False: it is claimed already, or not open. */
  claimOne(name: ObjectName, atMs: number): Promise<boolean>
  /** Ends the claim. Upstream is polled again after `inMs`. */
  postponeDeferred(name: ObjectName, inMs: number, atMs: number): Promise<void>
  /** The call is closed: the object is not polled any more. */
  forgetDeferred(name: ObjectName): Promise<void>
  /** Moves an open object to the front of its key's polls. False: the key of this digest reaches no open object of this id. */
  hurryDeferred(surface: Surface, objectId: string, digest: Uint8Array): Promise<boolean>
  /**
   * Whether a Chat batch is open and the file was not uploaded here: it may be the results file of that batch. Then the open
   * batches of the key that asks move to the front of its polls.
   */
  mayBeResults(surface: Surface, fileId: string, digest: Uint8Array): Promise<boolean>
  /** Records for the models of a batch, to be settled like calls. Records that exist stay as they are. */
  openChildren(children: readonly ChildCall[]): Promise<void>
  listOpenChildren(
    parent: Pick<CallRecord, 'requestId' | 'keyId' | 'startedAtMs'>,
  ): Promise<readonly OpenChild[]>
  /** Has a batch that is charged itself, and not by its children, count as a request. */
  countBatch(batch: Pick<CallRecord, 'requestId'>): Promise<void>
  countDeferred(): Promise<number>
}

export interface ClaimLimits {
  readonly max: number
  readonly perKeyMax: number
}
