import type { Nanos } from '../kernel/money.ts'
import type { ObjectKind, Surface } from '../kernel/surface.ts'
import type { CallRecord } from './call.ts'

/**
 * Calls whose cost comes later. The batch, or the response in the background, that such a call has made upstream is its
 * **object**. Until the object says what it cost, the call is `deferred`: open, with its hold in force.
 */

/** An object by the name that upstream gave it. A name belongs to one call: a second call that is given it defers nothing. */
export interface ObjectName {
  readonly surface: Surface
  readonly objectId: string
}

/** The facts from the answer to the call that created the object. */
export interface Deferral extends ObjectName {
  readonly requestId: string
  readonly kind: ObjectKind
  /** The path at which upstream shows the object, without the host. */
  readonly path: string
  /** How soon upstream is first asked for the object. */
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

/** An object that is not settled, with the call that made it. */
export interface DeferredObject extends ObjectName {
  readonly kind: ObjectKind
  readonly path: string
  /** How often upstream was asked for the object. */
  readonly polls: number
  readonly call: CallRecord
}

/** One record for each model of a batch. Its id follows from the parent's, so that a repetition finds the record there. */
export interface ChildCall {
  readonly requestId: string
  readonly parentId: string
  readonly model: string | null
  /** How the record is rated, which is as a request for its model, or for one that the batch names. */
  readonly rating: string
  /** Lines that succeeded. */
  readonly requests: number
  /** The cost at which the record will be settled; the same amount of the batch's hold becomes the record's own. */
  readonly costNanos: Nanos
  readonly listNanos: Nanos
}

export interface DeferredStore {
  /**
   * `closed`: the call is settled or released, and nothing was done. `known`: another call has made the object, which
   * upstream has named again for this one; nothing was done either.
   */
  deferCall(deferral: Deferral): Promise<'deferred' | 'closed' | 'known'>
  /** The object of this name whose call is not paid, if there is one here: also one that was given up too soon. */
  findDeferred(name: ObjectName): Promise<DeferredObject | null>
  /** Objects to ask for now, the longest due first, under the poller's lease; null: another node has the lease. */
  claimDeferred(
    holder: string,
    surfaces: readonly Surface[],
    atMs: number,
  ): Promise<readonly DeferredObject[] | null>
  /** The open objects at this path and below it, up to a limit. */
  listDeferred(surface: Surface, path: string): Promise<readonly DeferredObject[]>
  /** Upstream is asked for the object again after `inMs`. */
  postponeDeferred(name: ObjectName, inMs: number, atMs: number): Promise<void>
  /** Records for the models of a batch, to be settled like calls. Records that exist stay as they are. */
  openChildren(children: readonly ChildCall[]): Promise<void>
  /** The ids of those records of a batch that are not settled: a process may have ended after it opened them. */
  listOpenChildren(
    parent: Pick<CallRecord, 'requestId' | 'keyId' | 'startedAtMs'>,
  ): Promise<readonly string[]>
  /** The call was closed: the object is asked for no more. */
  forgetDeferred(name: ObjectName, atMs: number): Promise<void>
  /** Whether any object is still to be asked for. */
  hasDeferred(): Promise<boolean>
  countDeferred(): Promise<number>
}
