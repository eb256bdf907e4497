import { RECORDED_CHARS_MAX } from '../calls/bill.ts'
import type { AnswerHead, Evidence, StoredResponse, Transfer } from '../calls/evidence.ts'
import type { CreatedObject, Hold } from '../calls/hold.ts'
import { refuseDelete } from '../calls/refusals.ts'
import type { Upstream } from '../http/upstream-connection.ts'
import type { Refusal } from '../kernel/errors.ts'
import type { Log } from '../kernel/log.ts'
import { Tally } from '../kernel/tally.ts'
import type { Surface } from '../kernel/vocabulary.ts'
import type { Metered } from '../metering/meter.ts'
import {
  DEFERRED_KINDS,
  fileIdIn,
  isFinal,
  isObjectId,
  objectIdIn,
  statesUsage,
} from '../providers/deferred-kinds.ts'
import type { Store } from '../store/store.ts'
import { DeliveredOutput } from './delivered-output.ts'
import { fetchStoredResponse } from './fetch-object.ts'
import { type ObjectBillDependencies, ObjectBills } from './object-bills.ts'
import { ObjectPoller, type PollerDependencies } from './poller.ts'

const RECORD_RETRY_MS = 1_000
/** The object of a stream is polled after this time, unless the stream has ended. */
const STREAM_POLL_AFTER_MS = 600_000
const SHOWN_WAIT_MS = 5_000

export interface DeferralDependencies extends ObjectBillDependencies, PollerDependencies {
  readonly store: Store
  readonly polls: boolean
}

/** Calls whose cost comes later: what carriers tell about the objects that state it. */
export class Deferrals {
  /** Responses that stream here, or whose client left before they were billed. They cannot be deleted. */
  readonly streaming = new Tally()
  /** Responses that a GET streams here. */
  readonly resumed = new Tally()
  readonly #from: DeferralDependencies
  readonly #log: Log
  readonly #bills: ObjectBills
  readonly #delivered = new DeliveredOutput()
  readonly #poller: ObjectPoller

  constructor(from: DeferralDependencies) {
    this.#from = from
    this.#log = from.log
    this.#bills = new ObjectBills(from)
    this.#poller = new ObjectPoller(from, this.#bills, this.#delivered)
  }

  start(): void {
    this.#poller.start()
  }

  stop(): Promise<void> {
    return this.#poller.stop()
  }

  /**
   * Leaves the hold to the object that states the cost. `paid_by_other`: an earlier call pays for the object.
   * `not_deferred`: the call is billed now. Never rejects.
   */
  async defer(hold: Hold, { answer, metered }: Evidence, transfer: Transfer) {
    const kind = hold.ask.profile.deferredKind
    const objectId = metered?.objectId ?? null
    if (kind === null || metered === null || answer === null || answer.status >= 300) return 'not_deferred'
    if (objectId === null || !isObjectId(objectId)) return 'not_deferred'
    const { results, pausesMs } = DEFERRED_KINDS[kind]
    // Record the object even if its cost is known, because upstream may return the same object to a repeated request.
    const isStated = results === undefined && isFinal(metered)
    if (!isStated) this.#delivered.record(objectId, metered.output)
    const object = createdObject(kind, objectId, answer)
    const recorded = await hold.record(object, transfer, pausesMs[0]).catch((error: unknown) => {
      if (isStated) return 'closed'
      const about = { request: hold.ask.requestId, object: objectId, cause: (error as Error).message }
      this.#log.error(about, 'the batch or response that a call created could not be recorded; retrying')
      this.#poller.run(this.#recordLater(hold, object, transfer, pausesMs[0]))
      return 'deferred'
    })
    if (recorded === 'paid_by_other') return 'paid_by_other'
    if (isStated) return 'not_deferred'
    hold.defer()
    return 'deferred'
  }

  /** Records an object when its stream names it, for the poller. Never rejects. */
  async record(
    hold: Hold,
    kind: CreatedObject['kind'],
    objectId: string,
    answer: AnswerHead,
    transfer: Transfer,
  ): Promise<void> {
    await this.#record(hold, createdObject(kind, objectId, answer), transfer, STREAM_POLL_AFTER_MS)
  }

  /** Fetches a stored response whose stream was cut. If it still runs, it is deferred. Never rejects. */
  async findStoredResponse(
    hold: Hold,
    upstream: Upstream,
    id: string,
    answer: AnswerHead,
    transfer: Transfer,
  ): Promise<StoredResponse> {
    const stored = await fetchStoredResponse(id, upstream)
    if (stored === 'missing') {
      const held = await this.#findDeleted(hold, id).catch(() => null)
      return held === null ? { kind: 'missing' } : { ...held, kind: 'deleted' }
    }
    if (stored === 'unstated') return { kind: stored }
    if (stored !== 'running') return { kind: 'stated', metered: stored }
    const object = createdObject('response', id, answer)
    const dueInMs = DEFERRED_KINDS.response.pausesMs[0]
    // If polling is off, settle the call now.
    if (!this.#from.polls || !(await this.#record(hold, object, transfer, dueInMs)))
      return { kind: 'unstated' }
    hold.defer()
    return { kind: 'deferred' }
  }

  /** Settles the call if the object that a client fetched is final. Never rejects. */
  async settleFetched(hold: Hold, fetched: Metered): Promise<void> {
    try {
      await this.#settleFetched(hold, fetched)
    } catch (error) {
      const about = { cause: (error as Error).message }
      this.#log.error(about, 'a deferred object that a client read could not be settled')
    }
  }

  /** Refuses a DELETE of an unsettled object, without asking upstream. */
  async refuseDelete(surface: Surface, path: string, digest: Uint8Array): Promise<Refusal | null> {
    const { store, polls } = this.#from
    if (!polls) return null
    const objectId = objectIdIn(surface, path)
    if (objectId !== null) {
      const isOpen =
        this.streaming.countOf(objectId) > 0 || (await store.makeDeferredDue(surface, objectId, digest))
      return isOpen ? refuseDelete('object') : null
    }
    const fileId = fileIdIn(surface, path)
    if (fileId === null) return null
    return (await store.mayBeBatchResults(surface, fileId, digest)) ? refuseDelete('file') : null
  }

  /** Closes the object that a DELETE removed upstream, if it is still open. Never rejects. */
  async closeDeleted({ ask: { surface, path }, scope }: Hold): Promise<void> {
    const objectId = objectIdIn(surface, path)
    if (objectId === null) return
    try {
      const object = await this.#from.store.findDeferred({ surface, scope, objectId })
      if (object === null) return
      await (this.#from.polls ? this.#bills.settleAtHold(object) : this.#bills.giveUp(object))
    } catch (error) {
      const about = { object: objectId, cause: (error as Error).message }
      this.#log.error(about, 'a batch or response was deleted, but its call could not be settled')
    }
  }

  async #record(hold: Hold, object: CreatedObject, transfer: Transfer, dueInMs: number): Promise<boolean> {
    if (!isObjectId(object.objectId)) return false
    return (await hold.record(object, transfer, dueInMs).catch(() => null)) === 'deferred'
  }

  /** Retries until the object is recorded. If the gateway stops first, the next start interrupts the call. */
  async #recordLater(hold: Hold, object: CreatedObject, transfer: Transfer, dueInMs: number): Promise<void> {
    while (!this.#poller.isStopping) {
      await this.#poller.pause(RECORD_RETRY_MS)
      if ((await hold.record(object, transfer, dueInMs).catch(() => null)) !== null) return
    }
  }

  /** The record, with its hold, of a call whose response a client may have deleted on any node; else null. */
  async #findDeleted({ ask: { requestId, surface }, scope }: Hold, id: string) {
    const { store, polls } = this.#from
    const isDeleted = polls && (await store.wasDeleted({ surface, scope, objectId: id }))
    return isDeleted ? await store.getCall(requestId) : null
  }

  async #settleFetched({ ask, scope, redactedKey }: Hold, fetched: Metered): Promise<void> {
    const { store, clock } = this.#from
    const { surface, path } = ask
    const objectId = fetched.objectId ?? objectIdIn(surface, path)
    if (objectId === null) return
    this.#delivered.record(objectId, fetched.output)
    if (fetched.objectId !== null && !isFinal(fetched)) return
    // The end of the stream settles it.
    const isStreamed = this.streaming.countOf(objectId) + this.resumed.countOf(objectId) > 0
    if (isStreamed && !(fetched.inputKnown && fetched.outputKnown)) return
    const metered = this.#delivered.addTo(objectId, fetched)
    const object = await store.findDeferred({ surface, scope, objectId })
    if (object === null) return
    const isBatch = DEFERRED_KINDS[object.kind].results !== undefined
    if (!isBatch && isFinal(metered) && statesUsage(metered))
      await this.#bills.settle(object, metered, redactedKey)
    // The reply to a HEAD, a range of the body, or a stream that the client has left does not state the usage.
    else if (!isBatch && !isFinal(metered)) return
    else if (await store.claimDeferredObject(object, clock.nowMs()))
      await Promise.race([this.#poller.poll(object), this.#poller.pause(SHOWN_WAIT_MS)])
  }
}

function createdObject(kind: CreatedObject['kind'], objectId: string, answer: AnswerHead): CreatedObject {
  const { status, upstreamRequestId } = answer
  return {
    kind,
    objectId,
    status,
    upstreamRequestId: upstreamRequestId?.slice(0, RECORDED_CHARS_MAX) ?? null,
  }
}
