import { setTimeout as sleep } from 'node:timers/promises'
import { RECORDED_CHARS_MAX } from '../calls/bill.ts'
import type { Answer, Evidence, StoredResponse, Transfer } from '../calls/evidence.ts'
import type { CreatedObject, Hold } from '../calls/hold.ts'
import { refuseDelete } from '../calls/refusals.ts'
import type { Upstream } from '../http/upstream-connection.ts'
import type { OwnUpstreams } from '../http-calls/own-upstreams.ts'
import { atMostEvery, createWorkLoop, WARN_INTERVAL_MS } from '../kernel/clock.ts'
import type { Refusal } from '../kernel/errors.ts'
import { RecentEntries, Tally } from '../kernel/memory.ts'
import { SURFACE_NAMES, type Surface } from '../kernel/vocabulary.ts'
import type { DeferredObject } from '../ledger/deferred.ts'
import { type Delivered, type Metered, nothingDelivered } from '../metering/meter.ts'
import {
  DEFERRED_KINDS,
  fileIdIn,
  isFinal,
  isObjectId,
  objectIdIn,
  pathOf,
  pauseMs,
  statesUsage,
} from '../providers/deferred-kinds.ts'
import { createDeferredBills, type DeferredBillDependencies } from './deferred-bills.ts'
import { fetchObject, fetchResults, fetchStoredResponse } from './fetch-object.ts'

/** The interval of claims, and maximum concurrent polls per node, and per key and account over all nodes. */
const POLL_MS = 1_000
const CLAIM = { max: 100, perKeyMax: 20, perAccountMax: 50 } as const

const FAILED_POLL_RETRY_MS = 60_000
/** An object that is not final after this time is abandoned. */
const LIFETIME_MS = 30 * 24 * 60 * 60 * 1000
const NOT_FOUND_GRACE_MS = 10_000
const RESULTS_RETRY_MS = 3_000
/** The object of a stream is polled after this time, unless the stream has ended. */
const STREAM_POLL_AFTER_MS = 600_000
const SHOWN_WAIT_MS = 5_000
const DELIVERED_MIN = 5_000

export interface DeferralDependencies extends DeferredBillDependencies {
  readonly upstreams: Readonly<Record<Surface, Upstream | null>>
  readonly ownUpstreams: OwnUpstreams
  readonly polls: boolean
}

export type Deferrals = ReturnType<typeof createDeferrals>

export function createDeferrals(dependencies: DeferralDependencies) {
  const { store, upstreams, ownUpstreams, polls, clock, log } = dependencies
  const bills = createDeferredBills(dependencies)
  const stopping = new AbortController()
  const running = new Set<Promise<void>>()
  /** How many streams of each object are open. */
  const streaming = new Tally()
  const resumed = new Tally()
  /** The largest output that a client read of each object, for objects that state no usage. */
  const delivered = new RecentEntries<Delivered>(DELIVERED_MIN)

  function recordDelivered(objectId: string, output: Delivered): void {
    if (bytesOf(output) > bytesOf(delivered.get(objectId) ?? nothingDelivered()))
      delivered.set(objectId, output)
  }

  function withDelivered(objectId: string, metered: Metered): Metered {
    const output = delivered.get(objectId) ?? metered.output
    return bytesOf(output) > bytesOf(metered.output) ? { ...metered, output } : metered
  }

  const surfaces = () => SURFACE_NAMES.filter((surface) => upstreams[surface] !== null || ownUpstreams.isUsed)

  const pause = (ms: number) => sleep(ms, undefined, { signal: stopping.signal, ref: false }).catch(() => {})

  function logFailure({ objectId, call }: DeferredObject, error: unknown): false {
    const about = { request: call.requestId, object: objectId, cause: (error as Error).message }
    log.error(about, 'a deferred call could not be settled')
    return false
  }

  async function settle(object: DeferredObject, upstream: Upstream, metered: Metered): Promise<boolean> {
    const { surface, kind, objectId } = object
    const { results } = DEFERRED_KINDS[kind]
    if (results === undefined) return await bills.settle(object, withDelivered(objectId, metered))
    const path = results(objectId, metered)
    if (path === null) return await bills.settleBatch(object, metered, null)
    return await bills.settleBatch(object, metered, async (take) => {
      const outcome = await fetchResults(surface, upstream, path, take)
      if (outcome !== 'gone') return outcome
      await pause(RESULTS_RETRY_MS)
      return stopping.signal.aborted ? 'failed' : await fetchResults(surface, upstream, path, take)
    })
  }

  async function upstreamOf({ surface, scope }: DeferredObject): Promise<Upstream | null> {
    if (scope === '') return upstreams[surface]
    const account = await store.getAccount(scope, clock.nowMs())
    const own = account?.upstreams[surface] ?? null
    return own === null ? null : ownUpstreams.open(scope, surface, own)
  }

  async function poll(object: DeferredObject): Promise<void> {
    const { surface, scope, kind, objectId, call } = object
    const upstream = await upstreamOf(object)
    if (upstream === null) return await store.postponeDeferred(object, FAILED_POLL_RETRY_MS, clock.nowMs())
    const path = pathOf(kind, objectId)
    const answer = await fetchObject(surface, upstream, path, DEFERRED_KINDS[kind].reader)
    const { status, retryAfterMs, metered } = answer
    const ageMs = clock.nowMs() - call.startedAtMs
    const isEnded = metered !== null && isFinal(metered)
    if (isEnded && (await settle(object, upstream, metered).catch((error) => logFailure(object, error))))
      return
    const isMissing = status === 404
    if ((isMissing && ageMs >= NOT_FOUND_GRACE_MS) || ageMs >= LIFETIME_MS) {
      // An object that a client may have deleted, on any node, costs its hold.
      const isDeleted =
        isMissing && (await wasDeleted({ surface, scope, requestId: call.requestId }, objectId))
      if (await (isDeleted ? bills.settleAtHold(object) : bills.giveUp(object))) return
    }
    await store.postponeDeferred(object, Math.max(retryAfterMs ?? 0, pauseMs(kind, ageMs)), clock.nowMs())
  }

  function startPoll(object: DeferredObject): Promise<void> {
    const started = poll(object)
      .catch(async (error: unknown) => {
        logFailure(object, error)
        await store.postponeDeferred(object, FAILED_POLL_RETRY_MS, clock.nowMs()).catch(() => {})
      })
      .finally(() => running.delete(started))
    running.add(started)
    return started
  }

  const warnStoreUnavailable = atMostEvery(WARN_INTERVAL_MS, clock, (error: unknown) =>
    log.warn({ cause: (error as Error).message }, 'deferred calls wait for the database'),
  )

  const loop = createWorkLoop({
    async poll() {
      const max = CLAIM.max - running.size
      if (max > 0)
        for (const object of await store.claimDeferred(surfaces(), { ...CLAIM, max }, clock.nowMs()))
          startPoll(object)
      return POLL_MS
    },
    onFailure(error) {
      warnStoreUnavailable(error)
      return POLL_MS
    },
    stopping: stopping.signal,
  })

  /** Retries until the object is recorded. If the gateway stops first, the next start interrupts the call. */
  async function recordWithRetries(hold: Hold, object: CreatedObject, transfer: Transfer, dueInMs: number) {
    while (!stopping.signal.aborted) {
      await pause(POLL_MS)
      const recorded = await hold.record(object, transfer, dueInMs).catch(() => null)
      if (recorded !== null) return
    }
  }

  async function settleFetched({ ask, scope }: Hold, fetched: Metered): Promise<void> {
    const { surface, path } = ask
    const objectId = fetched.objectId ?? objectIdIn(surface, path)
    if (objectId === null) return
    recordDelivered(objectId, fetched.output)
    if (fetched.objectId !== null && !isFinal(fetched)) return
    // The end of the stream settles it.
    if (
      (streaming.countOf(objectId) > 0 || resumed.countOf(objectId) > 0) &&
      !(fetched.inputKnown && fetched.outputKnown)
    )
      return
    const metered = withDelivered(objectId, fetched)
    const object = await store.findDeferred({ surface, scope, objectId })
    if (object === null) return
    const isBatch = DEFERRED_KINDS[object.kind].results !== undefined
    if (!isBatch && isFinal(metered) && statesUsage(metered)) await bills.settle(object, metered)
    // The reply to a HEAD, a range of the body, or a stream that the client has left does not state the usage.
    else if (!isBatch && !isFinal(metered)) return
    else if (await store.claimDeferredObject(object, clock.nowMs()))
      await Promise.race([startPoll(object), pause(SHOWN_WAIT_MS)])
  }

  async function record(hold: Hold, object: CreatedObject, transfer: Transfer, dueInMs: number) {
    if (!isObjectId(object.objectId)) return false
    return await hold.record(object, transfer, dueInMs).then(
      (recorded) => recorded === 'deferred',
      () => false,
    )
  }

  /** The record, with its hold, of a call whose response a client may have deleted on any node; else null. */
  async function findDeleted({ ask: { requestId, surface }, scope }: Hold, id: string) {
    const isDeleted = polls && (await wasDeleted({ requestId, surface, scope }, id))
    return isDeleted ? await store.getCall(requestId) : null
  }

  async function wasDeleted(since: Parameters<typeof store.listDeletes>[0], id: string): Promise<boolean> {
    return (await store.listDeletes(since)).some((path) => objectIdIn(since.surface, path) === id)
  }

  return {
    /** Responses that stream here, or whose client left before they were billed. They cannot be deleted. */
    streaming,
    /** Responses that a GET streams here. */
    resumed,
    /**
     * Leaves the call open until its object states the cost. `paid_by_other`: an earlier call pays for the object.
     * `not_deferred`: the call is billed now. Never rejects.
     */
    async defer(hold: Hold, { answer, metered }: Evidence, transfer: Transfer) {
      const kind = hold.ask.profile.deferredKind
      if (kind === null || metered === null || answer === null || answer.status >= 300) return 'not_deferred'
      const { objectId } = metered
      if (objectId === null || !isObjectId(objectId)) return 'not_deferred'
      const { results, pausesMs } = DEFERRED_KINDS[kind]
      // Record the object even if its cost is known, because upstream may return the same object to a repeated request.
      const isStated = results === undefined && isFinal(metered)
      if (!isStated) recordDelivered(objectId, metered.output)
      const object = createdObject(kind, objectId, answer)
      const recorded = await hold.record(object, transfer, pausesMs[0]).catch((error: unknown) => {
        if (isStated) return 'closed'
        const about = { request: hold.ask.requestId, object: objectId, cause: (error as Error).message }
        log.error(about, 'the batch or response that a call created could not be recorded; retrying')
        const retrying = recordWithRetries(hold, object, transfer, pausesMs[0]).finally(() =>
          running.delete(retrying),
        )
        running.add(retrying)
        return 'deferred'
      })
      if (recorded === 'paid_by_other') return 'paid_by_other'
      if (isStated) return 'not_deferred'
      hold.defer()
      return 'deferred'
    },
    /** Fetches a stored response whose stream was cut. If it still runs, it is deferred. Never rejects. */
    async findStoredResponse(
      hold: Hold,
      upstream: Upstream,
      id: string,
      answer: Answer,
      transfer: Transfer,
    ): Promise<StoredResponse> {
      const stored = await fetchStoredResponse(id, upstream)
      if (stored === 'missing') {
        const held = await findDeleted(hold, id).catch(() => null)
        return held === null ? { kind: 'missing' } : { ...held, kind: 'deleted' }
      }
      if (stored === 'unstated') return { kind: stored }
      if (stored !== 'running') return { kind: 'stated', metered: stored }
      const object = createdObject('response', id, answer)
      // If polling is off, settle the call now.
      if (!polls || !(await record(hold, object, transfer, DEFERRED_KINDS.response.pausesMs[0])))
        return { kind: 'unstated' }
      hold.defer()
      return { kind: 'deferred' }
    },
    /** Records an object when its stream names it, for the poller. False: not recorded. Never rejects. */
    record: (hold: Hold, kind: CreatedObject['kind'], objectId: string, answer: Answer, transfer: Transfer) =>
      record(hold, createdObject(kind, objectId, answer), transfer, STREAM_POLL_AFTER_MS),
    /** Settles the call if the object that a client fetched is final. Never rejects. */
    settleFetched: (hold: Hold, metered: Metered) =>
      settleFetched(hold, metered).catch((error: Error) =>
        log.error({ cause: error.message }, 'a deferred object that a client read could not be settled'),
      ),
    /** Refuses a DELETE of an unsettled object, without asking upstream. */
    async refuseDelete(surface: Surface, path: string, digest: Uint8Array): Promise<Refusal | null> {
      if (!polls) return null
      const objectId = objectIdIn(surface, path)
      if (objectId !== null) {
        const isOpen =
          streaming.countOf(objectId) > 0 || (await store.makeDeferredDue(surface, objectId, digest))
        return isOpen ? refuseDelete('object') : null
      }
      const fileId = fileIdIn(surface, path)
      if (fileId === null) return null
      return (await store.mayBeBatchResults(surface, fileId, digest)) ? refuseDelete('file') : null
    },
    /** Closes the object that a DELETE removed upstream, if it is still open. Never rejects. */
    async closeDeleted({ ask: { surface, path }, scope }: Hold): Promise<void> {
      const objectId = objectIdIn(surface, path)
      if (objectId === null) return
      try {
        const object = await store.findDeferred({ surface, scope, objectId })
        if (object !== null) await (polls ? bills.settleAtHold(object) : bills.giveUp(object))
      } catch (error) {
        const about = { object: objectId, cause: (error as Error).message }
        log.error(about, 'a batch or response was deleted, but its call could not be settled')
      }
    },
    start: loop.start,
    async stop() {
      stopping.abort()
      await Promise.all([loop.ended(), ...running])
    },
  }
}

function bytesOf({ text, thinking, tool }: Delivered): number {
  return text + thinking + tool
}

function createdObject(kind: CreatedObject['kind'], objectId: string, answer: Answer): CreatedObject {
  const { status, upstreamRequestId } = answer
  return {
    kind,
    objectId,
    status,
    upstreamRequestId: upstreamRequestId?.slice(0, RECORDED_CHARS_MAX) ?? null,
  }
}
