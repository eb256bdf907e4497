import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Upstream } from '../http/upstream-pool.ts'
import { limits } from '../kernel/limits.ts'
import { type ObjectKind, SURFACE_NAMES, type Surface } from '../kernel/surface.ts'
import { atMostEvery, createWorkLoop, TOLD_AGAIN_MS } from '../kernel/within-time.ts'
import type { Deferral, DeferredObject, ObjectName } from '../ledger/deferred.ts'
import type { Metered, Shown } from '../metering/meter.ts'
import { READER_OF } from '../providers/endpoint.ts'
import { plainPath } from '../providers/find-meant.ts'
import type { ReplyHead } from './answer.ts'
import { askForPurpose, askForResults, askUpstream, OBJECT_ID, type UpstreamAnswer } from './ask-upstream.ts'
import { type CallOutcome, RECORDED_CHARS_MAX, upstreamRequestId } from './bill.ts'
import type { AdmittedCall } from './call.ts'
import { createDeferredBills, type DeferredBillParts, tellsCost } from './deferred-bills.ts'
import type { KeyShare } from './key-shares.ts'

interface ObjectSpec {
  /** Where upstream shows it. */
  path(id: string): string
  /** The first and the longest pause between two questions. */
  readonly pausesMs: readonly [number, number]
  /** Upstream can cancel it, and then states what it has used. */
  readonly cancels?: true
  /** Where the results of its requests are, which say what it cost; null where there are none. */
  results?(path: string, metered: Metered): string | null
}

/** Pauses after a cancel: a run is `cancelling` for a moment. Together they are shorter than a client is made to wait. */
const CANCELLING_PAUSES_MS = [250, 500, 1_000, 1_500] as const

const BATCH_PAUSES_MS = [30_000, 300_000] as const

/** How each kind of object is asked for. */
const KINDS: Readonly<Record<ObjectKind, ObjectSpec>> = {
  response: { path: (id) => `/v1/responses/${id}`, pausesMs: [2_000, 30_000], cancels: true },
  message_batch: {
    path: (id) => `/v1/messages/batches/${id}`,
    pausesMs: BATCH_PAUSES_MS,
    results: (path) => `${path}/results`,
  },
  batch: {
    path: (id) => `/v1/batches/${id}`,
    pausesMs: BATCH_PAUSES_MS,
    results(_path, { resultsFile = null }) {
      if (resultsFile === null) return null
      if (!OBJECT_ID.test(resultsFile))
        throw new Error('the file with its results has no id that can be asked for')
      return `/v1/files/${resultsFile}/content`
    },
  },
}

/** Final states of an object. In a state that is not listed it may still work. */
const FINAL = new Set(['completed', 'incomplete', 'cancelled', 'failed', 'expired', 'ended'])

/** Nothing that could be asked for, or cancelled, is left of the object. */
const isNoMore = (looked: Looked | undefined) => looked === 'over' || looked === 'missing'

const isFinal = ({ usage }: Metered) => FINAL.has(usage.stopReason ?? '')

/**
 * The result of asking for an object. `over`: there is nothing more to ask. `working`: upstream says that it is not final.
 * `missing`: upstream says that there is no such object.
 */
type Looked = 'over' | 'working' | 'missing' | 'unknown'

/** Paths whose deletion may take away the object of a call, or its results. */
const DELETABLE = /^\/v1\/(responses|files|messages\/batches)\/([^/]+)$/

export interface DeferralParts extends DeferredBillParts {
  readonly upstreams: Readonly<Record<Surface, Upstream | null>>
}

/** What is known of a call when its reply has named the object that it made. */
type MadeObject = Omit<Deferral, 'surface' | 'objectId' | 'kind' | 'path' | 'dueInMs' | 'atMs'>

/** `deferred`: the call is left open because its cost comes later. `known`: the cost is that of an earlier call. */
type Deferred = 'deferred' | 'known' | 'no'

type Passed = () => Omit<MadeObject, 'status' | 'upstreamRequestId'>
type HasDeferrals = { readonly deferrals: Deferrals }

export async function deferCall(
  call: AdmittedCall,
  { head, metered }: CallOutcome,
  passed: Passed,
  { deferrals }: HasDeferrals,
): Promise<Deferred> {
  const { makes } = call.plan.bill
  if (makes === null || metered === null || head === null || head.status >= 300) return 'no'
  return await deferrals.defer(call.surface, makes, metered, madeBy(call, head, passed))
}

/** Records the object of a call whose stream has named it and goes on. Whether the call is deferred by that. */
export async function deferEarly(
  call: AdmittedCall,
  head: ReplyHead | null,
  named: Shown,
  passed: Passed,
  { deferrals }: HasDeferrals,
): Promise<boolean> {
  const { makes } = call.plan.bill
  if (makes === null || head === null) return false
  return await deferrals.record(call.surface, makes, named, madeBy(call, head, passed))
}

function madeBy({ exchange }: AdmittedCall, head: ReplyHead, passed: Passed): MadeObject {
  const id = upstreamRequestId(head)
  const upstreamId = id === null ? null : exchange.names.redact(id.slice(0, RECORDED_CHARS_MAX))
  return { ...passed(), status: head.status, upstreamRequestId: upstreamId }
}

export interface Deferrals {
  /**
   * The call stays open with its hold until its object tells what it cost. `no` where the reply has told all there is, or
   * has named nothing that could be asked for: then it is billed as it is. Never fails.
   */
  defer(surface: Surface, kind: ObjectKind, metered: Metered, made: MadeObject): Promise<Deferred>
  /**
   * Records an object as soon as it has a name, while its stream goes on: it is not deleted unpaid then, and if this process
   * ends, the poller asks for it. False where it could not be recorded: `defer` does it at the end. Never fails.
   */
  record(surface: Surface, kind: ObjectKind, named: Shown, made: MadeObject): Promise<boolean>
  /**
   * A client was shown an object, or the results of a batch. If that is one of ours, and final, its call is settled; of a
   * batch once its results are read here as well. Never fails: else the poller does it.
   */
  shown(surface: Surface, path: string, metered: Metered): Promise<void>
  /**
   * A client is about to delete what may be the object of an open call, or stand above it: afterwards upstream could not be
   * asked what it cost. So it is asked now, and what is under way is cancelled first. Whether it may be deleted: not while
   * what it cost is not known, or deleting many at a time would be a way not to pay. Upstream is asked for one deletion of
   * a key at a time, or one key could keep all others from being settled. Never fails.
   */
  beforeDelete(surface: Surface, path: string, share: Pick<KeyShare, 'name'>): Promise<boolean>
  start(): void
  stop(): Promise<void>
}

/**
 * Calls whose cost comes later. Upstream is asked for what they have made, by one node at a time, until it says what that
 * cost; what a client asks for itself counts as well. Whatever comes first settles the call, which the store closes once.
 */
export function createDeferrals(parts: DeferralParts): Deferrals {
  const { store, upstreams, clock, log } = parts
  const bills = createDeferredBills(parts)
  const holder = randomUUID()
  const stopping = new AbortController()
  /** Polls that are under way, by the name of the object. */
  const polls = new Map<string, Promise<Looked>>()
  /** Since when upstream has answered that there is no such object, by its name: known while this node has the lease. */
  const missingSinceMs = new Map<string, number>()
  const turns: Record<Surface, number> = { messages: 0, chat: 0 }
  /** Polls that this node makes by itself. Polls that clients cause take none of their places. */
  let ownPolls = 0
  /** Objects that are being recorded while their streams go on. */
  const recordings = new Set<Promise<boolean>>()
  /** The last deletion of each key that is under way, also where its client was answered 503, and has left. */
  const deletions = new Map<string, Promise<boolean>>()
  let retrying: Promise<unknown> = Promise.resolve()

  const pause = (ms: number) => sleep(ms, undefined, { signal: stopping.signal, ref: false }).catch(() => {})

  /** Requests to a surface are at least `limits.deferredGapMs` apart. */
  async function takeTurn(surface: Surface): Promise<void> {
    const nowMs = clock.monotonicMs()
    const turnMs = Math.max(nowMs, turns[surface])
    turns[surface] = turnMs + limits.deferredGapMs
    if (turnMs > nowMs) await pause(turnMs - nowMs)
  }

  async function ask(object: DeferredObject, upstream: Upstream, method: 'GET' | 'POST' = 'GET') {
    const { surface, kind, path } = object
    await takeTurn(surface)
    const target = method === 'GET' ? path : `${path}/cancel`
    return await askUpstream(surface, upstream, target, READER_OF[kind], method)
  }

  /** Whether the call is settled by this answer. */
  async function settle(object: DeferredObject, upstream: Upstream, metered: Metered): Promise<boolean> {
    const { surface, kind } = object
    const { results } = KINDS[kind]
    if (results === undefined) return await bills.settle(object, metered)
    const path = results(object.path, metered)
    if (path === null) return await bills.settleBatch(object, metered, null)
    return await bills.settleBatch(object, metered, async (take) => {
      await takeTurn(surface)
      return await askForResults(surface, upstream, path, take)
    })
  }

  function tellFailed({ objectId, call }: DeferredObject, error: unknown): false {
    const about = { request: call.requestId, object: objectId, cause: (error as Error).message }
    log.error(about, 'a deferred call could not be settled')
    return false
  }

  /** Upstream may show an object a moment after it has made it: a single 404 gives no object up. */
  function isGone(object: DeferredObject, isMissing: boolean): boolean {
    const [name, nowMs] = [nameOf(object), clock.monotonicMs()]
    const sinceMs = missingSinceMs.get(name) ?? nowMs
    const isForGood = isMissing && nowMs - sinceMs >= limits.deferredMissingMs
    if (isMissing && !isForGood) missingSinceMs.set(name, sinceMs)
    else missingSinceMs.delete(name)
    return isForGood
  }

  async function take(object: DeferredObject, upstream: Upstream, answer: UpstreamAnswer): Promise<Looked> {
    const isMissing = answer.kind === 'answered' && answer.status === 404
    const metered = answer.kind === 'answered' ? answer.metered : null
    const isDone = metered !== null && isFinal(metered)
    // An object whose settlement fails each time is given up in the end, like one that is never final.
    const isSettled = isDone && (await settle(object, upstream, metered).catch((e) => tellFailed(object, e)))
    if (isSettled) return 'over'
    if (!isGone(object, isMissing) && clock.nowMs() - object.call.startedAtMs < limits.deferredMs) {
      if (isMissing) return 'missing'
      return !isDone && (metered?.usage.stopReason ?? null) !== null ? 'working' : 'unknown'
    }
    await bills.giveUp(object)
    return 'over'
  }

  /** Asks for an object. A poll that fails is due again, and holds up no other. Never rejects. */
  function poll(object: DeferredObject, how: 'ask' | 'cancel' = 'ask'): Promise<Looked> {
    const name = nameOf(object)
    const running = polls.get(name)
    // A poll that is under way has not cancelled the object.
    if (running !== undefined)
      return how === 'cancel'
        ? running.then((looked) => (looked === 'over' ? looked : poll(object, how)))
        : running
    const started = pollNow(object, how)
      .catch(async (error: unknown) => {
        tellFailed(object, error)
        await store.postponeDeferred(object, limits.deferredFailedMs, clock.nowMs()).catch(() => {})
        return 'unknown' as const
      })
      .finally(() => polls.delete(name))
    polls.set(name, started)
    return started
  }

  async function pollNow(object: DeferredObject, how: 'ask' | 'cancel'): Promise<Looked> {
    const spec = KINDS[object.kind]
    const upstream = upstreams[object.surface]
    if (upstream === null) return 'unknown'
    let answer = await ask(object, upstream)
    let looked = await take(object, upstream, answer)
    if (how === 'cancel' && spec.cancels === true && !isNoMore(looked)) {
      answer = await ask(object, upstream, 'POST')
      // An upstream that cannot cancel answers 404 as well, and the object is still there.
      if (answer.kind !== 'answered' || answer.status !== 404) looked = await take(object, upstream, answer)
      for (const ms of CANCELLING_PAUSES_MS) {
        if (isNoMore(looked)) break
        await pause(ms)
        answer = await ask(object, upstream)
        looked = await take(object, upstream, answer)
      }
    }
    if (looked === 'over') return looked
    const told = answer.kind === 'answered' ? answer.retryAfterMs : null
    const waitMs = Math.max(told ?? 0, pauseMs(spec.pausesMs, object.polls))
    await store.postponeDeferred(object, waitMs, clock.nowMs())
    return looked
  }

  /** A file may contain the results of a batch, and only the batch itself says of which one. */
  async function mayDeleteFile(surface: Surface, id: string, untilMs: number): Promise<boolean> {
    const upstream = upstreams[surface]
    const batches = await store.listDeferred(surface, '/v1/batches')
    if (batches.length === 0 || upstream === null || !OBJECT_ID.test(id)) return true
    await takeTurn(surface)
    const purpose = await askForPurpose(surface, upstream, id)
    if (purpose !== null && purpose !== 'batch_output') return true
    for (const batch of batches) {
      if (clock.monotonicMs() > untilMs) return false
      const answer = await ask(batch, upstream)
      const metered = answer.kind === 'answered' ? answer.metered : null
      if (metered?.resultsFile === id) return (await poll(batch)) === 'over'
      if (answer.kind === 'failed' || (metered === null && answer.status !== 404)) return false
    }
    return batches.length < limits.deferredBelowMax
  }

  async function mayDelete(surface: Surface, above: string): Promise<boolean> {
    for (;;) {
      const objects = await store.listDeferred(surface, above)
      const looks = await Promise.all(objects.map((object) => poll(object, 'cancel')))
      // Upstream itself refuses to delete an object that works and cannot be cancelled.
      const mayGo = objects.every(
        ({ kind }, i) => isNoMore(looks[i]) || (looks[i] === 'working' && KINDS[kind].cancels !== true),
      )
      // Objects that stay open would be listed again.
      if (!mayGo || objects.length < limits.deferredBelowMax || !looks.includes('over')) return mayGo
    }
  }

  /** Looks for due objects, and returns the pause before the next look. Nothing is written while none is due. */
  async function look(): Promise<number> {
    if (!(await store.hasDeferred())) {
      missingSinceMs.clear()
      return limits.deferredIdleLookMs
    }
    const surfaces = SURFACE_NAMES.filter((surface) => upstreams[surface] !== null)
    const claimed = await store.claimDeferred(holder, surfaces, clock.nowMs())
    if (claimed === null) missingSinceMs.clear()
    const due = claimed ?? []
    const free = due.filter((object) => !polls.has(nameOf(object)))
    for (const object of free.slice(0, limits.deferredPollsMax - ownPolls)) {
      ownPolls += 1
      void poll(object).finally(() => {
        ownPolls -= 1
      })
    }
    // A long download holds up no other object: the rest of the places stays free.
    if (polls.size > 0) await Promise.race([...polls.values(), pause(limits.deferredLookMs)])
    return free.length > 0 && ownPolls < limits.deferredPollsMax ? 0 : limits.deferredLookMs
  }

  /** Tries until the object is recorded, or the gateway stops: the next start then finds the call open, and interrupts it. */
  async function keepAtLast(deferral: Omit<Deferral, 'atMs'>): Promise<void> {
    while (!stopping.signal.aborted) {
      await pause(limits.deferredLookMs)
      const kept = await store.deferCall({ ...deferral, atMs: clock.nowMs() }).catch(() => null)
      if (kept !== null) return
    }
  }

  const tellTrouble = atMostEvery(TOLD_AGAIN_MS, clock, (error: unknown) => {
    log.warn(
      { cause: (error as Error).message },
      'deferred calls wait: the store could not be asked for them',
    )
  })

  const loop = createWorkLoop({
    look,
    onFailure(error) {
      tellTrouble(error)
      return limits.deferredIdleLookMs
    },
    stopping: stopping.signal,
  })

  async function settleShown(surface: Surface, path: string, metered: Metered): Promise<void> {
    const objectId = metered.objectId ?? batchOfResults(path)
    if (objectId === null || (metered.objectId !== null && !isFinal(metered))) return
    const object = await store.findDeferred({ surface, objectId })
    if (object === null) return
    missingSinceMs.delete(nameOf(object))
    if (KINDS[object.kind].results === undefined) await bills.settle(object, metered)
    else await Promise.race([poll(object), pause(limits.deferredShownMs)])
  }

  return {
    async defer(surface, kind, metered, made) {
      const { results, pausesMs } = KINDS[kind]
      const named = nameIn(kind, metered)
      if (named === null) return 'no'
      // The object is recorded all the same: upstream may name it again, to a client that repeats its request.
      const isTold = results === undefined && isFinal(metered) && tellsCost(metered)
      const deferral = { ...made, ...named, surface, kind, dueInMs: pausesMs[0] }
      const kept = await store.deferCall({ ...deferral, atMs: clock.nowMs() }).catch((error: unknown) => {
        if (isTold) return
        const about = { request: made.requestId, object: named.objectId, cause: (error as Error).message }
        log.error(about, 'what a call has made could not be written down; it is tried again')
        retrying = Promise.all([retrying, keepAtLast(deferral)])
      })
      loop.wake()
      if (kept === 'known') return 'known'
      return isTold ? 'no' : 'deferred'
    },
    async record(surface, kind, shown, made) {
      const named = nameIn(kind, shown)
      if (named === null) return false
      // The end of its stream tells what it costs, or makes it due. Some upstreams do not show it before.
      const deferral = { ...made, ...named, surface, kind, dueInMs: limits.deferredStreamMs }
      const recording = store.deferCall({ ...deferral, atMs: clock.nowMs() }).then(
        (kept) => kept === 'deferred',
        () => false,
      )
      recordings.add(recording)
      const isDeferred = await recording
      recordings.delete(recording)
      return isDeferred
    },
    shown: (...seen) =>
      settleShown(...seen).catch((error: unknown) =>
        log.error({ cause: (error as Error).message }, 'what a client was shown could not be settled'),
      ),
    async beforeDelete(surface, path, { name }) {
      const [above, what, id = ''] = DELETABLE.exec(plainPath(path)) ?? []
      if (above === undefined) return true
      const untilMs = clock.monotonicMs() + limits.deferredShownMs
      const asked: Promise<boolean> = Promise.all([deletions.get(name), ...recordings])
        .then(() => {
          // An answer that was given up is not asked for any more.
          if (clock.monotonicMs() >= untilMs) return false
          return what === 'files' ? mayDeleteFile(surface, id, untilMs) : mayDelete(surface, above)
        })
        .catch((error: unknown) => {
          log.error({ cause: (error as Error).message }, 'what a client deletes could not be asked for')
          return false
        })
        .finally(() => {
          if (deletions.get(name) === asked) deletions.delete(name)
        })
      deletions.set(name, asked)
      return await Promise.race([asked, pause(limits.deferredShownMs).then(() => false)])
    },
    start: loop.start,
    async stop() {
      stopping.abort()
      await Promise.all([loop.ended(), retrying, ...polls.values()])
    },
  }
}

/** The object that a reply names and where upstream shows it; null where it cannot be asked for. */
function nameIn(kind: ObjectKind, { objectId = null }: Pick<Shown, 'objectId'>) {
  if (objectId === null || !OBJECT_ID.test(objectId)) return null
  return { objectId, path: KINDS[kind].path(objectId) }
}

/** The results of a Messages batch are a path below it. */
function batchOfResults(path: string): string | null {
  return /^\/v1\/messages\/batches\/([^/]+)\/results$/.exec(path)?.[1] ?? null
}

/** The pause doubles each time, up to the longest. */
function pauseMs([first, longest]: readonly [number, number], polls: number): number {
  return Math.min(longest, first * 2 ** Math.min(polls, 20))
}

function nameOf({ surface, objectId }: ObjectName): string {
  return `${surface} ${objectId}`
}
