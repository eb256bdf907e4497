import { changesOf, webhookObject } from '../../api/objects.ts'
import { type Actor, SYSTEM } from '../../kernel/actor.ts'
import type { Idempotency } from '../../kernel/idempotency.ts'
import { limits } from '../../kernel/limits.ts'
import type { DisabledReason, EventType, WebhookFormat } from '../../kernel/vocabulary.ts'
import type { ListQuery, Page } from '../../keys/key-store.ts'
import type {
  ClaimedDelivery,
  DeliveryAttempt,
  DeliveryQuery,
  DeliveryRecord,
  NewWebhook,
  QueuedDelivery,
  WebhookChanges,
  WebhookRecord,
} from '../../webhooks/webhook-store.ts'
import { number, numberOrNull, present, type Row, text } from '../rows.ts'
import { tables } from '../tables.ts'
import { EVENT, eventRecord, failPending, recordEvent } from './events.ts'
import { atomic, columnsEqual, currentTime, type Operation, selectPage } from './operation.ts'
import { runOnce } from './settings.ts'
import { FOR_UPDATE, join, now, onPostgres, raw, type Sql, sql } from './sql.ts'
import { insertInto, updateRow } from './write-rows.ts'

/** Webhook endpoints. Every statement that changes one is in this file, except for delivery outcomes. */

const RECORD = tables.webhook.select([
  'id',
  'accountId',
  'url',
  'events',
  'description',
  'format',
  'enabled',
  'disabledReason',
  'createdAtMs',
  'lastDeliveryAtMs',
  'lastStatus',
])
const WEBHOOK = raw(RECORD.list)

const createWebhook = atomic(function* (webhook: NewWebhook, idempotency: Idempotency | null, actor: Actor) {
  const { id, accountId, createdAtMs } = webhook
  const read = (known: string) => getWebhook(accountId, known)
  return yield* runOnce(idempotency, id, read, function* () {
    // Serialises creations, or the account could exceed its limit.
    yield onPostgres(sql`SELECT id FROM account WHERE id = ${accountId} ${FOR_UPDATE}`)
    const [row] = yield sql`SELECT count(*) AS count FROM webhook WHERE account_id = ${accountId}`
    if (number(present(row), 'count') >= limits.webhooksMax) return { kind: 'too_many' } as const
    const { secret: _, ...shown } = webhook
    const initial = { enabled: true, disabledReason: null, lastDeliveryAtMs: null, lastStatus: null }
    const value: WebhookRecord = { ...shown, ...initial }
    // The new endpoint does not receive the event of its own creation.
    yield* recordWebhookEvent('webhook.created', value, actor, createdAtMs)
    yield insertInto('webhook', [webhook])
    return { kind: 'done', value } as const
  })
})

function* recordWebhookEvent(
  type: EventType & `webhook.${string}`,
  webhook: WebhookRecord,
  actor: Actor,
  atMs: number,
  extra: object = {},
): Operation<string | null> {
  const data = { webhook: webhookObject(webhook), ...extra }
  const only = type === 'webhook.test' ? { onlyWebhookId: webhook.id } : {}
  return yield* recordEvent({ accountId: webhook.accountId, type, actor, data, ...only }, atMs)
}

function* getWebhook(accountId: string, id: string): Operation<WebhookRecord | null> {
  const [row] = yield sql`SELECT ${WEBHOOK} FROM webhook WHERE account_id = ${accountId} AND id = ${id}`
  return row === undefined ? null : RECORD.read(row)
}

function* listWebhooks(query: ListQuery): Operation<Page<WebhookRecord>> {
  const where = columnsEqual({ account_id: query.accountId })
  return yield* selectPage({ select: WEBHOOK, from: raw('webhook'), where }, query, RECORD.read)
}

const updateWebhook = atomic(function* (
  accountId: string,
  id: string,
  changes: WebhookChanges,
  atMs: number,
  actor: Actor,
) {
  yield onPostgres(sql`SELECT id FROM webhook WHERE id = ${id} ${FOR_UPDATE}`)
  const before = yield* getWebhook(accountId, id)
  if (before === null) return null
  const { url, enabled } = changes
  const reason = enabled === false && before.enabled ? 'manual' : before.disabledReason
  yield updateRow('webhook', id, {
    ...changes,
    disabledReason: enabled === true ? null : reason,
    // Earlier failures do not count for a new URL or a re-enabled endpoint.
    failingSinceMs: url !== undefined || enabled === true ? null : undefined,
  })
  const after = (yield* getWebhook(accountId, id)) ?? before
  if (before.enabled && !after.enabled) yield failPendingOf(id)
  const changed = changesOf(webhookObject(before), webhookObject(after))
  if (changed !== null) yield* recordWebhookEvent('webhook.updated', after, actor, atMs, { changes: changed })
  return after
})

/** `failExcess` fails the rest. Failed deliveries can be redelivered once the endpoint is enabled. */
const FAILED_AT_ONCE = 200

const failPendingOf = (webhookId: string): Sql =>
  failPending(sql`webhook_id = ${webhookId}`, 'the webhook was disabled before it was sent', FAILED_AT_ONCE)

/** Leaves the endpoint's deliveries, which may be many. No list shows them, and they are deleted when they expire. */
const deleteWebhook = atomic(function* (accountId: string, id: string, atMs: number, actor: Actor) {
  const [row] = yield sql`
    DELETE FROM webhook WHERE account_id = ${accountId} AND id = ${id} RETURNING ${WEBHOOK}`
  if (row === undefined) return false
  yield failPendingOf(id)
  yield* recordWebhookEvent('webhook.deleted', RECORD.read(row), actor, atMs)
  return true
})

const rotateWebhookSecret = atomic(function* (
  accountId: string,
  id: string,
  secret: Uint8Array,
  atMs: number,
  actor: Actor,
) {
  const nowMs = yield* currentTime(atMs)
  const [rotated] = yield sql`
    UPDATE webhook SET former_secret = secret, former_until_ms = ${nowMs + limits.webhookOldSecretMs}, secret = ${secret}
    WHERE account_id = ${accountId} AND id = ${id} RETURNING ${WEBHOOK}`
  if (rotated === undefined) return null
  const value = RECORD.read(rotated)
  const changes = { secret: { old: null, new: null } }
  yield* recordWebhookEvent('webhook.updated', value, actor, atMs, { changes })
  return value
})

const OWN_COLUMNS = tables.webhookDelivery.select(undefined, 'd')
const DELIVERY = raw(`${OWN_COLUMNS.list}, e.type AS event_type`)
const WITH_EVENT = raw('webhook_delivery d JOIN event e ON e.id = d.event_id')

function deliveryRecord(row: Row): DeliveryRecord {
  return { ...OWN_COLUMNS.read(row), eventType: text(row, 'event_type') }
}

function* listDeliveries(query: DeliveryQuery): Operation<Page<DeliveryRecord>> {
  const { accountId, webhookId, status } = query
  const where = [
    sql`d.webhook_id = (SELECT id FROM webhook WHERE account_id = ${accountId} AND id = ${webhookId})`,
    ...columnsEqual({ 'd.status': status }),
  ]
  const page = { select: DELIVERY, from: WITH_EVENT, where, id: 'd.id' }
  return yield* selectPage(page, query, deliveryRecord)
}

const redeliver = atomic(function* (accountId: string, webhookId: string, deliveryId: string, atMs: number) {
  return yield* queue(accountId, webhookId, function* () {
    const nowMs = yield* currentTime(atMs)
    yield sql`
      UPDATE webhook_delivery SET status = 'pending', next_attempt_at_ms = ${nowMs},
        attempts = CASE WHEN status = 'pending' THEN attempts ELSE 0 END
      WHERE id = ${deliveryId} AND webhook_id = ${webhookId}`
    return sql`d.id = ${deliveryId} AND d.webhook_id = ${webhookId}`
  })
})

const queueTest = atomic(function* (accountId: string, webhookId: string, atMs: number, actor: Actor) {
  return yield* queue(accountId, webhookId, function* (webhook) {
    return sql`d.event_id = ${yield* recordWebhookEvent('webhook.test', webhook, actor, atMs)}`
  })
})

/** Queues a delivery unless its endpoint is disabled. `enqueue` returns the condition that finds the delivery. */
function* queue(
  accountId: string,
  webhookId: string,
  enqueue: (webhook: WebhookRecord) => Operation<Sql>,
): Operation<QueuedDelivery> {
  const webhook = yield* getWebhook(accountId, webhookId)
  if (webhook === null) return { kind: 'none' }
  if (!webhook.enabled) return { kind: 'disabled' }
  const where = yield* enqueue(webhook)
  const [row] = yield sql`SELECT ${DELIVERY} FROM ${WITH_EVENT} WHERE ${where}`
  return row === undefined ? { kind: 'none' } : { kind: 'done', value: deliveryRecord(row) }
}

/** Maximum concurrent deliveries per endpoint and node, and per claim. */
const PER_ENDPOINT_MAX = 4
const CLAIMED_MAX = 64

/** Claims a few deliveries per endpoint, longest waiting first. `running`: this node's deliveries by endpoint. */
const claimDeliveries = atomic(function* (
  running: readonly (readonly [webhookId: string, deliveries: number])[],
  atMs: number,
) {
  const nowMs = yield* currentTime(atMs)
  const slots = new Map(running)
  const busy = running.filter(([, deliveries]) => deliveries >= PER_ENDPOINT_MAX).map(([id]) => id)
  const endpoints = yield sql`
    SELECT id FROM (
      SELECT id, (SELECT min(next_attempt_at_ms) FROM webhook_delivery
        WHERE webhook_id = webhook.id AND status = 'pending') AS first_ms
      FROM webhook WHERE enabled AND id NOT IN (${join(['', ...busy])})) AS w
    WHERE first_ms <= ${nowMs} ORDER BY first_ms, id LIMIT ${CLAIMED_MAX}`
  if (endpoints.length === 0) return []
  const due = endpoints.map((row) => {
    const id = text(row, 'id')
    return sql`
      SELECT id FROM (
        SELECT id FROM webhook_delivery WHERE webhook_id = ${id} AND status = 'pending' AND next_attempt_at_ms <= ${nowMs}
        ORDER BY next_attempt_at_ms, id LIMIT ${PER_ENDPOINT_MAX - (slots.get(id) ?? 0)}
        ${onPostgres('FOR NO KEY UPDATE SKIP LOCKED')}) AS due_deliveries`
  })
  const ids = (yield join(due, ' UNION ALL ')).slice(0, CLAIMED_MAX).map((row) => text(row, 'id'))
  if (ids.length === 0) return []
  yield sql`
    UPDATE webhook_delivery SET next_attempt_at_ms = ${nowMs + limits.webhookClaimMs} WHERE id IN (${join(ids)})`
  const rows = yield sql`
    SELECT d.id AS delivery_id, d.attempts, ${EVENT}, w.id AS webhook_id, w.url, w.format, w.secret,
      CASE WHEN w.former_until_ms > ${nowMs} THEN w.former_secret END AS former_secret
    FROM ${WITH_EVENT} JOIN webhook w ON w.id = d.webhook_id WHERE d.id IN (${join(ids)}) ORDER BY d.id`
  return rows.map(claimedDelivery)
})

function claimedDelivery(row: Row): ClaimedDelivery {
  return {
    id: text(row, 'delivery_id'),
    attempts: number(row, 'attempts'),
    event: eventRecord(row),
    webhook: {
      id: text(row, 'webhook_id'),
      url: text(row, 'url'),
      format: text(row, 'format') as WebhookFormat,
      secret: row['secret'] as Uint8Array,
      formerSecret: row['former_secret'] as Uint8Array | null,
    },
  }
}

function* releaseDelivery(id: string, atMs: number): Operation<void> {
  yield sql`
    UPDATE webhook_delivery SET next_attempt_at_ms = ${now(atMs)} WHERE status = 'pending' AND id = ${id}`
}

const recordAttempt = atomic(function* (attempt: DeliveryAttempt, atMs: number) {
  const { id, webhookId, url, attempts, responseStatus, responseBody, error, outcome } = attempt
  const [endpoint] = yield sql`SELECT url FROM webhook WHERE id = ${webhookId} ${FOR_UPDATE}`
  if (endpoint === undefined) return
  const isSuccess = outcome.kind === 'succeeded'
  // The URL has changed since the attempt, so this failure does not count. The delivery is sent to the new URL.
  if (!isSuccess && text(endpoint, 'url') !== url) return yield* releaseDelivery(id, atMs)
  const nowMs = yield* currentTime(atMs)
  const status = outcome.kind === 'retry' ? 'pending' : isSuccess ? 'succeeded' : 'failed'
  const nextMs = outcome.kind === 'retry' ? nowMs + outcome.inMs : null
  const recorded = yield sql`
    UPDATE webhook_delivery SET status = ${status}, attempts = attempts + 1, response_status = ${responseStatus},
      response_body = ${responseBody}, error = ${error}, last_attempt_at_ms = ${nowMs}, next_attempt_at_ms = ${nextMs}
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
  yield failPendingOf(webhookId)
  yield* recordWebhookEvent('webhook.disabled', RECORD.read(row), SYSTEM, atMs)
}

function* countWaiting(): Operation<number> {
  const [row] = yield sql`SELECT count(*) AS waiting FROM webhook_delivery WHERE status = 'pending'`
  return number(present(row), 'waiting')
}

export const WEBHOOKS = {
  brief: {
    createWebhook,
    getWebhook,
    listWebhooks,
    updateWebhook,
    deleteWebhook,
    rotateWebhookSecret,
    redeliver,
    queueTest,
    claimDeliveries,
    releaseDelivery,
    recordAttempt,
  },
  reads: { listDeliveries, countWaiting },
}
