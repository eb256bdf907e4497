import { eventKey } from '../../api/objects.ts'
import { firstUlid } from '../../kernel/ids.ts'
import { limits } from '../../kernel/limits.ts'
import { SYSTEM } from '../../kernel/vocabulary.ts'
import { number, text } from '../rows.ts'
import { recordEvent } from './events.ts'
import { getKey } from './keys.ts'
import { atomic, currentTime, type Operation } from './operation.ts'
import { readSetting, writeSetting } from './settings.ts'
import { FOR_DELETE, onPostgres, raw, type Sql, sql } from './sql.ts'

/** The sweep of events that time alone causes, and the deletion of old rows. Any node may do both at any time. */

const DAY_MS = 24 * 60 * 60 * 1000

/** Days before a key's expiry at which `key.expiring` is emitted. */
const EXPIRING_DAYS = [7, 1]

/** The setting with the instant up to which keys were swept. */
const SWEPT_TO = 'events_swept_to_ms'

/** A key that was changed in a transaction which ended after the last sweep may have expired before that sweep. */
const LOOK_BACK_MS = 60_000

export const SWEPT_MAX = 500

export const sweepEvents = atomic(function* (atMs: number): Operation<boolean> {
  const nowMs = yield* currentTime(atMs)
  const sweptToMs = Number((yield* readSetting(SWEPT_TO)) ?? nowMs)
  const fromMs = sweptToMs - LOOK_BACK_MS
  let isMore = yield* sweepExpiry(null, fromMs, nowMs)
  for (const days of EXPIRING_DAYS) isMore = (yield* sweepExpiry(days, fromMs, nowMs)) || isMore
  // Events that were recorded are not recorded again, so the setting need not be exact: a write each time would cost an fsync.
  if (!isMore && (sweptToMs === nowMs || nowMs - sweptToMs >= LOOK_BACK_MS))
    yield* writeSetting(SWEPT_TO, String(nowMs))
  return isMore
})

/**
 * Records the keys whose expiry, or a number of days before it, is in this interval. A key that was only created after that
 * instant is left out, and so is a key that has ended by now. Returns whether there are more.
 */
function* sweepExpiry(days: number | null, fromMs: number, nowMs: number): Operation<boolean> {
  const leadMs = (days ?? 0) * DAY_MS
  const prefix = days === null ? 'expired/' : `expiring/${days}/`
  const unended = days === null ? sql`` : sql`AND expires_at_ms > ${nowMs}`
  const keys = yield sql`
    SELECT id, account_id, expires_at_ms FROM api_key k
    WHERE expires_at_ms > ${fromMs + leadMs} AND expires_at_ms <= ${nowMs + leadMs} ${unended}
      AND revoked_at_ms IS NULL AND created_at_ms <= expires_at_ms - ${leadMs} AND NOT EXISTS (
        SELECT 1 FROM event WHERE event.account_id = k.account_id AND once = ${prefix} || k.id || '/' || expires_at_ms)
    ORDER BY expires_at_ms, id LIMIT ${SWEPT_MAX}`
  for (const row of keys) {
    const [accountId, id] = [text(row, 'account_id'), text(row, 'id')]
    const key = yield* getKey(accountId, id, nowMs)
    if (key === null) continue
    const once = `${prefix}${id}/${number(row, 'expires_at_ms')}`
    const type = days === null ? 'key.expired' : 'key.expiring'
    yield* recordEvent({ accountId, type, actor: SYSTEM, data: { key: eventKey(key, nowMs) }, once }, nowMs)
  }
  return keys.length === SWEPT_MAX
}

const DELETED_AT_ONCE = 1_000

/** Ids begin with the instant of their row, so that no index by age is needed. */
export const pruneEvents = atomic(function* (atMs: number): Operation<number> {
  const nowMs = yield* currentTime(atMs)
  const oldDelivery = `whd_${firstUlid(nowMs - limits.deliveryKeptMs)}`
  const oldEvent = `evt_${firstUlid(nowMs - limits.eventKeptMs)}`
  const pruned = [
    yield deleteSome('webhook_delivery', sql`id < ${oldDelivery} AND status <> 'pending'`),
    yield deleteSome('event', sql`id < ${oldEvent}`),
    // An event that was recorded while its webhook was being disabled.
    yield sql`
      UPDATE webhook_delivery SET status = 'failed', next_attempt_at_ms = NULL WHERE id IN (
        SELECT id FROM webhook_delivery d WHERE status = 'pending' AND next_attempt_at_ms <= ${nowMs}
          AND NOT EXISTS (SELECT 1 FROM webhook w WHERE w.id = d.webhook_id AND w.enabled)
        LIMIT ${DELETED_AT_ONCE} ${onPostgres('FOR NO KEY UPDATE SKIP LOCKED')})
      RETURNING id`,
  ]
  return pruned.reduce((sum, rows) => sum + rows.length, 0)
})

function deleteSome(table: string, where: Sql): Sql {
  return sql`
    DELETE FROM ${raw(table)} WHERE id IN (
      SELECT id FROM ${raw(table)} WHERE ${where} LIMIT ${DELETED_AT_ONCE} ${FOR_DELETE})
    RETURNING id`
}
