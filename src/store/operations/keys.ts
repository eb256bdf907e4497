import { eventKey, keyChangesOf } from '../../api/objects.ts'
import { type Actor, SYSTEM } from '../../kernel/actor.ts'
import type { Idempotency } from '../../kernel/idempotency.ts'
import {
  type KeyChanges,
  type KeyMonth,
  type KeyQuery,
  type KeyRecord,
  type KeySuccessor,
  LIMIT_NAMES,
  type NewKey,
  type Page,
  type SweptTo,
  shownStatus,
} from '../../keys/key-store.ts'
import { dayOf, monthOf } from '../../ledger/calendar.ts'
import { columnOf } from '../../ledger/call-columns.ts'
import { bool, number, pageOf, present, type Row, recordOf, text } from '../rows.ts'
import { recordCapChange } from './budget-events.ts'
import { recordEvent } from './events.ts'
import { refuseNewKey } from './member-limits.ts'
import { keyCeilings } from './money-rows.ts'
import { atomic, currentTime, type Operation } from './operation.ts'
import { readSetting, runOnce, writeSetting } from './settings.ts'
import { and, byStore, join, now, onPostgres, raw, type Sql, sql } from './sql.ts'
import { insertInto, updateRow } from './write-rows.ts'

/** API keys. Every statement that changes a key is in this file. */

const createKey = atomic(function* (key: NewKey, idempotency: Idempotency | null, actor: Actor) {
  const { id, accountId, createdAtMs } = key
  const readNow = (known: string) => getKey(accountId, known, createdAtMs)
  return yield* runOnce(idempotency, id, readNow, function* () {
    const nowMs = yield* currentTime(createdAtMs)
    // A replay is answered even if the key has expired since.
    if (key.expiresAtMs !== null && key.expiresAtMs <= nowMs) return { kind: 'already_expired' } as const
    // A key and its budget have the same ULID.
    const budgetId = id.replace(/^key_/, 'bud_')
    yield insertInto('budget', [{ ...key, id: budgetId }])
    const value = yield* insertKey({ ...key, budgetId })
    yield* recordKeyEvent('key.created', value, actor, createdAtMs)
    return { kind: 'done', value } as const
  })
})

export function* getKey(accountId: string, id: string, atMs: number): Operation<KeyRecord | null> {
  const [row] = yield sql`
    SELECT ${KEY_COLUMNS} FROM ${withBudget(sql`api_key`)} WHERE k.account_id = ${accountId} AND k.id = ${id}`
  return row === undefined ? null : keyRecord(row, atMs)
}

/** Locks a key to change it: the lock of its budget, which admissions take too. The key is read afterwards. */
function* lockKey(accountId: string, id: string, atMs: number) {
  yield onPostgres(sql`
    SELECT id FROM budget WHERE id = (SELECT budget_id FROM api_key WHERE account_id = ${accountId} AND id = ${id})
    FOR NO KEY UPDATE`)
  const nowMs = yield* currentTime(atMs)
  const key = yield* getKey(accountId, id, atMs)
  return key === null ? null : { key, nowMs, isUsable: shownStatus(key, nowMs) === 'usable' }
}

const updateKey = atomic(function* (
  accountId: string,
  id: string,
  changes: KeyChanges,
  atMs: number,
  actor: Actor,
) {
  const locked = yield* lockKey(accountId, id, atMs)
  if (locked === null) return { kind: 'none' } as const
  if (!locked.isUsable) return { kind: 'final', key: locked.key } as const
  yield updateRow('api_key', id, { ...changes, nameUpper: changes.name?.toUpperCase() })
  // Settlement also locks the budget before it reads the cap, so one of the two sees the other's change.
  yield updateRow('budget', locked.key.budgetId, changes)
  const key = present(yield* getKey(accountId, id, atMs))
  const changed = keyChangesOf(locked.key, key, atMs)
  if (changed !== null) {
    yield* recordKeyEvent('key.updated', key, actor, atMs, { changes: changed })
    yield* recordNewCaps(key, changes, actor, locked.nowMs)
  }
  return { kind: 'changed', key } as const
})

export const endKey = atomic(function* (accountId: string, id: string, atMs: number, actor: Actor) {
  const locked = yield* lockKey(accountId, id, atMs)
  if (locked === null || !locked.isUsable) return locked?.key ?? null
  yield sql`UPDATE api_key SET revoked_at_ms = ${locked.nowMs} WHERE id = ${id}`
  const key = present(yield* getKey(accountId, id, atMs))
  yield* recordKeyEvent('key.revoked', key, actor, atMs)
  return key
})

export function* recordKeyEvent(
  type: 'key.created' | 'key.updated' | 'key.rotated' | 'key.revoked',
  key: KeyRecord,
  actor: Actor,
  atMs: number,
  extra: object = {},
): Operation<void> {
  const data = { key: eventKey(key, atMs), ...extra }
  yield* recordEvent({ accountId: key.accountId, type, actor, data }, atMs)
}

/** Events of a budget name a key that draws on it. */
export function* recordNewCaps(
  key: KeyRecord,
  changes: Pick<KeyChanges, 'monthlyBudgetNanos' | 'dailyBudgetNanos'>,
  actor: Actor,
  nowMs: number,
): Operation<void> {
  const { accountId, budgetId } = key
  const { monthlyBudgetNanos = null, dailyBudgetNanos = null } = changes
  const day = dayOf(nowMs)
  const changed = { ...key.month, monthlyBudgetNanos, dailyBudgetNanos, month: monthOf(nowMs), day }
  const subject = { key: eventKey(key, nowMs) }
  const edit = { accountId, budgetId, subject, actor }
  yield* recordCapChange(edit, keyCeilings(changed, day, nowMs), nowMs)
}

const rotateKey = atomic(function* (
  accountId: string,
  id: string,
  { oldExpiresAtMs, ...successor }: KeySuccessor,
  idempotency: Idempotency | null,
  actor: Actor,
) {
  const { createdAtMs } = successor
  const readNow = (newId: string) => getKey(accountId, newId, createdAtMs)
  return yield* runOnce(idempotency, successor.id, readNow, function* () {
    const locked = yield* lockKey(accountId, id, createdAtMs)
    if (locked === null) return { kind: 'none' } as const
    const { key: old, nowMs } = locked
    if (!locked.isUsable) return { kind: 'final', key: old } as const
    const { personId } = old
    if (personId !== null) {
      if (old.deviceUntilMs !== null) return { kind: 'device' } as const
      const refusal = yield* refuseNewKey({ personId, accountId }, oldExpiresAtMs === createdAtMs, nowMs)
      if (refusal !== null) return refusal
    }
    // The new key gets the expiry that the old key had before.
    const value = yield* insertKey({ ...old, ...successor, lastUsedAtMs: null, rotatedFrom: id })
    if (oldExpiresAtMs !== null) {
      // The old key's remaining time counts from the store's clock, not from the node's.
      const expiresAtMs = nowMs + oldExpiresAtMs - createdAtMs
      if (expiresAtMs < (old.expiresAtMs ?? Number.POSITIVE_INFINITY))
        yield updateRow('api_key', id, { expiresAtMs })
    }
    const old_key = eventKey(present(yield* getKey(accountId, id, createdAtMs)), createdAtMs)
    yield* recordKeyEvent('key.rotated', value, actor, createdAtMs, { old_key })
    return { kind: 'done', value } as const
  })
})

function* listKeys(query: KeyQuery): Operation<Page<KeyRecord>> {
  const { accountId, status, personId = null, search, after, limit, atMs } = query
  const where = [accountId === null ? sql`true` : sql`account_id = ${accountId}`]
  if (personId !== null) where.push(sql`person_id = ${personId}`)
  if (status !== null) where.push(sql`${keyStatusSql(sql`(SELECT ${now(atMs)})`)} = ${status}`)
  if (search !== null) where.push(matchesSearch(search))
  if (after !== null) where.push(sql`id < ${after}`)
  // Limit the page before joining the budgets.
  const page = sql`(SELECT * FROM api_key WHERE ${and(where)} ORDER BY id DESC LIMIT ${limit + 1})`
  const rows = yield sql`SELECT ${KEY_COLUMNS} FROM ${withBudget(page)} ORDER BY k.id DESC`
  return pageOf(rows, limit, (row) => keyRecord(row, atMs))
}

type KeyName = Pick<KeyRecord, 'id' | 'name'>

/** Skips keys that do not exist. */
function* readKeyNames(ids: readonly string[]): Operation<readonly KeyName[]> {
  return (yield sql`SELECT id, name FROM api_key WHERE id IN (${join(ids)})`).map(recordOf<KeyName>)
}

/** Unlike LIKE, `instr` and `strpos` have no special characters. */
export const POSITION = byStore({ sqlite: 'instr', postgres: 'strpos' })

function matchesSearch(search: string): Sql {
  return sql`(${POSITION}(name_upper, ${search.toUpperCase()}) > 0 OR ${POSITION}(id, ${search}) > 0
    OR ${POSITION}(prefix, ${search}) > 0 OR ${POSITION}(last4, ${search}) > 0 ${orMetadataPair(search)})`
}

const PAIRS = byStore({ sqlite: 'json_each(metadata)', postgres: 'jsonb_each_text(metadata)' })

/** `metadata.team:web` finds the rows whose metadata has this pair. */
export function orMetadataPair(search: string): Sql {
  if (!/^metadata\..+:/.test(search)) return sql``
  return sql`OR EXISTS (SELECT 1 FROM ${PAIRS} AS pair WHERE 'metadata.' || pair.key || ':' || pair.value = ${search})`
}

/** The status of a key in SQL, by the same rules as `shownStatus`. */
function keyStatusSql(at: Sql): Sql {
  return sql`CASE WHEN revoked_at_ms IS NOT NULL THEN 'revoked'
    WHEN expires_at_ms <= ${at} AND coalesce(device_until_ms, 0) <= ${at} THEN 'expired' ELSE 'usable' END`
}

const lastOf = (table: string) =>
  `SELECT * FROM (SELECT started_at_ms FROM ${table} WHERE key_id = k.id ORDER BY id DESC LIMIT 1) AS last_${table}`

/** The last use of a key is the start of its last recorded call. The column has that of the calls that were removed. */
const LAST_USED = raw(`(SELECT max(at_ms) FROM (SELECT k.last_used_at_ms AS at_ms
  UNION ALL SELECT open.started_at_ms UNION ALL ${lastOf('call')} UNION ALL ${lastOf('refused_call')}) AS used)`)

const KEY_COLUMNS = sql`k.id, k.account_id, k.budget_id, k.person_id, k.device_until_ms, name, prefix, last4,
  ${raw(LIMIT_NAMES.map(columnOf).join(', '))}, created_at_ms, revoked_at_ms, rotated_from,
  ${LAST_USED} AS last_used_at_ms, month, day, spent_nanos, held_nanos, lost_nanos, day_spent_nanos`

function withBudget(keys: Sql): Sql {
  return sql`${keys} AS k JOIN budget AS b ON b.id = k.budget_id LEFT JOIN (
    SELECT key_id, max(started_at_ms) AS started_at_ms FROM hold GROUP BY key_id) AS open ON open.key_id = k.id`
}

export function* insertKey(
  key: NewKey & { readonly budgetId: string } & Partial<KeyRecord>,
): Operation<KeyRecord> {
  yield insertInto('api_key', [{ ...key, nameUpper: key.name.toUpperCase() }])
  return present(yield* getKey(key.accountId, key.id, key.createdAtMs))
}

const keyRecord = (row: Row, atMs: number): KeyRecord => withMonth<KeyRecord>(row, atMs)

/** A row with the columns of its budget, as a record. Sums of an earlier month or day are 0. */
export function withMonth<Record extends { readonly month: KeyMonth }>(row: Row, atMs: number): Record {
  type Columns = KeyMonth & { readonly month: string; readonly day: string }
  const { month, day, spentNanos, heldNanos, lostNanos, daySpentNanos, ...record } = recordOf<Columns>(row)
  const isCurrentMonth = month === monthOf(atMs)
  const monthSums = isCurrentMonth ? { spentNanos, heldNanos, lostNanos } : NO_SPEND
  const sums = { ...monthSums, daySpentNanos: day === dayOf(atMs) ? daySpentNanos : 0n }
  return { ...record, month: sums } as unknown as Record
}

const NO_SPEND = { spentNanos: 0n, heldNanos: 0n, lostNanos: 0n }

const DAY_MS = 24 * 60 * 60 * 1000

/** The days before a key's expiry at which an event is emitted: `key.expired` at 0, else `key.expiring`. */
const EXPIRY_DAYS = [0, 7, 1]

const SWEPT_TO = 'events_swept_to_ms'

/** How far a sweep overlaps the previous one: a key committed after that sweep may expire before its end. */
const OVERLAP_MS = 60_000

/** Emits the events of the next `limit` keys. Returns where the sweep continues; null: it has ended. */
const sweepEvents = atomic(function* (
  atMs: number,
  from: SweptTo | null,
  limit: number,
): Operation<SweptTo | null> {
  const nowMs = yield* currentTime(atMs)
  const sweptToMs = Number((yield* readSetting(SWEPT_TO)) ?? nowMs)
  const { toMs, daysLeft, after } = from ?? { toMs: nowMs, daysLeft: EXPIRY_DAYS, after: null }
  const [days = 0, ...others] = daysLeft
  const leadMs = days * DAY_MS
  const first = after ?? { expiresAtMs: sweptToMs - OVERLAP_MS + leadMs, id: '' }
  const prefix = days === 0 ? 'expired/' : `expiring/${days}/`
  const notExpired = days === 0 ? sql`` : sql`AND expires_at_ms > ${toMs}`
  // The limit includes keys whose event is recorded, or each step would read all of them again. Keys that were created
  // within `days` of their expiry, ended keys, and devices, which a refresh extends, get no event.
  const keys = yield sql`
    SELECT id, account_id, expires_at_ms, revoked_at_ms IS NULL AND device_until_ms IS NULL
      AND created_at_ms <= expires_at_ms - ${leadMs} ${notExpired}
      AND NOT EXISTS (SELECT 1 FROM event
        WHERE event.account_id = k.account_id AND once = ${prefix} || k.id || '/' || expires_at_ms) AS is_due
    FROM api_key k
    WHERE (expires_at_ms, id) > (${first.expiresAtMs}, ${first.id}) AND expires_at_ms <= ${toMs + leadMs}
    ORDER BY expires_at_ms, id LIMIT ${limit}`
  for (const row of keys) {
    if (!bool(row, 'is_due')) continue
    const [accountId, id] = [text(row, 'account_id'), text(row, 'id')]
    const key = present(yield* getKey(accountId, id, nowMs))
    const once = `${prefix}${id}/${number(row, 'expires_at_ms')}`
    const type = days === 0 ? 'key.expired' : 'key.expiring'
    yield* recordEvent({ accountId, type, actor: SYSTEM, data: { key: eventKey(key, nowMs) }, once }, nowMs)
  }
  const last = keys[limit - 1]
  if (last !== undefined)
    return { toMs, daysLeft, after: { expiresAtMs: number(last, 'expires_at_ms'), id: text(last, 'id') } }
  if (others.length > 0) return { toMs, daysLeft: others, after: null }
  // The time need not be exact, because no event is recorded twice. Writing it in every sweep would cost an fsync.
  if (sweptToMs === nowMs || toMs - sweptToMs >= OVERLAP_MS) yield* writeSetting(SWEPT_TO, String(toMs))
  return null
})

export const KEYS = {
  brief: { createKey, getKey, updateKey, revokeKey: endKey, rotateKey, sweepEvents },
  reads: { listKeys, readKeyNames },
}
