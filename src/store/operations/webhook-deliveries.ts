import type { Idempotency } from '../../kernel/idempotency.ts'
import { createUlidSource } from '../../kernel/ids.ts'
import { limits } from '../../kernel/limits.ts'
import type { DeliveryStatus, DisabledReason } from '../../kernel/vocabulary.ts'
import type { Page } from '../../keys/key-store.ts'
import {
  type ClaimedDeliveries,
  type DeliveryAttempt,
  type DeliveryQuery,
  type DeliveryRecord,
  type DeliveryTarget,
  type RecordedAttempts,
  type Redelivery,
  WEBHOOK_TEST,
  type WebhookRecord,
} from '../../webhooks/webhook-store.ts'
import { number, numberOrNull, present, type Row, text, textOrNull } from '../rows.ts'
import { claimKey, findReplay, keepSubject } from './idempotency.ts'
import { hasLease, releaseLease, takeLease } from './lease.ts'
import { atomic, currentTime, type Operation } from './operation.ts'
import { isTold, tell } from './outbox.ts'
import { and, FOR_UPDATE, now, onPostgres, raw, sql } from './sql.ts'
import { queueDelivery } from './webhook-relay.ts'
import { getWebhook, WEBHOOK, webhookRecord } from './webhooks.ts'

/** Deliveries: which are due, which node has their lease, and the outcomes of attempts. */

const DELIVERY = raw(
  `id, webhook_id, event_id, event_type, status, attempts, response_status, error, last_attempt_at_ms,
   next_attempt_at_ms, created_at_ms`,
)

export function* listDeliveries(query: DeliveryQuery): Operation<Page<DeliveryRecord>> {
  const { accountId, webhookId, status, after, limit } = query
  const where = [
    sql`webhook_id = (SELECT id FROM webhook WHERE account_id = ${accountId} AND id = ${webhookId})`,
    ...(status === null ? [] : [sql`status = ${status}`]),
    ...(after === null ? [] : [sql`id < ${after}`]),
  ]
  const rows = yield sql`
    SELECT ${DELIVERY} FROM webhook_delivery WHERE ${and(where)} ORDER BY id DESC LIMIT ${limit + 1}`
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
  idempotency: Idempotency | null,
): Operation<Redelivery> {
  const webhook = yield* getWebhook(accountId, webhookId)
  if (webhook === null) return { kind: 'none' }
  const [event] = yield sql`
    SELECT e.id, e.type, d.status FROM webhook_delivery AS d JOIN webhook_event AS e ON e.id = d.event_id
    WHERE d.id = ${deliveryId} AND d.webhook_id = ${webhookId} ${onPostgres('FOR NO KEY UPDATE OF d')}`
  if (event === undefined) return { kind: 'none' }
  return yield* queueOnce(webhook, idempotency, function* () {
    const nowMs = yield* currentTime(atMs)
    // The event outlasts this delivery, however old it is.
    yield sql`UPDATE webhook_event SET created_at_ms = ${nowMs} WHERE id = ${text(event, 'id')}`
    if (text(event, 'status') !== 'pending')
      return yield* queueDelivery(webhookId, { id: text(event, 'id'), type: text(event, 'type') }, nowMs)
    yield sql`UPDATE webhook_delivery SET next_attempt_at_ms = ${nowMs} WHERE id = ${deliveryId}`
    return deliveryId
  })
})

export const queueTest = atomic(function* (
  accountId: string,
  webhookId: string,
  payload: string,
  atMs: number,
  idempotency: Idempotency | null,
): Operation<Redelivery> {
  const webhook = yield* getWebhook(accountId, webhookId)
  if (webhook === null) return { kind: 'none' }
  return yield* queueOnce(webhook, idempotency, function* () {
    const nowMs = yield* currentTime(atMs)
    const id = `evt_${createUlidSource({ nowMs: () => nowMs, monotonicMs: () => nowMs })()}`
    yield sql`
      INSERT INTO webhook_event (id, account_id, type, payload, created_at_ms)
      VALUES (${id}, ${accountId}, ${WEBHOOK_TEST}, ${payload}, ${nowMs})`
    return yield* queueDelivery(webhookId, { id, type: WEBHOOK_TEST }, nowMs)
  })
})

/** `queue` makes a delivery, or makes an existing one due, and gives its id. */
function* queueOnce(
  { id: webhookId, enabled }: WebhookRecord,
  idempotency: Idempotency | null,
  queue: () => Operation<string>,
): Operation<Redelivery> {
  const read = function* (id: string): Operation<DeliveryRecord | null> {
    const [row] = yield sql`
      SELECT ${DELIVERY} FROM webhook_delivery WHERE id = ${id} AND webhook_id = ${webhookId}`
    return row === undefined ? null : deliveryRecord(row)
  }
  const replay = enabled ? yield* claimKey(idempotency, '', read) : yield* findReplay(idempotency, read)
  if (replay !== null) return replay
  if (!enabled) return { kind: 'disabled' }
  const id = yield* queue()
  yield* keepSubject(idempotency, id)
  const delivery = yield* read(id)
  if (delivery === null) throw new Error('a delivery is gone that was just queued')
  return { kind: 'done', value: delivery }
}

export function* claimWebhooks(holder: string, limit: number, atMs: number): Operation<readonly string[]> {
  const due = yield sql`
    SELECT id FROM (
      SELECT w.id, (SELECT min(next_attempt_at_ms) FROM webhook_delivery
        WHERE webhook_id = w.id AND status = 'pending') AS due_at_ms
      FROM webhook AS w LEFT JOIN webhook_lease AS l ON l.name = w.id
      WHERE w.enabled AND (l.holder IS NULL OR l.holder = ${holder} OR l.until_ms <= ${now(atMs)})) AS endpoint
    WHERE due_at_ms <= ${now(atMs)} ORDER BY due_at_ms, id LIMIT ${limit}`
  const taken: string[] = []
  for (const row of due) {
    const id = text(row, 'id')
    if (yield* takeLease(id, holder, atMs)) taken.push(id)
  }
  return taken
}

export const claimDeliveries = atomic(function* (
  holder: string,
  webhookId: string,
  atMs: number,
): Operation<ClaimedDeliveries | null> {
  if (!(yield* takeLease(webhookId, holder, atMs))) return null
  const target = yield* readTarget(webhookId, atMs)
  if (target === null) {
    yield* releaseLease(webhookId, holder)
    return null
  }
  const rows = yield sql`
    SELECT d.id, d.event_id, d.event_type, d.attempts, e.payload
    FROM webhook_delivery AS d JOIN webhook_event AS e ON e.id = d.event_id
    WHERE d.webhook_id = ${webhookId} AND d.status = 'pending' AND d.next_attempt_at_ms <= ${now(atMs)}
    ORDER BY d.next_attempt_at_ms, d.id LIMIT ${limits.webhookClaimMax}`
  const deliveries = rows.map((due) => ({
    id: text(due, 'id'),
    eventId: text(due, 'event_id'),
    eventType: text(due, 'event_type'),
    payload: text(due, 'payload'),
    attempts: number(due, 'attempts'),
  }))
  return { target, deliveries }
})

/** Null: the endpoint is deleted, or disabled. */
function* readTarget(webhookId: string, atMs: number): Operation<DeliveryTarget | null> {
  const [row] = yield sql`
    SELECT ${WEBHOOK}, secret, CASE WHEN former_until_ms > ${now(atMs)} THEN former_secret END AS former_secret,
      CASE WHEN older_until_ms > ${now(atMs)} THEN older_secret END AS older_secret
    FROM webhook WHERE id = ${webhookId} AND enabled`
  if (row === undefined) return null
  return {
    ...webhookRecord(row),
    secret: row['secret'] as Uint8Array,
    formerSecrets: [row['former_secret'], row['older_secret']].filter(
      (secret) => secret instanceof Uint8Array,
    ),
  }
}

export const recordAttempts = atomic(function* (
  holder: string,
  webhookId: string,
  tried: readonly DeliveryAttempt[],
  release: boolean,
  atMs: number,
): Operation<RecordedAttempts> {
  if (!(yield* hasLease(webhookId, holder, atMs))) return { kind: 'lost' }
  const [endpoint] = yield sql`SELECT url FROM webhook WHERE id = ${webhookId} ${FOR_UPDATE}`
  // A failure at a former address is not recorded: its delivery stays due.
  const attempts = tried.filter(
    ({ url, outcome }) => outcome.kind === 'succeeded' || url === undefined || url === endpoint?.['url'],
  )
  const nowMs = yield* currentTime(atMs)
  let failingSinceMs: number | null | undefined
  for (const { id, responseStatus, error, outcome } of attempts) {
    const status =
      outcome.kind === 'retry' ? 'pending' : outcome.kind === 'succeeded' ? 'succeeded' : 'failed'
    const nextMs = outcome.kind === 'retry' ? nowMs + outcome.inMs : null
    yield sql`
      UPDATE webhook_delivery SET status = ${status}, attempts = attempts + 1, response_status = ${responseStatus},
        error = ${error}, last_attempt_at_ms = ${nowMs}, next_attempt_at_ms = ${nextMs}
      WHERE id = ${id} AND webhook_id = ${webhookId} AND status = 'pending'`
    failingSinceMs = yield* noteOutcome(webhookId, responseStatus, outcome.kind === 'succeeded', nowMs)
  }
  const isGone = attempts.some(({ outcome }) => outcome.kind === 'gone')
  const isFailing = typeof failingSinceMs === 'number' && failingSinceMs + limits.webhookFailingMs <= nowMs
  if (isGone || isFailing) yield* disable(webhookId, isGone ? 'gone' : 'failing', atMs)
  if (release) yield* releaseLease(webhookId, holder)
  return { kind: 'recorded', target: yield* readTarget(webhookId, atMs) }
})

/** Notes an attempt at the endpoint. Returns since when there have been only failures; null after a success. */
function* noteOutcome(
  webhookId: string,
  responseStatus: number | null,
  isSuccess: boolean,
  nowMs: number,
): Operation<number | null> {
  const failing = isSuccess ? sql`NULL` : sql`coalesce(failing_since_ms, ${nowMs})`
  const [row] = yield sql`
    UPDATE webhook SET last_delivery_at_ms = ${nowMs}, last_status = ${responseStatus}, failing_since_ms = ${failing}
    WHERE id = ${webhookId} RETURNING failing_since_ms`
  return row === undefined ? null : numberOrNull(row, 'failing_since_ms')
}

/** The other endpoints are told. Deliveries queued for the disabled one are given up by and by, and can be redelivered. */
function* disable(webhookId: string, reason: DisabledReason, atMs: number): Operation<void> {
  const [row] = yield sql`
    UPDATE webhook SET enabled = false, disabled_reason = ${reason} WHERE id = ${webhookId} AND enabled
    RETURNING ${WEBHOOK}`
  if (row === undefined) return
  const webhook = webhookRecord(row)
  const { accountId } = webhook
  if (yield* isTold(accountId))
    yield* tell({ accountId, type: 'webhook.disabled', keyId: null, facts: { webhook } }, now(atMs))
}

/** For metrics. Deliveries to a deleted or disabled endpoint are not counted. An index has pending deliveries by endpoint. */
export function* countWaiting(): Operation<{ readonly outbox: number; readonly deliveries: number }> {
  const [row] = yield sql`
    SELECT (SELECT count(*) FROM webhook_outbox) AS outbox,
      (SELECT count(*) FROM webhook JOIN webhook_delivery AS d ON d.webhook_id = webhook.id
        WHERE enabled AND d.status = 'pending') AS deliveries`
  return { outbox: number(present(row), 'outbox'), deliveries: number(present(row), 'deliveries') }
}
