import { setTimeout as sleep } from 'node:timers/promises'
import { atMostEvery, type Clock, WARN_INTERVAL_MS } from '../kernel/clock.ts'
import { limits } from '../kernel/limits.ts'
import { Portions } from '../kernel/portions.ts'
import { createWorkLoop, type WorkLoop } from '../kernel/work-loop.ts'
import type { SweptTo } from '../keys/key-store.ts'
import type { Store } from '../store/store.ts'
import type { Deliverer } from './deliver.ts'
import type { ClaimedDelivery, OverfullWebhook } from './webhook-store.ts'

/** How long shutdown waits for running deliveries. They are then released to another node or the next start. */
const STOP_MS = 2_000

/** How often a node checks, in memory, whether it has recorded an event. Management requests wake it at once. */
const TICK_MS = 1_000

/** How often a node claims deliveries without a new event: retries, and events of other processes. */
const IDLE_CLAIM_MS = 15_000

const SWEEP_MS = 5_000
const PRUNE_MS = 60_000

/** A claim that finds nothing is repeated once, because on PostgreSQL an event is counted before its commit. */
const CLAIMS_PER_CHANGE = 2

/** Pause after a failed delivery. Without the pause, deliveries to a dead receiver keep a core busy. */
const FAILING_PAUSE_MS = 1_000

export interface DispatcherParts
  extends Pick<Deliverer, 'clock' | 'log' | 'sealer' | 'rules' | 'dashboardUrl'>,
    Partial<Pick<Deliverer, 'tryMs' | 'chance'>> {
  readonly store: Pick<
    Store,
    | 'claimDeliveries'
    | 'failExcess'
    | 'listOverfull'
    | 'load'
    | 'pruneEvents'
    | 'recordAttempt'
    | 'releaseDelivery'
    | 'sweepEvents'
  >
  readonly failingPauseMs?: number
  readonly tickMs?: number
}

/** Emits events of keys that expire, and deletes old events: one portion at a time, so that deliveries continue. */
class EventSweep {
  readonly #store: DispatcherParts['store']
  readonly #clock: Clock
  readonly #portions: Portions
  #swept: SweptTo | null = null
  #sweptMs = -Infinity
  #prunedMs = -Infinity
  /** Endpoints with pending deliveries that will not be sent. */
  #overfull: readonly OverfullWebhook[] = []

  constructor({ store, clock }: DispatcherParts) {
    this.#store = store
    this.#clock = clock
    this.#portions = new Portions(clock)
  }

  /** Sweeps with the next portion: a key's expiry may have changed. */
  sweepSoon(): void {
    this.#sweptMs = -Infinity
  }

  /** Returns whether there is more to do at once. */
  async portion(): Promise<boolean> {
    const clock = this.#clock
    if (this.#swept !== null || isDue(clock, this.#sweptMs, SWEEP_MS)) {
      if (this.#swept === null) this.#sweptMs = clock.monotonicMs()
      this.#swept = await this.#portions.next((limit) =>
        this.#store.sweepEvents(clock.nowMs(), this.#swept, limit),
      )
    }
    if (isDue(clock, this.#prunedMs, PRUNE_MS) && !(await this.#prune())) this.#prunedMs = clock.monotonicMs()
    return this.#swept !== null || isDue(clock, this.#prunedMs, PRUNE_MS)
  }

  /** Deletes some old events, then fails some deliveries that will not be sent. False: there are no more. */
  async #prune(): Promise<boolean> {
    const store = this.#store
    const pruned = await this.#portions.next((limit) => store.pruneEvents(this.#clock.nowMs(), limit))
    if (pruned > 0) return true
    if (this.#overfull.length === 0) this.#overfull = await store.listOverfull()
    const [webhook] = this.#overfull
    if (webhook === undefined) return false
    const failed = await this.#portions.next((limit) => store.failExcess(webhook, limit))
    if (failed === 0) this.#overfull = this.#overfull.slice(1)
    return this.#overfull.length > 0
  }
}

function isDue(clock: Clock, lastMs: number, everyMs: number): boolean {
  return clock.monotonicMs() - lastMs >= everyMs
}

/** Each webhook has a few slots, so that a slow or dead receiver delays only its own messages. No call waits. */
export class WebhookDispatcher {
  readonly #parts: DispatcherParts & Deliverer
  readonly #sweep: EventSweep
  readonly #loop: WorkLoop
  readonly #logFailure: (error: unknown) => void
  readonly #stopping = new AbortController()
  readonly #stopped = new AbortController()
  readonly #running = new Set<Promise<void>>()
  readonly #slots = new Map<string, number>()
  failures = 0
  #claimedMs = -Infinity
  #eventsSeen = 0
  #claimsLeft = 0

  constructor(parts: DispatcherParts) {
    const { clock, log, tickMs = TICK_MS } = parts
    this.#parts = { tryMs: limits.webhookTryMs, chance: Math.random, ...parts }
    this.#sweep = new EventSweep(parts)
    this.#logFailure = atMostEvery(WARN_INTERVAL_MS, clock, (error: unknown) => {
      log.warn({ cause: (error as Error).message }, 'webhook deliveries wait for the database')
    })
    this.#loop = createWorkLoop({
      poll: () => this.#poll(tickMs),
      onFailure: (error) => {
        this.#logFailure(error)
        this.#claimsLeft = CLAIMS_PER_CHANGE
        return tickMs
      },
      stopping: this.#stopping.signal,
    })
  }

  start(): void {
    this.#loop.start()
  }

  wake(): void {
    this.#sweep.sweepSoon()
    this.#claimSoon()
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#loop.ended()
    const ended = Promise.all(this.#running)
    await Promise.race([ended, sleep(STOP_MS, undefined, { ref: false })])
    this.#stopped.abort()
    await ended
  }

  async #poll(tickMs: number): Promise<number> {
    const { store, clock } = this.#parts
    // A failed sweep must not delay due deliveries.
    const pauseMs = (await this.#sweep.portion().catch(this.#logFailure)) === true ? 0 : tickMs
    if (!this.#mayBeDue()) return pauseMs
    this.#claimedMs = clock.monotonicMs()
    const claimed = await store.claimDeliveries([...this.#slots], clock.nowMs())
    for (const delivery of claimed) this.#startDelivery(delivery)
    if (claimed.length > 0) {
      this.#claimsLeft = CLAIMS_PER_CHANGE
      return 0
    }
    if (this.#claimsLeft > 0) this.#claimsLeft -= 1
    return pauseMs
  }

  #mayBeDue(): boolean {
    const { store, clock } = this.#parts
    const events = [...store.load.events.values()].reduce((sum, count) => sum + count, 0)
    if (events !== this.#eventsSeen) this.#claimsLeft = CLAIMS_PER_CHANGE
    this.#eventsSeen = events
    return this.#claimsLeft > 0 || isDue(clock, this.#claimedMs, IDLE_CLAIM_MS)
  }

  #startDelivery(delivery: ClaimedDelivery): void {
    const { id } = delivery.webhook
    const slots = this.#slots
    slots.set(id, (slots.get(id) ?? 0) + 1)
    const work = this.#deliver(delivery)
      .catch(this.#logFailure)
      .finally(() => {
        this.#running.delete(work)
        const left = (slots.get(id) ?? 1) - 1
        if (left === 0) slots.delete(id)
        else slots.set(id, left)
        this.#claimSoon()
      })
    this.#running.add(work)
  }

  async #deliver(delivery: ClaimedDelivery): Promise<void> {
    const { store, clock, failingPauseMs = FAILING_PAUSE_MS } = this.#parts
    const { attemptDelivery } = await import('./deliver.ts')
    const attempt = await attemptDelivery(delivery, this.#parts, this.#stopped.signal)
    if (attempt === null) return await store.releaseDelivery(delivery.id, clock.nowMs())
    await store.recordAttempt(attempt, clock.nowMs())
    const { outcome } = attempt
    if (outcome.kind === 'succeeded') return
    this.failures += 1
    if (outcome.kind === 'retry' && outcome.inMs < IDLE_CLAIM_MS)
      setTimeout(() => this.#claimSoon(), outcome.inMs).unref()
    const { signal } = this.#stopping
    await sleep(failingPauseMs, undefined, { ref: false, signal }).catch(() => {})
  }

  #claimSoon(): void {
    this.#claimsLeft = CLAIMS_PER_CHANGE
    this.#loop.wake()
  }
}
