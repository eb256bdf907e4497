import { setTimeout as sleep } from 'node:timers/promises'
import type { Upstream } from '../http/upstream-connection.ts'
import { atMostEvery, type Clock, WARN_INTERVAL_MS } from '../kernel/clock.ts'
import type { Log } from '../kernel/log.ts'
import { type OwnUpstream, SURFACE_NAMES, type Surface } from '../kernel/vocabulary.ts'
import { createWorkLoop } from '../kernel/work-loop.ts'
import type { DeferredObject } from '../ledger/deferred.ts'
import type { Metered } from '../metering/meter.ts'
import { DEFERRED_KINDS, isFinal, pathOf, pauseMs } from '../providers/deferred-kinds.ts'
import type { Store } from '../store/store.ts'
import type { DeliveredOutput } from './delivered-output.ts'
import { fetchObject, fetchResults } from './fetch-object.ts'
import type { ObjectBills } from './object-bills.ts'

/** The interval of claims, and maximum concurrent polls per node, and per key and account over all nodes. */
const CLAIM_EVERY_MS = 1_000
const CLAIM = { max: 100, perKeyMax: 20, perAccountMax: 50 } as const

const FAILED_POLL_RETRY_MS = 60_000
/** An object that is not final after this time is abandoned. */
const LIFETIME_MS = 30 * 24 * 60 * 60 * 1000
const NOT_FOUND_GRACE_MS = 10_000
const RESULTS_RETRY_MS = 3_000

type PollerStore = Pick<Store, 'claimDeferred' | 'getAccount' | 'postponeDeferred' | 'wasDeleted'>

export interface PollerDependencies {
  readonly store: PollerStore
  readonly upstreams: Readonly<Record<Surface, Upstream | null>>
  readonly ownUpstreams: {
    readonly isUsed: boolean
    open(accountId: string, surface: Surface, own: OwnUpstream): Upstream
  }
  readonly clock: Clock
  readonly log: Log
}

/** Asks upstream for the objects of this node's turn until they state their cost, and settles them. */
export class ObjectPoller {
  readonly #from: PollerDependencies
  readonly #bills: ObjectBills
  readonly #delivered: DeliveredOutput
  readonly #stopping = new AbortController()
  readonly #running = new Set<Promise<unknown>>()
  readonly #loop: ReturnType<typeof createWorkLoop>

  constructor(from: PollerDependencies, bills: ObjectBills, delivered: DeliveredOutput) {
    this.#from = from
    this.#bills = bills
    this.#delivered = delivered
    const warn = atMostEvery(WARN_INTERVAL_MS, from.clock, (error: unknown) =>
      from.log.warn({ cause: (error as Error).message }, 'deferred calls wait for the database'),
    )
    this.#loop = createWorkLoop({
      poll: () => this.#claim(),
      onFailure(error) {
        warn(error)
        return CLAIM_EVERY_MS
      },
      stopping: this.#stopping.signal,
    })
  }

  start(): void {
    this.#loop.start()
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await Promise.all([this.#loop.ended(), ...this.#running])
  }

  get isStopping(): boolean {
    return this.#stopping.signal.aborted
  }

  /** Ends early if the gateway stops. */
  pause(ms: number): Promise<void> {
    return sleep(ms, undefined, { signal: this.#stopping.signal, ref: false }).catch(() => {})
  }

  /** `stop` waits for this work. It must not reject. */
  run(work: Promise<unknown>): void {
    const running = work.finally(() => this.#running.delete(running))
    this.#running.add(running)
  }

  /** Polls an object that this node has claimed. Never rejects. */
  poll(object: DeferredObject): Promise<void> {
    const polled = this.#poll(object).catch(async (error: unknown) => {
      this.#logFailure(object, error)
      await this.#postpone(object, FAILED_POLL_RETRY_MS).catch(() => {})
    })
    this.run(polled)
    return polled
  }

  async #claim(): Promise<number> {
    const { store, upstreams, ownUpstreams, clock } = this.#from
    const max = CLAIM.max - this.#running.size
    if (max <= 0) return CLAIM_EVERY_MS
    const surfaces = SURFACE_NAMES.filter((surface) => upstreams[surface] !== null || ownUpstreams.isUsed)
    const claimed = await store.claimDeferred(surfaces, { ...CLAIM, max }, clock.nowMs())
    for (const object of claimed) void this.poll(object)
    return CLAIM_EVERY_MS
  }

  async #poll(object: DeferredObject): Promise<void> {
    const { surface, kind, objectId, call } = object
    const upstream = await this.#upstreamOf(object)
    if (upstream === null) return await this.#postpone(object, FAILED_POLL_RETRY_MS)
    const path = pathOf(kind, objectId)
    const answer = await fetchObject(surface, upstream, path, DEFERRED_KINDS[kind].reader)
    const { status, retryAfterMs, metered } = answer
    if (metered !== null && isFinal(metered) && (await this.#settle(object, upstream, metered))) return
    const ageMs = this.#from.clock.nowMs() - call.startedAtMs
    if (await this.#giveUp(object, status === 404, ageMs)) return
    await this.#postpone(object, Math.max(retryAfterMs ?? 0, pauseMs(kind, ageMs)))
  }

  async #upstreamOf({ surface, scope }: DeferredObject): Promise<Upstream | null> {
    const { store, upstreams, ownUpstreams, clock } = this.#from
    if (scope === '') return upstreams[surface]
    const account = await store.getAccount(scope, clock.nowMs())
    const own = account?.upstreams[surface] ?? null
    return own === null ? null : ownUpstreams.open(scope, surface, own)
  }

  /** False: the object is polled again. */
  async #settle(object: DeferredObject, upstream: Upstream, metered: Metered): Promise<boolean> {
    const { surface, kind, objectId } = object
    const { key } = upstream
    try {
      const { results } = DEFERRED_KINDS[kind]
      if (results === undefined)
        return await this.#bills.settle(object, this.#delivered.addTo(objectId, metered), key)
      const path = results(objectId, metered)
      if (path === null) return await this.#bills.settleBatch(object, metered, null, key)
      const read = async (take: (chunk: Buffer) => void) => {
        const outcome = await fetchResults(surface, upstream, path, take)
        if (outcome !== 'gone') return outcome
        await this.pause(RESULTS_RETRY_MS)
        return this.isStopping ? 'failed' : await fetchResults(surface, upstream, path, take)
      }
      return await this.#bills.settleBatch(object, metered, read, key)
    } catch (error) {
      this.#logFailure(object, error)
      return false
    }
  }

  /** Closes an object that upstream no longer knows. If a client may have deleted it, it costs its hold. */
  async #giveUp(object: DeferredObject, isMissing: boolean, ageMs: number): Promise<boolean> {
    if (!(isMissing && ageMs >= NOT_FOUND_GRACE_MS) && ageMs < LIFETIME_MS) return false
    const isDeleted = isMissing && (await this.#from.store.wasDeleted(object))
    return await (isDeleted ? this.#bills.settleAtHold(object) : this.#bills.giveUp(object))
  }

  #postpone(object: DeferredObject, inMs: number): Promise<void> {
    const { store, clock } = this.#from
    return store.postponeDeferred(object, inMs, clock.nowMs())
  }

  #logFailure({ objectId, call }: DeferredObject, error: unknown): void {
    const about = { request: call.requestId, object: objectId, cause: (error as Error).message }
    this.#from.log.error(about, 'a deferred call could not be settled')
  }
}
