import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../kernel/clock.ts'
import type { HeaderNames } from '../kernel/header-names.ts'
import { limits } from '../kernel/limits.ts'
import type { Log } from '../kernel/log.ts'
import { SURFACE_NAMES, type Surface } from '../kernel/surface.ts'
import { atMostEvery, createWorkLoop, TOLD_AGAIN_MS } from '../kernel/within-time.ts'
import type { CallClosing, CallRecord } from '../ledger/call.ts'
import type { Deferral, DeferredObject, DeferredStore, ObjectKind } from '../ledger/deferred.ts'
import type { RequestLogStore } from '../ledger/request-log.ts'
import type { Metered } from '../metering/meter.ts'
import { readRating } from '../pricing/rating-text.ts'
import { videoUsage } from '../providers/chat/videos.ts'
import type { UsageReader } from '../providers/endpoint.ts'
import type { CallCounts } from '../telemetry/call-counts.ts'
import type { AdmissionQueues } from './admission-queue.ts'
import { askUpstream, OBJECT_ID, type UpstreamAnswer } from './ask-upstream.ts'
import {
  type Bill,
  billUsage,
  type CallOutcome,
  NOTHING_BILLED,
  RECORDED_CHARS_MAX,
  upstreamRequestId,
  withoutSecrets,
} from './bill.ts'
import type { AdmittedCall } from './call.ts'
import type { Settler } from './settle.ts'
import type { Upstream } from './upstream-pool.ts'

/** How each kind of object is asked for. */
interface KindSpec {
  readonly reader: UsageReader
  /** Where it is shown. `of` is what the id alone does not tell, where it was found. */
  path(id: string, of: string): string
  /** The first pause and the longest. */
  readonly pausesMs: readonly [number, number]
  readonly headers?: readonly string[]
}

const KINDS: Readonly<Partial<Record<ObjectKind, KindSpec>>> = {
  response: { reader: 'responses', path: (id) => `/v1/responses/${id}`, pausesMs: [2_000, 30_000] },
  video: { reader: 'video', path: (id) => `/v1/videos/${id}`, pausesMs: [5_000, 60_000] },
  run: {
    reader: 'run',
    path: (id, thread) => `/v1/threads/${thread}/runs/${id}`,
    pausesMs: [2_000, 30_000],
    headers: ['openai-beta', 'assistants=v2'],
  },
}

/** States in which an object may still come to cost more. */
const UNFINISHED: ReadonlySet<string | null> = new Set([
  ...['queued', 'in_progress', 'requires_action', 'cancelling'],
  null,
])

/** Null where the reply did not name it in a way that can be asked for. */
function pathOf(kind: KindSpec, { objectId, threadId = '' }: Metered): string | null {
  if (objectId === null || !OBJECT_ID.test(objectId)) return null
  return kind.reader === 'run' && !OBJECT_ID.test(threadId) ? null : kind.path(objectId, threadId)
}

const isFinal = ({ usage }: Metered) => !UNFINISHED.has(usage.stopReason)

export interface DeferralParts {
  readonly store: DeferredStore & Pick<RequestLogStore, 'readPriceVersion'>
  readonly upstreams: Readonly<Record<Surface, Upstream | null>>
  readonly settler: Settler
  readonly counts: CallCounts
  readonly queues: Pick<AdmissionQueues, 'signalAll'>
  readonly clock: Clock
  readonly log: Log
  readonly names: Pick<HeaderNames, 'redact'>
}

/** What the gateway knows of a call when the reply has told what it made. */
type MadeObject = Omit<Deferral, 'surface' | 'objectId' | 'kind' | 'path' | 'dueInMs' | 'atMs'>

/** Whether the call is left open because its cost comes later. */
export async function deferCall(
  { surface, plan, exchange }: AdmittedCall,
  { head, metered }: CallOutcome,
  passed: () => Omit<MadeObject, 'status' | 'upstreamRequestId'>,
  { deferrals }: { readonly deferrals: Deferrals },
): Promise<boolean> {
  const { makes } = plan.bill
  if (makes === null || metered === null || head === null || head.status >= 300) return false
  const id = upstreamRequestId(head)
  const upstreamId = id === null ? null : exchange.names.redact(id.slice(0, RECORDED_CHARS_MAX))
  return await deferrals.defer(surface, makes, metered, {
    ...passed(),
    status: head.status,
    upstreamRequestId: upstreamId,
  })
}

export interface Deferrals {
  /**
   * The call stays open with its hold until its object tells what it cost. False where the reply has told all there is, or
   * has named nothing that could be asked for: then it is billed as it is. Never fails.
   */
  defer(surface: Surface, kind: ObjectKind, metered: Metered, made: MadeObject): Promise<boolean>
  /** A client was shown an object. If it is one of ours, and final, its call is settled. Never fails: else the poller does it. */
  shown(surface: Surface, metered: Metered): Promise<void>
  start(): void
  stop(): Promise<void>
}

/**
 * Calls whose cost comes later. Upstream is asked for what they have made, by one node at a time, until it says what that
 * cost; what a client asks for itself counts as well. Whatever comes first settles the call, which the store closes once.
 */
export function createDeferrals(parts: DeferralParts): Deferrals {
  const { store, upstreams, settler, counts, queues, clock, log, names } = parts
  const holder = randomUUID()
  const stopping = new AbortController()
  let rateAgain: ReturnType<typeof import('../pricing/rate-again.ts').createRateAgain> | null = null
  let retrying: Promise<unknown> = Promise.resolve()

  async function settle(object: DeferredObject, bill: Bill): Promise<void> {
    const { call } = object
    const closing: CallClosing = {
      ...withoutSecrets(bill, names.redact),
      requestId: call.requestId,
      atMs: clock.nowMs(),
      ...{ status: call.status, streamed: call.streamed, upstreamRequestId: call.upstreamRequestId },
      ...{ upstreamMs: call.upstreamMs, overheadMs: call.overheadMs ?? 0 },
      ...{ bytesIn: call.bytesIn, bytesOut: call.bytesOut },
    }
    await settler.settle(closing, ({ booked }) => {
      queues.signalAll()
      const times = { overheadMs: call.overheadMs ?? 0, upstreamMs: call.upstreamMs ?? 0 }
      if (booked) counts.settled(call.surface, call.modelAsked, closing, times)
    })
    await store.forgetDeferred(object)
  }

  /** By the prices and the discount of the day on which the call was made. */
  async function billOf(call: CallRecord, metered: Metered): Promise<Bill> {
    const asked = readRating(call.rating)?.context.video
    const usage = asked === undefined ? metered.usage : videoUsage(metered.usage, asked)
    const { createRateAgain } = await import('../pricing/rate-again.ts')
    rateAgain ??= createRateAgain()
    const priceVersionJson = await store.readPriceVersion(call.priceVersion ?? '')
    if (priceVersionJson === null)
      throw new Error(`the price version of ${call.requestId} is not in the books`)
    const rated = rateAgain({ usage: JSON.stringify(usage), rating: call.rating, priceVersionJson })
    return billUsage(usage, rated ?? UNPRICED)
  }

  /** Whether there is nothing more to ask. */
  async function take(object: DeferredObject, answer: UpstreamAnswer): Promise<boolean> {
    if (answer.kind === 'answered' && answer.status === 404) {
      log.warn(aboutOf(object), 'upstream does not know what a call has made; its cost is lost')
      await settle(object, { ...NOTHING_BILLED, state: 'interrupted' })
      return true
    }
    const metered = answer.kind === 'answered' ? answer.metered : null
    if (metered !== null && isFinal(metered)) {
      await settle(object, await billOf(object.call, metered))
      return true
    }
    if (clock.nowMs() - object.call.startedAtMs < limits.deferredMs) return false
    log.warn(aboutOf(object), 'what a call has made is not final after 30 days; its cost is lost')
    await settle(object, { ...NOTHING_BILLED, state: 'interrupted' })
    return true
  }

  async function poll(object: DeferredObject): Promise<void> {
    const kind = KINDS[object.kind]
    const upstream = upstreams[object.surface]
    if (kind === undefined || upstream === null) return
    const answer = await askUpstream(object.surface, upstream, object.path, kind.reader, kind.headers)
    if (await take(object, answer)) return
    const told = answer.kind === 'answered' ? answer.retryAfterMs : null
    await store.postponeDeferred(
      object,
      Math.max(told ?? 0, pauseMs(kind.pausesMs, object.polls)),
      clock.nowMs(),
    )
  }

  /** How long to pause before the next look. Nothing is written while there is nothing to ask for. */
  async function look(): Promise<number> {
    if ((await store.countDeferred()) === 0) return limits.deferredIdleLookMs
    const surfaces = SURFACE_NAMES.filter((surface) => upstreams[surface] !== null)
    const due = (await store.claimDeferred(holder, surfaces, clock.nowMs())) ?? []
    for (const object of due) {
      if (stopping.signal.aborted) return 0
      // One that fails is due again, and those behind it are not held up.
      await poll(object).catch(async (error: unknown) => {
        log.error(
          { ...aboutOf(object), cause: (error as Error).message },
          'a deferred call could not be settled',
        )
        await store.postponeDeferred(object, limits.deferredFailedMs, clock.nowMs())
      })
      await pause(limits.deferredGapMs)
    }
    return due.length > 0 ? 0 : limits.deferredLookMs
  }

  const keep = (deferral: Deferral) => store.deferCall(deferral)

  /** Until it is written down or the gateway stops: the next start then finds the call open, and interrupts it. */
  async function keepAtLast(deferral: Omit<Deferral, 'atMs'>): Promise<void> {
    while (!stopping.signal.aborted) {
      await pause(limits.deferredLookMs)
      const kept = await keep({ ...deferral, atMs: clock.nowMs() }).catch(() => null)
      if (kept !== null) return
    }
  }

  const pause = (ms: number) => sleep(ms, undefined, { signal: stopping.signal, ref: false }).catch(() => {})

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

  return {
    async defer(surface, kind, metered, made) {
      const how = KINDS[kind]
      const { objectId } = metered
      const path = how === undefined ? null : pathOf(how, metered)
      if (how === undefined || path === null || objectId === null || isFinal(metered)) return false
      const deferral = {
        ...made,
        surface,
        kind,
        objectId,
        path,
        dueInMs: how.pausesMs[0],
      }
      await keep({ ...deferral, atMs: clock.nowMs() }).catch((error: unknown) => {
        const about = { request: made.requestId, object: objectId, cause: (error as Error).message }
        log.error(about, 'what a call has made could not be written down; it is tried again')
        retrying = Promise.all([retrying, keepAtLast(deferral)])
      })
      loop.wake()
      return true
    },
    async shown(surface, metered) {
      const { objectId } = metered
      if (objectId === null || !isFinal(metered)) return
      try {
        const object = await store.findDeferred({ surface, objectId })
        if (object !== null) await settle(object, await billOf(object.call, metered))
      } catch (error) {
        log.error(
          { object: objectId, cause: (error as Error).message },
          'what a client was shown could not be settled',
        )
      }
    },
    start: loop.start,
    async stop() {
      stopping.abort()
      await Promise.all([loop.ended(), retrying])
    },
  }
}

const UNPRICED = { costNanos: 0n, listNanos: 0n, unpriced: true, pricedAsRequested: false }

/** Twice as long each time, up to the longest. */
function pauseMs([first, longest]: readonly [number, number], polls: number): number {
  return Math.min(longest, first * 2 ** Math.min(polls, 20))
}

function aboutOf({ objectId, call }: DeferredObject) {
  return { request: call.requestId, object: objectId }
}
