import type { Idempotency } from '../../kernel/idempotency.ts'
import { limits } from '../../kernel/limits.ts'
import type { Nanos } from '../../kernel/money.ts'
import type { DisabledReason, WebhookFormat } from '../../kernel/vocabulary.ts'
import type { Page } from '../../keys/key-store.ts'
import type {
  NewWebhook,
  SecretRotation,
  WebhookChanges,
  WebhookCreation,
  WebhookQuery,
  WebhookRecord,
} from '../../webhooks/webhook-store.ts'
import { bool, number, numberOrNull, present, type Row, text, textOrNull } from '../rows.ts'
import { claimKey, findReplay } from './idempotency.ts'
import { modelsOf as namesOf } from './keys.ts'
import { atomic, currentTime, type Operation } from './operation.ts'
import { BALANCE_LOW, BUDGET_THRESHOLDS } from './outbox.ts'
import { writeSetting } from './settings.ts'
import { and, FOR_UPDATE, join, json, now, onPostgres, raw, type Sql, sql } from './sql.ts'

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
  const [made] = yield sql`
    INSERT INTO webhook (id, account_id, url, events, description, format, created_at_ms, since_ms, secret)
    VALUES (${id}, ${accountId}, ${url}, ${json(events)}, ${description}, ${format}, ${createdAtMs},
      ${now(createdAtMs)}, ${secret})
    RETURNING ${WEBHOOK}`
  return { kind: 'done', value: webhookRecord(present(made)) }
})

/** Any number that nothing else in the database uses. */
const WEBHOOKS_LOCK = 746_003

export function* getWebhook(accountId: string, id: string): Operation<WebhookRecord | null> {
  const [row] = yield sql`SELECT ${WEBHOOK} FROM webhook WHERE account_id = ${accountId} AND id = ${id}`
  return row === undefined ? null : webhookRecord(row)
}

export function* listWebhooks({ accountId, after, limit }: WebhookQuery): Operation<Page<WebhookRecord>> {
  const where = [sql`account_id = ${accountId}`, ...(after === null ? [] : [sql`id < ${after}`])]
  const rows = yield sql`
    SELECT ${WEBHOOK} FROM webhook WHERE ${and(where)} ORDER BY id DESC LIMIT ${limit + 1}`
  return { rows: rows.slice(0, limit).map(webhookRecord), more: rows.length > limit }
}

export function* updateWebhook(
  accountId: string,
  id: string,
  changes: WebhookChanges,
  atMs: number,
): Operation<WebhookRecord | null> {
  const { url, events, description, format, enabled } = changes
  const set: Sql[] = [sql`id = webhook.id`]
  if (url !== undefined) set.push(sql`url = ${url}`)
  if (events !== undefined) set.push(sql`events = ${json(events)}`)
  if (description !== undefined) set.push(sql`description = ${description}`)
  if (format !== undefined) set.push(sql`format = ${format}`)
  if (enabled === true) {
    set.push(sql`enabled = true, disabled_reason = NULL`)
    set.push(sql`since_ms = CASE WHEN enabled THEN since_ms ELSE ${now(atMs)} END`)
  }
  if (enabled === false)
    set.push(sql`enabled = false, disabled_reason = CASE WHEN enabled THEN 'manual' ELSE disabled_reason END`)
  // Failures from before say nothing about another URL, nor about an endpoint that an operator has mended.
  if (url !== undefined || enabled === true) set.push(sql`failing_since_ms = NULL`)
  const [row] = yield sql`
    UPDATE webhook SET ${join(set)} WHERE account_id = ${accountId} AND id = ${id} RETURNING ${WEBHOOK}`
  return row === undefined ? null : webhookRecord(row)
}

/** The deliveries of a deleted endpoint are deleted when they are old: they may be many, and nothing shows them any more. */
export function* deleteWebhook(accountId: string, id: string): Operation<boolean> {
  const deleted = yield sql`DELETE FROM webhook WHERE account_id = ${accountId} AND id = ${id} RETURNING id`
  return deleted.length > 0
}

export const rotateWebhookSecret = atomic(function* (
  accountId: string,
  id: string,
  secret: Uint8Array,
  atMs: number,
  idempotency: Idempotency | null,
): Operation<SecretRotation> {
  const [row] = yield sql`
    SELECT older_until_ms FROM webhook WHERE account_id = ${accountId} AND id = ${id} ${FOR_UPDATE}`
  if (row === undefined) return { kind: 'none' }
  const nowMs = yield* currentTime(atMs)
  const untilMs = numberOrNull(row, 'older_until_ms') ?? 0
  const isTooSoon = untilMs > nowMs
  const read = (rotated: string) => getWebhook(accountId, rotated)
  const replay = isTooSoon ? yield* findReplay(idempotency, read) : yield* claimKey(idempotency, id, read)
  if (replay !== null) return replay
  if (isTooSoon) return { kind: 'too_soon', untilMs }
  const [rotated] = yield sql`
    UPDATE webhook SET older_secret = former_secret, older_until_ms = former_until_ms, former_secret = secret,
      former_until_ms = ${nowMs + limits.webhookOldSecretMs}, secret = ${secret}
    WHERE id = ${id} RETURNING ${WEBHOOK}`
  return { kind: 'done', value: webhookRecord(present(rotated)) }
})

export function* setBudgetThresholds(percents: readonly number[]): Operation<void> {
  yield* writeSetting(BUDGET_THRESHOLDS, JSON.stringify(percents))
}

export function* setBalanceLow(nanos: Nanos | null): Operation<void> {
  if (nanos === null) yield sql`DELETE FROM setting WHERE name = ${BALANCE_LOW}`
  else yield* writeSetting(BALANCE_LOW, String(nanos))
}
