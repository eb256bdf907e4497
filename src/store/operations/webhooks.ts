import { changesOf, webhookObject } from '../../api/objects.ts'
import { limits } from '../../kernel/limits.ts'
import type { Actor, DisabledReason, EventType, Idempotency, WebhookFormat } from '../../kernel/vocabulary.ts'
import type { Page } from '../../keys/key-store.ts'
import type {
  NewWebhook,
  SecretRotation,
  WebhookChanges,
  WebhookCreation,
  WebhookQuery,
  WebhookRecord,
} from '../../webhooks/webhook-store.ts'
import { bool, namesOf, number, numberOrNull, present, type Row, text, textOrNull } from '../rows.ts'
import { recordEvent } from './events.ts'
import { claimKey, findReplay } from './idempotency.ts'
import { atomic, currentTime, type Operation } from './operation.ts'
import { and, FOR_UPDATE, join, json, onPostgres, raw, type Sql, sql } from './sql.ts'

/** Webhook endpoints: every statement that changes one, but for the outcomes of deliveries, is in this file. */

export const WEBHOOK = raw(
  `id, account_id, url, events, description, format, enabled, disabled_reason, created_at_ms, last_delivery_at_ms,
   last_status`,
)

export function webhookRecord(row: Row): WebhookRecord {
  return {
    id: text(row, 'id'),
    accountId: text(row, 'account_id'),
    url: text(row, 'url'),
    events: namesOf(row['events']) ?? [],
    description: text(row, 'description'),
    format: text(row, 'format') as WebhookFormat,
    enabled: bool(row, 'enabled'),
    disabledReason: textOrNull(row, 'disabled_reason') as DisabledReason | null,
    createdAtMs: number(row, 'created_at_ms'),
    lastDeliveryAtMs: numberOrNull(row, 'last_delivery_at_ms'),
    lastStatus: numberOrNull(row, 'last_status'),
  }
}

export const createWebhook = atomic(function* (
  webhook: NewWebhook,
  idempotency: Idempotency | null,
  actor: Actor,
): Operation<WebhookCreation> {
  const { id, accountId, url, events, description, format, secret, createdAtMs } = webhook
  // Commands that create endpoints at the same time follow each other, or the account would get more than it may have.
  yield onPostgres(sql`SELECT pg_advisory_xact_lock(${WEBHOOKS_LOCK})`)
  const [row] = yield sql`SELECT count(*) AS count FROM webhook WHERE account_id = ${accountId}`
  const isFull = number(present(row), 'count') >= limits.webhooksMax
  const read = (made: string) => getWebhook(accountId, made)
  const replay = isFull ? yield* findReplay(idempotency, read) : yield* claimKey(idempotency, id, read)
  if (replay !== null) return replay
  if (isFull) return { kind: 'too_many' }
  const value: WebhookRecord = {
    ...{ id, accountId, url, events, description, format, createdAtMs },
    ...{ enabled: true, disabledReason: null, lastDeliveryAtMs: null, lastStatus: null },
  }
  // The new endpoint does not receive the event of its own creation.
  yield* recordWebhook('webhook.created', value, actor, createdAtMs)
  yield sql`
    INSERT INTO webhook (id, account_id, url, events, description, format, created_at_ms, secret)
    VALUES (${id}, ${accountId}, ${url}, ${json(events)}, ${description}, ${format}, ${createdAtMs}, ${secret})`
  return { kind: 'done', value }
})

/** Any number that nothing else in the database uses. */
const WEBHOOKS_LOCK = 746_003

export function* recordWebhook(
  type: EventType & `webhook.${string}`,
  webhook: WebhookRecord,
  actor: Actor,
  atMs: number,
  more: object = {},
): Operation<string | null> {
  const data = { webhook: webhookObject(webhook), ...more }
  const only = type === 'webhook.test' ? { onlyWebhookId: webhook.id } : {}
  return yield* recordEvent({ accountId: webhook.accountId, type, actor, data, ...only }, atMs)
}

export function* getWebhook(accountId: string, id: string): Operation<WebhookRecord | null> {
  return yield* readWebhook(accountId, id, sql``)
}

function* readWebhook(accountId: string, id: string, lock: Sql): Operation<WebhookRecord | null> {
  const [row] =
    yield sql`SELECT ${WEBHOOK} FROM webhook WHERE account_id = ${accountId} AND id = ${id} ${lock}`
  return row === undefined ? null : webhookRecord(row)
}

export function* listWebhooks({ accountId, after, limit }: WebhookQuery): Operation<Page<WebhookRecord>> {
  const where = [
    ...(accountId === null ? [sql`true`] : [sql`account_id = ${accountId}`]),
    ...(after === null ? [] : [sql`id < ${after}`]),
  ]
  const rows = yield sql`
    SELECT ${WEBHOOK} FROM webhook WHERE ${and(where)} ORDER BY id DESC LIMIT ${limit + 1}`
  return { rows: rows.slice(0, limit).map(webhookRecord), more: rows.length > limit }
}

export const updateWebhook = atomic(function* (
  accountId: string,
  id: string,
  changes: WebhookChanges,
  atMs: number,
  actor: Actor,
): Operation<WebhookRecord | null> {
  const before = yield* readWebhook(accountId, id, FOR_UPDATE)
  if (before === null) return null
  const { url, events, description, format, enabled } = changes
  const set: Sql[] = [sql`id = webhook.id`]
  if (url !== undefined) set.push(sql`url = ${url}`)
  if (events !== undefined) set.push(sql`events = ${json(events)}`)
  if (description !== undefined) set.push(sql`description = ${description}`)
  if (format !== undefined) set.push(sql`format = ${format}`)
  if (enabled === true) set.push(sql`enabled = true, disabled_reason = NULL`)
  if (enabled === false)
    set.push(sql`enabled = false, disabled_reason = CASE WHEN enabled THEN 'manual' ELSE disabled_reason END`)
  // Failures from before say nothing about another URL, nor about an endpoint that an operator has repaired.
  if (url !== undefined || enabled === true) set.push(sql`failing_since_ms = NULL`)
  const [row] = yield sql`UPDATE webhook SET ${join(set)} WHERE id = ${id} RETURNING ${WEBHOOK}`
  const after = webhookRecord(present(row))
  if (before.enabled && !after.enabled) yield* giveUpDeliveries(id)
  const changed = changesOf(webhookObject(before), webhookObject(after))
  if (changed !== null) yield* recordWebhook('webhook.updated', after, actor, atMs, { changes: changed })
  return after
})

/** Deliveries that end with their endpoint stay in its list, and can be redelivered once it is enabled. */
export function* giveUpDeliveries(webhookId: string): Operation<void> {
  yield sql`
    UPDATE webhook_delivery SET status = 'failed', next_attempt_at_ms = NULL,
      error = coalesce(error, 'the webhook was disabled before it was sent')
    WHERE webhook_id = ${webhookId} AND status = 'pending'`
}

/** The deliveries of a deleted endpoint are deleted when they are old: they may be many, and nothing shows them any more. */
export const deleteWebhook = atomic(function* (
  accountId: string,
  id: string,
  atMs: number,
  actor: Actor,
): Operation<boolean> {
  const [row] = yield sql`
    DELETE FROM webhook WHERE account_id = ${accountId} AND id = ${id} RETURNING ${WEBHOOK}`
  if (row === undefined) return false
  yield* giveUpDeliveries(id)
  yield* recordWebhook('webhook.deleted', webhookRecord(row), actor, atMs)
  return true
})

export const rotateWebhookSecret = atomic(function* (
  accountId: string,
  id: string,
  secret: Uint8Array,
  atMs: number,
  actor: Actor,
): Operation<SecretRotation> {
  const [row] = yield sql`
    SELECT older_until_ms FROM webhook WHERE account_id = ${accountId} AND id = ${id} ${FOR_UPDATE}`
  if (row === undefined) return { kind: 'none' }
  const nowMs = yield* currentTime(atMs)
  const untilMs = numberOrNull(row, 'older_until_ms') ?? 0
  if (untilMs > nowMs) return { kind: 'too_soon', untilMs }
  const [rotated] = yield sql`
    UPDATE webhook SET older_secret = former_secret, older_until_ms = former_until_ms, former_secret = secret,
      former_until_ms = ${nowMs + limits.webhookOldSecretMs}, secret = ${secret}
    WHERE id = ${id} RETURNING ${WEBHOOK}`
  const value = webhookRecord(present(rotated))
  const changes = { secret: { old: null, new: null } }
  yield* recordWebhook('webhook.updated', value, actor, atMs, { changes })
  return { kind: 'done', value }
})
