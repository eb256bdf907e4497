import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { limits } from '../kernel/limits.ts'
import { atMostEvery, createWorkLoop, TOLD_AGAIN_MS } from '../kernel/within-time.ts'
import type { Deliverer } from './deliver.ts'
import type { OutboxEvent, UnreadableEvent, WebhookStore } from './webhook-store.ts'

/** How long a stop waits for deliveries that are under way. Then they are left to be tried again. */
const WEBHOOK_STOP_MS = 2_000

/** How often keys that expire and a balance that is low are looked for. */
const WEBHOOK_SWEEP_MS = 5_000

/**
 * How often a node looks for events and deliveries: for work that settlements, other nodes and commands have left,
 * and for endpoints while there are none. Changes by its own management API wake it.
 */
const WEBHOOK_IDLE_LOOK_MS = 5_000

const WEBHOOK_LOOK_MS = 1_000

/** An endpoint at which all of `webhookClaimMax` tries have failed is left alone so long before the next of them. */
const WEBHOOK_FAILING_PAUSE_MS = 1_000

/** Renders an event's payload. The code is the management API's, whose objects are in a payload; loaded with the first event. */
export type RenderPayload = (event: OutboxEvent) => string

export interface DispatcherParts
  extends Pick<Deliverer, 'clock' | 'log' | 'sealer' | 'rules' | 'dashboardUrl'>,
    Partial<Pick<Deliverer, 'tryMs' | 'failingPauseMs' | 'chance'>> {
  readonly store: WebhookStore
  loadRender(): Promise<RenderPayload>
}

export interface WebhookDispatcher {
  start(): void
  /** Looks for due work now: some may have just become due. */
  wake(): void
  /** Tries that failed since the start. */
  readonly failures: number
  /** Events and deliveries that wait, on all nodes. */
  waiting(): Promise<number>
  /** Deliveries under way get a moment. Those not done by then are due for another node, or for the next start. */
  stop(): Promise<void>
}

/** The only account there is. */
const ACCOUNT = 'default'
const ENDPOINTS_AT_ONCE = 1_000
const PRUNE_MS = 60 * 60_000

/**
 * The dispatcher brings events from the outbox to the endpoints. It runs on every node of one store; work under a lease is done
 * by one node at a time. It looks for work every second, and less often while there is no endpoint. No call waits for it.
 */
export function createWebhookDispatcher(parts: DispatcherParts): WebhookDispatcher {
  const { store, clock, log } = parts
  const holder = randomUUID()
  const stopping = new AbortController()
  const stopped = new AbortController()
  const underWay = new Map<string, Promise<void>>()
  let failures = 0
  let sweptMs = -Infinity
  let prunedMs = -Infinity

  const deliverer: Deliverer = {
    tryMs: limits.webhookTryMs,
    failingPauseMs: WEBHOOK_FAILING_PAUSE_MS,
    chance: Math.random,
    ...parts,
    holder,
    stopping: stopping.signal,
    stopped: stopped.signal,
    onFailure: () => {
      failures += 1
    },
  }

  const tellTrouble = atMostEvery(TOLD_AGAIN_MS, clock, (error: unknown) => {
    log.warn({ cause: (error as Error).message }, 'webhooks wait: the store could not be asked for them')
  })

  function isDue(lastMs: number, everyMs: number): boolean {
    return clock.monotonicMs() - lastMs >= everyMs
  }

  /** Null, and a line in the log, for an event that cannot be read or rendered: it must not hold up the events behind it. */
  function payloadOf(event: OutboxEvent | UnreadableEvent, render: RenderPayload): string | null {
    try {
      if ('unreadable' in event) throw new Error(event.unreadable)
      const payload = render(event)
      if (Buffer.byteLength(payload) <= limits.webhookPayloadBytesMax) return payload
      log.error({ event: event.type }, 'an event is too large for webhooks, and is not told')
    } catch (error) {
      log.error(
        { event: event.type, cause: (error as Error).message },
        'an event cannot be put into words, and is not told',
      )
    }
    return null
  }

  /** True: there may be more events to relay. */
  async function relay(): Promise<boolean> {
    const events = await store.readOutbox(holder, clock.nowMs())
    // Another node has the lease of the relay.
    if (events === null) return false
    if (events.length > 0) {
      const render = await parts.loadRender()
      const payloads = events.map((event) => ({
        sequence: event.sequence,
        payload: payloadOf(event, render),
      }))
      await store.keepEvents(holder, payloads, clock.nowMs())
    }
    const sweeps = isDue(sweptMs, WEBHOOK_SWEEP_MS)
    if (sweeps) {
      sweptMs = clock.monotonicMs()
      const isMore = await store.sweepEvents(holder, clock.nowMs())
      if (isMore) sweptMs = -Infinity
    }
    if (isDue(prunedMs, PRUNE_MS)) {
      const pruned = await store.pruneWebhooks(holder, clock.nowMs())
      if (pruned === 0) prunedMs = clock.monotonicMs()
    }
    // Events that the sweep found are in the outbox now.
    return sweeps || events.length >= limits.webhookRelayMax
  }

  async function deliver(): Promise<void> {
    const due = await store.claimWebhooks(holder, ENDPOINTS_AT_ONCE, clock.nowMs())
    if (due.length === 0) return
    const { deliverTo } = await import('./deliver.ts')
    for (const id of due) {
      if (underWay.has(id)) continue
      const work = deliverTo(id, deliverer).catch(tellTrouble)
      underWay.set(
        id,
        work.finally(() => underWay.delete(id)),
      )
    }
  }

  /** Does the work that is due, and returns how long to pause. */
  async function look(): Promise<number> {
    const { rows } = await store.listWebhooks({ accountId: ACCOUNT, after: null, limit: 1 })
    // Rows that deleted endpoints have left must be pruned too.
    if (rows.length === 0 && !isDue(prunedMs, PRUNE_MS)) return WEBHOOK_IDLE_LOOK_MS
    // A relay that fails does not hold up the deliveries that are due.
    const more = await relay().catch((error: unknown) => {
      tellTrouble(error)
      return false
    })
    await deliver()
    if (more) return 0
    return rows.length === 0 ? WEBHOOK_IDLE_LOOK_MS : WEBHOOK_LOOK_MS
  }

  const loop = createWorkLoop({
    look,
    onFailure(error) {
      tellTrouble(error)
      return WEBHOOK_LOOK_MS
    },
    stopping: stopping.signal,
  })

  return {
    start: loop.start,
    wake() {
      // An expiry may have been moved, or credit added.
      sweptMs = -Infinity
      loop.wake()
    },
    get failures() {
      return failures
    },
    async waiting() {
      const { outbox, deliveries } = await store.countWaiting()
      return outbox + deliveries
    },
    async stop() {
      stopping.abort()
      await loop.ended()
      const ended = Promise.all(underWay.values())
      await Promise.race([ended, sleep(WEBHOOK_STOP_MS, undefined, { ref: false })])
      stopped.abort()
      await ended
      await store.releaseLeases(holder).catch(tellTrouble)
    },
  }
}
