import { limits } from '../../kernel/limits.ts'
import type { Nanos } from '../../kernel/money.ts'
import { nanos, number, numberOrNull, type Row, text } from '../rows.ts'
import { getBalance } from './credits.ts'
import { hasLease, RELAY } from './lease.ts'
import { atomic, currentTime, type Operation } from './operation.ts'
import { BALANCE_LOW, keptBalance, lowMark, markAll, type NewOutboxRow, tell, tellAll } from './outbox.ts'
import { readSetting, writeSetting } from './settings.ts'
import { FOR_DELETE, onPostgres, raw, type Sql, sql } from './sql.ts'

const WEBHOOKS_DELETED_AT_ONCE = 1_000

export const WEBHOOK_SWEPT_MAX = 500

/** The sweep of events that time alone causes, and the pruning of rows that are too old to be kept. */

const DAY_MS = 24 * 60 * 60 * 1000

/** Days before a key's expiry at which `key.expiring` is told. */
const EXPIRING_DAYS = [7, 1]

/** The setting with the instant up to which keys were swept. */
const SWEPT_TO = 'webhooks_swept_to_ms'

/** A key that was changed in a transaction which ended after the last sweep may have expired before that sweep. */
const LOOK_BACK_MS = 60_000

const IN_TOLD_ACCOUNT = sql`account_id IN (SELECT account_id FROM webhook WHERE enabled)`

export const sweepEvents = atomic(function* (holder: string, atMs: number): Operation<boolean> {
  if (!(yield* hasLease(RELAY, holder, atMs))) return false
  const [first] = yield sql`SELECT min(since_ms) AS since_ms FROM webhook WHERE enabled`
  const sinceMs = first === undefined ? null : numberOrNull(first, 'since_ms')
  if (sinceMs === null) return false
  const nowMs = yield* currentTime(atMs)
  const sweptToMs = Number((yield* readSetting(SWEPT_TO)) ?? 0)
  const fromMs = Math.max(sweptToMs - LOOK_BACK_MS, sinceMs, nowMs - limits.webhookKeptMs)
  let isMore = yield* sweepExpiry(null, fromMs, nowMs)
  for (const days of EXPIRING_DAYS) isMore = (yield* sweepExpiry(days, fromMs, nowMs)) || isMore
  // Events that were told have their marks, so after an incomplete sweep the next one begins where this one did.
  if (!isMore) yield* writeSetting(SWEPT_TO, String(nowMs))
  const low = yield* readSetting(BALANCE_LOW)
  if (low !== null) yield* sweepBalances(BigInt(low), nowMs)
  return isMore
})

/**
 * Tells of keys whose expiry, or a number of days before it, is in this stretch of time. A key that was only made after
 * that instant is left out, and so is a key that has ended by now. Returns whether there are more.
 */
function* sweepExpiry(days: number | null, fromMs: number, nowMs: number): Operation<boolean> {
  const leadMs = (days ?? 0) * DAY_MS
  const prefix = days === null ? 'expired/' : `expiring/${days}/`
  const unmarked = sql`NOT EXISTS (
    SELECT 1 FROM webhook_mark WHERE webhook_mark.name = ${prefix} || api_key.id || '/' || expires_at_ms)`
  const unended = days === null ? sql`` : sql`AND expires_at_ms > ${nowMs}`
  const keys = yield sql`
    SELECT id, account_id, expires_at_ms FROM api_key
    WHERE expires_at_ms > ${fromMs + leadMs} AND expires_at_ms <= ${nowMs + leadMs} ${unended}
      AND revoked_at_ms IS NULL AND created_at_ms <= expires_at_ms - ${leadMs} AND ${IN_TOLD_ACCOUNT} AND ${unmarked}
    ORDER BY expires_at_ms LIMIT ${WEBHOOK_SWEPT_MAX}`
  const markOf = (key: Row) => `${prefix}${text(key, 'id')}/${number(key, 'expires_at_ms')}`
  const made = yield* markAll(keys.map(markOf), nowMs)
  const unmarkedKeys = keys.filter((key) => made.has(markOf(key)))
  yield* tellAll(
    unmarkedKeys.map((key) => [expiryOf(key, days), sql`${number(key, 'expires_at_ms') - leadMs}`]),
  )
  return keys.length === WEBHOOK_SWEPT_MAX
}

function expiryOf(key: Row, days: number | null): NewOutboxRow {
  const of = { accountId: text(key, 'account_id'), keyId: text(key, 'id') }
  if (days === null) return { ...of, type: 'key.expired', facts: {} }
  return { ...of, type: 'key.expiring', facts: { days } }
}

/**
 * Tells of a low balance once, until it is at or above the amount again. Settlement tells of a balance that a call brings below
 * the amount, and marks it; the sweep finds balances that were low when an endpoint, the amount or the credit came to count.
 */
function* sweepBalances(lowNanos: Nanos, nowMs: number): Operation<void> {
  const accounts = yield sql`
    SELECT id, credited_nanos - charged_nanos AS balance_nanos,
      EXISTS (SELECT 1 FROM webhook_mark WHERE name = ${lowMark('')} || account.id) AS is_marked
    FROM account WHERE credit_enforced AND id IN (SELECT account_id FROM webhook WHERE enabled)`
  for (const row of accounts) {
    const accountId = text(row, 'id')
    const isLow = nanos(row, 'balance_nanos') < lowNanos
    const isMarked = row['is_marked'] === true || row['is_marked'] === 1n
    if (isLow === isMarked) continue
    if (!isLow) {
      yield sql`DELETE FROM webhook_mark WHERE name = ${lowMark(accountId)}`
      continue
    }
    // A settlement on another node may have marked the low balance since, and told it.
    const marked = yield sql`
      INSERT INTO webhook_mark (name, until_ms) VALUES (${lowMark(accountId)}, NULL)
      ON CONFLICT DO NOTHING RETURNING name`
    if (marked.length === 0) continue
    const balance = keptBalance(yield* getBalance(accountId))
    yield* tell({ accountId, type: 'balance.low', keyId: null, facts: { balance } }, sql`${nowMs}`)
  }
}

/** An event outlasts its deliveries by the time that the attempts at the last of them may take. */
const EVENT_OUTLASTS_MS = 3 * DAY_MS

export const pruneWebhooks = atomic(function* (holder: string, atMs: number): Operation<number> {
  if (!(yield* hasLease(RELAY, holder, atMs))) return 0
  const nowMs = yield* currentTime(atMs)
  const oldMs = nowMs - limits.webhookKeptMs
  const pruned = [
    yield deleteSome('webhook_outbox', 'sequence', sql`at_ms < ${oldMs}`),
    yield deleteSome('webhook_event', 'id', sql`created_at_ms < ${oldMs - EVENT_OUTLASTS_MS}`),
    yield deleteSome('webhook_delivery', 'id', sql`created_at_ms < ${oldMs}`),
    yield deleteSome('webhook_mark', 'name', sql`until_ms < ${nowMs}`),
    yield deleteSome('webhook_lease', 'name', sql`until_ms < ${nowMs - DAY_MS}`),
    yield sql`
      UPDATE webhook_delivery SET status = 'failed', next_attempt_at_ms = NULL,
        error = coalesce(error, 'the webhook was disabled before it was sent') WHERE id IN (
        SELECT id FROM webhook_delivery WHERE status = 'pending'
          AND NOT EXISTS (SELECT 1 FROM webhook WHERE webhook.id = webhook_id AND enabled)
        LIMIT ${AT_ONCE} ${onPostgres('FOR NO KEY UPDATE SKIP LOCKED')})
      RETURNING id`,
  ]
  return pruned.reduce((sum, rows) => sum + rows.length, 0)
})

const AT_ONCE = WEBHOOKS_DELETED_AT_ONCE

function deleteSome(table: string, id: string, where: Sql): Sql {
  return sql`
    DELETE FROM ${raw(table)} WHERE ${raw(id)} IN (
      SELECT ${raw(id)} FROM ${raw(table)} WHERE ${where} LIMIT ${AT_ONCE} ${FOR_DELETE})
    RETURNING 1 AS deleted`
}
