import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../kernel/clock.ts'
import { limits } from '../kernel/limits.ts'
import type { Log } from '../kernel/log.ts'
import type { SecretSealer } from '../keys/sealed-secret.ts'
import type { EndpointRules } from './endpoint-address.ts'
import { sendWebhook, type TryOutcome } from './send-webhook.ts'
import { signMessage } from './signing-secret.ts'
import { slackBody } from './slack-text.ts'
import type { ClaimedDelivery, DeliveryAttempt, DeliveryTarget, WebhookStore } from './webhook-store.ts'

/** The reason of a failed try, in the `error` of its delivery. */
const ERROR_CHARS_MAX = 200

/** Deliveries of one endpoint under way at once on a node. Further ones wait for their turn. */
export const WEBHOOK_TRIES_MAX = 4

export interface Deliverer {
  readonly store: Pick<WebhookStore, 'claimDeliveries' | 'keepWebhookLease' | 'recordAttempts'>
  readonly clock: Clock
  readonly log: Log
  /** The holder of the leases: names this process and no other. */
  readonly holder: string
  readonly sealer: SecretSealer
  readonly rules: EndpointRules
  readonly dashboardUrl: URL | null
  /** How long a try may take. */
  readonly tryMs: number
  /** The pause of an endpoint at which every try fails while more deliveries are due. */
  readonly failingPauseMs: number
  /** A random number from 0 to 1, for the jitter of retries. */
  chance(): number
  /** Aborted: no more tries are begun. */
  readonly stopping: AbortSignal
  /** Aborted: tries under way are left to be retried by another node, or by the next start. */
  readonly stopped: AbortSignal
  /** A try has failed. */
  onFailure(): void
}

/**
 * Sends the deliveries due at one endpoint until none is left, under a lease that other nodes respect. A few at a time:
 * a receiver that is slow or dead costs a few sockets and delays nothing but its own messages. Each recording brings the
 * endpoint as it is then, so after a deletion, disabling or move only tries that are under way still go to the old URL.
 */
export async function deliverTo(webhookId: string, deliverer: Deliverer): Promise<void> {
  const { store, clock, holder, stopping, stopped } = deliverer
  const lost = new AbortController()
  const end = AbortSignal.any([lost.signal, stopped])
  // A try takes longer than a lease lasts.
  const keeping = setInterval(() => {
    store.keepWebhookLease(holder, webhookId, clock.nowMs()).then(
      (kept) => kept || lost.abort(),
      // A lease that was lost shows when the attempts are recorded.
      () => {},
    )
  }, limits.webhookLeaseMs / 4)
  try {
    while (!stopping.aborted && !lost.signal.aborted) {
      const claimed = await store.claimDeliveries(holder, webhookId, clock.nowMs())
      if (claimed === null) return
      if (claimed.deliveries.length === 0) {
        await store.recordAttempts(holder, webhookId, [], true, clock.nowMs())
        return
      }
      const recorder = new Recorder(claimed.target, deliverer, () => lost.abort())
      await inLanes(claimed.deliveries, async (delivery) => {
        const { target } = recorder
        if (stopping.aborted || end.aborted || target === null) return
        const outcome = await tryDelivery(delivery, target, deliverer, end)
        // The next node, or the next start, retries the delivery.
        if (end.aborted) return
        await recorder.record(attemptOf(delivery, outcome, target, deliverer))
      })
      if (recorder.target === null) return
      // Thousands of deliveries to a dead receiver would keep a core busy: 700 tries a second took half a core.
      if (!recorder.hasDelivered && claimed.deliveries.length >= limits.webhookClaimMax)
        await sleep(deliverer.failingPauseMs, undefined, { signal: stopping }).catch(() => {})
    }
  } finally {
    clearInterval(keeping)
  }
}

async function tryDelivery(
  { eventId, payload }: ClaimedDelivery,
  target: DeliveryTarget,
  { clock, sealer, rules, dashboardUrl, tryMs }: Deliverer,
  end: AbortSignal,
): Promise<TryOutcome> {
  try {
    const body = target.format === 'slack' ? slackBody(payload, dashboardUrl) : payload
    const headers = await signMessage({ id: eventId, body }, target, sealer, clock.nowMs())
    return await sendWebhook({ url: target.url, headers, body }, rules, end, tryMs)
  } catch (error) {
    return { kind: 'failed', reason: (error as Error).message }
  }
}

/** The attempt as the store records it. The log names ids: the URL of an endpoint is often a secret by itself. */
function attemptOf(
  delivery: ClaimedDelivery,
  outcome: TryOutcome,
  { id: webhook, url }: DeliveryTarget,
  { log, chance, onFailure }: Deliverer,
): DeliveryAttempt {
  const { id, eventType: event } = delivery
  const responseStatus = outcome.kind === 'answered' ? outcome.status : null
  if (responseStatus !== null && responseStatus >= 200 && responseStatus < 300)
    return { id, responseStatus, error: null, outcome: { kind: 'succeeded' } }
  onFailure()
  const error = errorOf(outcome)
  const about = { webhook, delivery: id, event, attempt: delivery.attempts + 1, reason: error }
  if (responseStatus === GONE) {
    log.warn(about, 'a webhook is gone, and is disabled')
    return { id, url, responseStatus, error, outcome: { kind: 'gone' } }
  }
  const inMs = pauseAfterMs(delivery.attempts + 1, chance())
  if (inMs === null) {
    log.warn(about, 'a webhook was not delivered, and is not tried again')
    return { id, url, responseStatus, error, outcome: { kind: 'failed' } }
  }
  log.info({ ...about, inMs }, 'a webhook was not delivered, and is tried again')
  return { id, url, responseStatus, error, outcome: { kind: 'retry', inMs } }
}

/** The reason of a failed try, on one line. The line names a host at most: the rest of a URL is a secret. */
function errorOf(outcome: TryOutcome): string {
  if (outcome.kind === 'answered') {
    const isRedirect = outcome.status >= 300 && outcome.status < 400
    return `it answered ${outcome.status}${isRedirect ? ', and redirects are not followed' : ''}`
  }
  const line = outcome.reason
    .replaceAll(/[a-z]+:\/\/\S+/gi, '(URL)')
    .replaceAll(/[\p{C}\s]+/gu, ' ')
    .trim()
  return line.length > ERROR_CHARS_MAX ? `${line.slice(0, ERROR_CHARS_MAX - 1)}…` : line
}

const GONE = 410

/** Attempts that end while others are being recorded are recorded together. */
class Recorder {
  readonly #webhookId: string
  readonly #deliverer: Deliverer
  readonly #onLost: () => void
  #waiting: DeliveryAttempt[] = []
  #recording: Promise<void> | null = null
  /** The endpoint as of the last recording. Null: it is deleted or disabled, and nothing more is sent to it. */
  target: DeliveryTarget | null
  hasDelivered = false

  constructor(target: DeliveryTarget, deliverer: Deliverer, onLost: () => void) {
    this.#webhookId = target.id
    this.target = target
    this.#deliverer = deliverer
    this.#onLost = onLost
  }

  async record(attempt: DeliveryAttempt): Promise<void> {
    if (attempt.outcome.kind === 'gone') this.target = null
    if (attempt.outcome.kind === 'succeeded') this.hasDelivered = true
    this.#waiting.push(attempt)
    while (this.#waiting.includes(attempt)) {
      this.#recording ??= this.#recordAll().finally(() => {
        this.#recording = null
      })
      await this.#recording
    }
  }

  async #recordAll(): Promise<void> {
    const attempts = this.#waiting
    this.#waiting = []
    const { store, holder, clock } = this.#deliverer
    let isRecorded = false
    try {
      const recorded = await store.recordAttempts(holder, this.#webhookId, attempts, false, clock.nowMs())
      isRecorded = recorded.kind === 'recorded'
      // After a 410 the target stays null: this recording may be of tries before the 410.
      if (recorded.kind === 'recorded' && this.target !== null) this.target = recorded.target
    } finally {
      // Deliveries whose attempts were not recorded are sent again, so no more are begun, to keep these duplicates few.
      if (!isRecorded) this.#onLost()
    }
  }
}

/**
 * Events of one key follow each other; events of other keys go at the same time, up to `WEBHOOK_TRIES_MAX` at once. A
 * try that fails is overtaken by later events: an endpoint that refuses one message gets the others.
 */
async function inLanes(
  deliveries: readonly ClaimedDelivery[],
  run: (delivery: ClaimedDelivery) => Promise<void>,
): Promise<void> {
  const lanes = lanesOf(deliveries)
  const worker = async (): Promise<void> => {
    for (let lane = lanes.shift(); lane !== undefined; lane = lanes.shift())
      for (const delivery of lane) await run(delivery)
  }
  // All workers have ended before this endpoint can be claimed again, even if one of them failed.
  const ended = await Promise.allSettled(Array.from({ length: WEBHOOK_TRIES_MAX }, worker))
  for (const result of ended) if (result.status === 'rejected') throw result.reason
}

const KEY_IDS = /"key_[0-9A-HJKMNP-TV-Z]{26}"/g

/** The event of a rotation names two keys, so that it joins their lanes. */
function lanesOf(deliveries: readonly ClaimedDelivery[]): ClaimedDelivery[][] {
  const lanes = new Map<string, ClaimedDelivery[]>()
  for (const delivery of deliveries) {
    const names = delivery.payload.match(KEY_IDS) ?? [delivery.id]
    const joined = new Set(names.map((name) => lanes.get(name) ?? []))
    const lane = [...[...joined].flat(), delivery]
    for (const [name, other] of lanes) if (joined.has(other)) lanes.set(name, lane)
    for (const name of names) lanes.set(name, lane)
  }
  return [...new Set(lanes.values())]
}

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS

/** The pauses between a failed try and its retry. A try that fails after the last pause has failed the delivery. */
const PAUSES_MS = [
  5 * SECOND_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  10 * HOUR_MS,
]

/** Jitter of up to a tenth more, so that deliveries that failed together are not retried at one instant. */
const JITTER = 0.1

/** The pause after this number of tries, or null after the last try. `chance` is from 0 to 1. */
export function pauseAfterMs(tries: number, chance: number): number | null {
  const pause = PAUSES_MS[tries - 1]
  return pause === undefined ? null : Math.round(pause * (1 + JITTER * chance))
}
