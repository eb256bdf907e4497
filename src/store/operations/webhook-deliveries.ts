import { limits } from '../../kernel/limits.ts'
import {
  type Actor,
  type DeliveryStatus,
  type DisabledReason,
  SYSTEM,
  type WebhookFormat,
} from '../../kernel/vocabulary.ts'
import type { Page } from '../../keys/key-store.ts'
import type {
  ClaimedDelivery,
  DeliveryAttempt,
  DeliveryQuery,
  DeliveryRecord,
  Queued,
} from '../../webhooks/webhook-store.ts'
import { number, numberOrNull, present, type Row, text, textOrNull } from '../rows.ts'
import { EVENT, eventRecord } from './events.ts'
import { atomic, currentTime, type Operation } from './operation.ts'
import { and, FOR_UPDATE, join, onPostgres, raw, sql } from './sql.ts'
import { getWebhook, giveUpDeliveries, recordWebhook, WEBHOOK, webhookRecord } from './webhooks.ts'

/** Deliveries: claims of those that are due, and the outcomes of attempts. */

const DELIVERY = raw(
  `d.id, d.webhook_id, d.event_id, e.type AS event_type, d.status, d.attempts, d.response_status, d.error,
   d.last_attempt_at_ms, d.next_attempt_at_ms, d.created_at_ms`,
)
const WITH_EVENT = raw('webhook_delivery d JOIN event e ON e.id = d.event_id')

export function* listDeliveries(query: DeliveryQuery): Operation<Page<DeliveryRecord>> {
  const { accountId, webhookId, status, after, limit } = query
  const where = [
    sql`d.webhook_id = (SELECT id FROM webhook WHERE account_id = ${accountId} AND id = ${webhookId})`,
    ...(status === null ? [] : [sql`d.status = ${status}`]),
    ...(after === null ? [] : [sql`d.id < ${after}`]),
  ]
  const rows = yield sql`
    SELECT ${DELIVERY} FROM ${WITH_EVENT} WHERE ${and(where)} ORDER BY d.id DESC LIMIT ${limit + 1}`
  return { rows: rows.slice(0, limit).map(deliveryRecord), more: rows.length > limit }
}

function deliveryRecord(row: Row): DeliveryRecord {
  return {
    id: text(row, 'id'),
    webhookId: text(row, 'webhook_id'),
    eventId: text(row, 'event_id'),
    eventType: text(row, 'event_type'),
    status: text(row, 'status') as DeliveryStatus,
    attempts: number(row, 'attempts'),
    responseStatus: numberOrNull(row, 'response_status'),
    error: textOrNull(row, 'error'),
    lastAttemptAtMs: numberOrNull(row, 'last_attempt_at_ms'),
    nextAttemptAtMs: numberOrNull(row, 'next_attempt_at_ms'),
    createdAtMs: number(row, 'created_at_ms'),
  }
}

export const redeliver = atomic(function* (
  accountId: string,
  webhookId: string,
  deliveryId: string,
  atMs: number,
): Operation<Queued> {
  const webhook = yield* getWebhook(accountId, webhookId)
  if (webhook === null) return { kind: 'none' }
  const isIts = sql`id = ${deliveryId} AND webhook_id = ${webhookId}`
  if (!webhook.enabled) {
    const found = yield sql`SELECT id FROM webhook_delivery WHERE ${isIts}`
    return { kind: found.length === 0 ? 'none' : 'disabled' }
  }
  const nowMs = yield* currentTime(atMs)
  yield sql`
    UPDATE webhook_delivery SET status = 'pending', next_attempt_at_ms = ${nowMs},
      attempts = CASE WHEN status = 'pending' THEN attempts ELSE 0 END
    WHERE ${isIts}`
  return yield* queued(sql`d.id = ${deliveryId} AND d.webhook_id = ${webhookId}`)
})

export const queueTest = atomic(function* (
  accountId: string,
  webhookId: string,
  atMs: number,
  actor: Actor,
): Operation<Queued> {
  const webhook = yield* getWebhook(accountId, webhookId)
  if (webhook === null) return { kind: 'none' }
  if (!webhook.enabled) return { kind: 'disabled' }
  const eventId = yield* recordWebhook('webhook.test', webhook, actor, atMs)
  return yield* queued(sql`d.event_id = ${eventId}`)
})

function* queued(where: ReturnType<typeof sql>): Operation<Queued> {
  const [row] = yield sql`SELECT ${DELIVERY} FROM ${WITH_EVENT} WHERE ${where}`
  return row === undefined ? { kind: 'none' } : { kind: 'done', value: deliveryRecord(row) }
}

/** Deliveries that a node has under way at once for one endpoint, and the most that it claims together. */
const OF_ENDPOINT_MAX = 4
const CLAIMED_MAX = 64

/** Due deliveries that a claim reads: an endpoint with many must not starve the others. */
const LOOKED_AT = 500

export const claimDeliveries = atomic(function* (
  underWay: readonly (readonly [webhookId: string, deliveries: number])[],
  atMs: number,
): Operation<readonly ClaimedDelivery[]> {
  const nowMs = yield* currentTime(atMs)
  const ofEndpoint = new Map(underWay)
  const busy = underWay.filter(([, deliveries]) => deliveries >= OF_ENDPOINT_MAX).map(([id]) => id)
  const due = yield sql`
    SELECT d.id, d.webhook_id FROM webhook_delivery d JOIN webhook w ON w.id = d.webhook_id AND w.enabled
    WHERE d.status = 'pending' AND d.next_attempt_at_ms <= ${nowMs} AND d.webhook_id NOT IN (${join(['', ...busy])})
    ORDER BY d.next_attempt_at_ms, d.id LIMIT ${LOOKED_AT} ${onPostgres('FOR NO KEY UPDATE OF d SKIP LOCKED')}`
  const ids = due
    .filter((row) => {
      const claimed = (ofEndpoint.get(text(row, 'webhook_id')) ?? 0) + 1
      ofEndpoint.set(text(row, 'webhook_id'), claimed)
      return claimed <= OF_ENDPOINT_MAX
    })
    .slice(0, CLAIMED_MAX)
    .map((row) => text(row, 'id'))
  if (ids.length === 0) return []
  yield sql`
    UPDATE webhook_delivery SET next_attempt_at_ms = ${nowMs + limits.webhookClaimMs} WHERE id IN (${join(ids)})`
  const rows = yield sql`
    SELECT d.id AS delivery_id, d.attempts, ${EVENT}, w.id AS webhook_id, w.url, w.format, w.secret,
      CASE WHEN w.former_until_ms > ${nowMs} THEN w.former_secret END AS former_secret,
      CASE WHEN w.older_until_ms > ${nowMs} THEN w.older_secret END AS older_secret
    FROM ${WITH_EVENT} JOIN webhook w ON w.id = d.webhook_id WHERE d.id IN (${join(ids)}) ORDER BY d.id`
  return rows.map((row) => ({
    id: text(row, 'delivery_id'),
    attempts: number(row, 'attempts'),
    event: eventRecord(row),
    webhook: {
      ...{ id: text(row, 'webhook_id'), url: text(row, 'url'), format: text(row, 'format') as WebhookFormat },
      secret: row['secret'] as Uint8Array,
      formerSecrets: [row['former_secret'], row['older_secret']].filter((each) => each instanceof Uint8Array),
    },
  }))
})

export function* releaseDeliveries(ids: readonly string[], atMs: number): Operation<void> {
  if (ids.length === 0) return
  const nowMs = yield* currentTime(atMs)
  yield sql`
    UPDATE webhook_delivery SET next_attempt_at_ms = ${nowMs} WHERE status = 'pending' AND id IN (${join(ids)})`
}

export const recordAttempt = atomic(function* (attempt: DeliveryAttempt, atMs: number): Operation<void> {
  const { id, webhookId, url, attempts, responseStatus, error, outcome } = attempt
  const [endpoint] = yield sql`SELECT url FROM webhook WHERE id = ${webhookId} ${FOR_UPDATE}`
  if (endpoint === undefined) return
  const isSuccess = outcome.kind === 'succeeded'
  // A failure at a former URL does not count: the delivery goes to the new one.
  if (!isSuccess && text(endpoint, 'url') !== url) return yield* releaseDeliveries([id], atMs)
  const nowMs = yield* currentTime(atMs)
  const status = outcome.kind === 'retry' ? 'pending' : isSuccess ? 'succeeded' : 'failed'
  const nextMs = outcome.kind === 'retry' ? nowMs + outcome.inMs : null
  const recorded = yield sql`
    UPDATE webhook_delivery SET status = ${status}, attempts = attempts + 1, response_status = ${responseStatus},
      error = ${error}, last_attempt_at_ms = ${nowMs}, next_attempt_at_ms = ${nextMs}
    WHERE id = ${id} AND status = 'pending' AND attempts = ${attempts} RETURNING id`
  if (recorded.length === 0) return
  const failing = isSuccess ? sql`NULL` : sql`coalesce(failing_since_ms, ${nowMs})`
  const [webhook] = yield sql`
    UPDATE webhook SET last_delivery_at_ms = ${nowMs}, last_status = ${responseStatus}, failing_since_ms = ${failing}
    WHERE id = ${webhookId} RETURNING failing_since_ms`
  const failingSinceMs = numberOrNull(present(webhook), 'failing_since_ms')
  const isFailing = failingSinceMs !== null && failingSinceMs + limits.webhookFailingMs <= nowMs
  if (outcome.kind === 'gone' || isFailing)
    yield* disable(webhookId, outcome.kind === 'gone' ? 'gone' : 'failing', atMs)
})

function* disable(webhookId: string, reason: DisabledReason, atMs: number): Operation<void> {
  const [row] = yield sql`
    UPDATE webhook SET enabled = false, disabled_reason = ${reason} WHERE id = ${webhookId} AND enabled
    RETURNING ${WEBHOOK}`
  if (row === undefined) return
  yield* giveUpDeliveries(webhookId)
  yield* recordWebhook('webhook.disabled', webhookRecord(row), SYSTEM, atMs)
}

export function* countWaiting(): Operation<number> {
  const [row] = yield sql`SELECT count(*) AS waiting FROM webhook_delivery WHERE status = 'pending'`
  return number(present(row), 'waiting')
}
