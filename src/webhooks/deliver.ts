import { randomBytes } from 'node:crypto'
import type { Clock } from '../kernel/clock.ts'
import type { Log } from '../kernel/log.ts'
import { Secret } from '../kernel/secret.ts'
import type { SecretSealer } from '../keys/secrets.ts'
import type { EndpointRules } from './endpoint-address.ts'
import { type AttemptOutcome, sendWebhook } from './send-webhook.ts'
import { slackBody } from './slack-text.ts'
import {
  type ClaimedDelivery,
  type DeliveryAttempt,
  type DeliveryTarget,
  type EventRecord,
  readEventData,
} from './webhook-store.ts'

const ERROR_CHARS_MAX = 200

export interface Deliverer {
  readonly clock: Clock
  readonly log: Log
  readonly sealer: SecretSealer
  readonly rules: EndpointRules
  readonly dashboardUrl: URL | null
  readonly tryMs: number
  chance(): number
}

/** Null: `stop` aborted the attempt, so its outcome is unknown. */
export async function attemptDelivery(
  delivery: ClaimedDelivery,
  deliverer: Deliverer,
  stop: AbortSignal,
): Promise<DeliveryAttempt | null> {
  const outcome = await signAndSend(delivery, deliverer, stop)
  return stop.aborted ? null : attemptOf(delivery, outcome, deliverer)
}

async function signAndSend(
  { event, webhook }: ClaimedDelivery,
  { clock, sealer, rules, dashboardUrl, tryMs }: Deliverer,
  stop: AbortSignal,
): Promise<AttemptOutcome> {
  try {
    const payload = payloadOf(event)
    const body = webhook.format === 'slack' ? slackBody(payload, dashboardUrl) : payload
    const headers = await signMessage({ id: event.id, body }, webhook, sealer, clock.nowMs())
    return await sendWebhook({ url: webhook.url, headers, body }, rules, stop, tryMs)
  } catch (error) {
    return { kind: 'failed', reason: (error as Error).message }
  }
}

/** The signed payload, the same at every attempt. */
export function payloadOf(event: EventRecord): string {
  const { type, createdAtMs, accountId, actor } = event
  const timestamp = new Date(createdAtMs).toISOString()
  return JSON.stringify({ type, timestamp, account_id: accountId, actor, data: readEventData(event, false) })
}

/** The attempt as the database records it. The log shows only ids, because the URL of a webhook is often a secret. */
function attemptOf(
  { id, attempts, event, webhook }: ClaimedDelivery,
  outcome: AttemptOutcome,
  { log, chance }: Deliverer,
): DeliveryAttempt {
  const responseStatus = outcome.kind === 'answered' ? outcome.status : null
  const responseBody = outcome.kind === 'answered' ? outcome.body : null
  const attempt = { id, webhookId: webhook.id, url: webhook.url, attempts, responseStatus, responseBody }
  if (responseStatus !== null && responseStatus >= 200 && responseStatus < 300)
    return { ...attempt, error: null, outcome: { kind: 'succeeded' } }
  const error = errorOf(outcome)
  const about = { webhook: webhook.id, delivery: id, event: event.type, attempt: attempts + 1, reason: error }
  if (responseStatus === GONE) {
    log.warn(about, 'a webhook answered 410 and is disabled')
    return { ...attempt, error, outcome: { kind: 'gone' } }
  }
  const inMs = pauseAfterMs(attempts + 1, chance())
  if (inMs === null) {
    log.warn(about, 'a webhook delivery has failed and is not retried')
    return { ...attempt, error, outcome: { kind: 'failed' } }
  }
  log.info({ ...about, inMs }, 'a webhook delivery has failed and will be retried')
  return { ...attempt, error, outcome: { kind: 'retry', inMs } }
}

const GONE = 410

/** Why an attempt failed, on one line. The text may name the host, but not the rest of the URL, which may be secret. */
function errorOf(outcome: AttemptOutcome): string {
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

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS

/** Pauses before each retry. If the attempt after the last pause fails, the delivery has failed. */
const PAUSES_MS = [
  5 * SECOND_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  10 * HOUR_MS,
]

/** Pauses are up to a tenth longer, so that deliveries that failed together are not retried together. */
const JITTER = 0.1

/** The pause after this number of attempts, or null after the last. `chance` is from 0 to 1. */
export function pauseAfterMs(attempts: number, chance: number): number | null {
  const pause = PAUSES_MS[attempts - 1]
  return pause === undefined ? null : Math.round(pause * (1 + JITTER * chance))
}

/** Standard Webhooks asks for 24 to 64 bytes. */
const SECRET_BYTES = 32

export function mintSigningSecret(): Secret {
  return new Secret(`whsec_${randomBytes(SECRET_BYTES).toString('base64')}`)
}

/** `id`: the event's id at every attempt, so that receivers recognise duplicates. After a rotation, two secrets sign. */
export async function signMessage(
  { id, body }: { readonly id: string; readonly body: string },
  target: Pick<DeliveryTarget, 'id' | 'secret' | 'formerSecret'>,
  sealer: SecretSealer,
  nowMs: number,
): Promise<Record<string, string>> {
  const { Webhook } = await import('standardwebhooks')
  const { secret, formerSecret } = target
  const signatures = (formerSecret === null ? [secret] : [secret, formerSecret]).map((each) => {
    return new Webhook(sealer.open(each, target.id).reveal()).sign(id, new Date(nowMs), body)
  })
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(nowMs / 1_000)),
    'webhook-signature': signatures.join(' '),
  }
}
