import { setTimeout as sleep } from 'node:timers/promises'
import { atMostEvery, WARN_INTERVAL_MS } from '../kernel/clock.ts'
import { limits } from '../kernel/limits.ts'
import { createWorkLoop } from '../kernel/work-loop.ts'
import type { SweptTo } from '../keys/key-store.ts'
import type { Store } from '../store/store.ts'
import type { Deliverer } from './deliver.ts'
import type { ClaimedDelivery } from './webhook-store.ts'

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
  readonly store: Pruned &
    Pick<Store, 'claimDeliveries' | 'load' | 'recordAttempt' | 'releaseDelivery' | 'sweepEvents'>
  readonly failingPauseMs?: number
  readonly tickMs?: number
}

type Pruned = Pick<Store, 'pruneEvents' | 'listOverfull' | 'failExcess'>

/** Deletes some old events, and fails some deliveries that will not be sent. Returns their number; 0: all are pruned. */
export async function prune(store: Pruned, atMs: number): Promise<number> {
  let pruned = await store.pruneEvents(atMs)
  for (const webhook of await store.listOverfull()) pruned += await store.failExcess(webhook)
  return pruned
}

/** Each webhook has a few slots, so that a slow or dead receiver delays only its own messages. No call waits. */
export function createWebhookDispatcher(parts: DispatcherParts) {
  const { store, clock, log, failingPauseMs = FAILING_PAUSE_MS, tickMs = TICK_MS } = parts
  const deliverer: Deliverer = { tryMs: limits.webhookTryMs, chance: Math.random, ...parts }
  const stopping = new AbortController()
  const stopped = new AbortController()
  const running = new Set<Promise<void>>()
  const slots = new Map<string, number>()
  let failures = 0
  let sweptMs = -Infinity
  let swept: SweptTo | null = null
  let prunedMs = -Infinity
  let claimedMs = -Infinity
  let eventsSeen = 0
  let claimsLeft = 0

  const logFailure = atMostEvery(WARN_INTERVAL_MS, clock, (error: unknown) => {
    log.warn({ cause: (error as Error).message }, 'webhook deliveries wait for the database')
  })

  function isDue(lastMs: number, everyMs: number): boolean {
    return clock.monotonicMs() - lastMs >= everyMs
  }

  /** Emits events of keys that expire, and deletes old events: one step, so that deliveries continue. False: all done. */
  async function sweep(): Promise<boolean> {
    if (swept !== null || isDue(sweptMs, SWEEP_MS)) {
      if (swept === null) sweptMs = clock.monotonicMs()
      swept = await store.sweepEvents(clock.nowMs(), swept)
    }
    if (isDue(prunedMs, PRUNE_MS) && (await prune(store, clock.nowMs())) === 0) prunedMs = clock.monotonicMs()
    return swept !== null || isDue(prunedMs, PRUNE_MS)
  }

  async function deliver(delivery: ClaimedDelivery): Promise<void> {
    const { attemptDelivery } = await import('./deliver.ts')
    const attempt = await attemptDelivery(delivery, deliverer, stopped.signal)
    if (attempt === null) return await store.releaseDelivery(delivery.id, clock.nowMs())
    await store.recordAttempt(attempt, clock.nowMs())
    const { outcome } = attempt
    if (outcome.kind === 'succeeded') return
    failures += 1
    if (outcome.kind === 'retry' && outcome.inMs < IDLE_CLAIM_MS) setTimeout(claimSoon, outcome.inMs).unref()
    await sleep(failingPauseMs, undefined, { ref: false, signal: stopping.signal }).catch(() => {})
  }

  function startDelivery(delivery: ClaimedDelivery): void {
    const { id } = delivery.webhook
    slots.set(id, (slots.get(id) ?? 0) + 1)
    const work = deliver(delivery)
      .catch(logFailure)
      .finally(() => {
        running.delete(work)
        const left = (slots.get(id) ?? 1) - 1
        if (left === 0) slots.delete(id)
        else slots.set(id, left)
        claimSoon()
      })
    running.add(work)
  }

  async function poll(): Promise<number> {
    // A failed sweep must not delay due deliveries.
    const pauseMs = (await sweep().catch(logFailure)) === true ? 0 : tickMs
    if (!mayBeDue()) return pauseMs
    claimedMs = clock.monotonicMs()
    const claimed = await store.claimDeliveries([...slots], clock.nowMs())
    for (const delivery of claimed) startDelivery(delivery)
    if (claimed.length > 0) {
      claimsLeft = CLAIMS_PER_CHANGE
      return 0
    }
    if (claimsLeft > 0) claimsLeft -= 1
    return pauseMs
  }

  function mayBeDue(): boolean {
    const events = [...store.load.events.values()].reduce((sum, count) => sum + count, 0)
    if (events !== eventsSeen) claimsLeft = CLAIMS_PER_CHANGE
    eventsSeen = events
    return claimsLeft > 0 || isDue(claimedMs, IDLE_CLAIM_MS)
  }

  function claimSoon(): void {
    claimsLeft = CLAIMS_PER_CHANGE
    loop.wake()
  }

  const loop = createWorkLoop({
    poll,
    onFailure(error) {
      logFailure(error)
      claimsLeft = CLAIMS_PER_CHANGE
      return tickMs
    },
    stopping: stopping.signal,
  })

  return {
    start: loop.start,
    wake(): void {
      // A key's expiry may have changed.
      sweptMs = -Infinity
      claimSoon()
    },
    get failures(): number {
      return failures
    },
    async stop(): Promise<void> {
      stopping.abort()
      await loop.ended()
      const ended = Promise.all(running)
      await Promise.race([ended, sleep(STOP_MS, undefined, { ref: false })])
      stopped.abort()
      await ended
    },
  }
}
