import { eventKey, keyChangesOf } from '../../api/objects.ts'
import { type Actor, type Idempotency, SYSTEM } from '../../kernel/vocabulary.ts'
import {
  KEY_LIMITS,
  type KeyChanges,
  type KeyCreation,
  type KeyEdit,
  type KeyLimits,
  type KeyMonth,
  type KeyQuery,
  type KeyRecord,
  type KeySuccessor,
  keyStatus,
  type NewKey,
  type Page,
  type Rotation,
} from '../../keys/key-store.ts'
import { dayOf, monthOf } from '../../ledger/calendar.ts'
import { number, pageOf, present, type Row, recordOf, text } from '../rows.ts'
import { recordCapEdit } from './budget-events.ts'
import { recordEvent } from './events.ts'
import { BUDGET_COLUMNS, budgetState, keyCeilings } from './money-rows.ts'
import { atomic, currentTime, type Operation } from './operation.ts'
import { claimKey, findReplay, readSetting, writeSetting } from './settings.ts'
import {
  and,
  byStore,
  FOR_UPDATE,
  join,
  json,
  now,
  onPostgres,
  raw,
  type Sql,
  type SqlValue,
  sql,
} from './sql.ts'

/** API keys. Every statement that changes a key is in this file, except the one that records its use. */

const createKey = atomic(function* (
  key: NewKey,
  idempotency: Idempotency | null,
  actor: Actor,
): Operation<KeyCreation> {
  const readNow = (id: string) => getKey(key.accountId, id, idempotency?.atMs ?? key.createdAtMs)
  const bornExpired = key.expiresAtMs !== null && key.expiresAtMs <= (yield* currentTime(key.createdAtMs))
  // A replay must find its key even if it has expired since.
  const replay = bornExpired
    ? yield* findReplay(idempotency, readNow)
    : yield* claimKey(idempotency, key.id, readNow)
  if (replay !== null) return replay
  if (bornExpired) return { kind: 'born_expired' }
  const value = yield* insertKey(key, null, null)
  yield* recordKey('key.created', value, actor, key.createdAtMs)
  return { kind: 'done', value }
})

export function* getKey(accountId: string, id: string, atMs: number): Operation<KeyRecord | null> {
  const [row] = yield sql`
    SELECT ${COLUMNS} FROM ${withMonth(sql`api_key`, atMs)} WHERE k.account_id = ${accountId} AND k.id = ${id}`
  return row === undefined ? null : keyRecord(row)
}

/**
 * Locks a key to change it. The lock waits for running admissions, and later ones wait for it; status and time are read
 * afterwards.
 */
function* lockKey(accountId: string, id: string, atMs: number): Operation<LockedKey | null> {
  yield onPostgres(sql`SELECT id FROM api_key WHERE account_id = ${accountId} AND id = ${id} FOR UPDATE`)
  const nowMs = yield* currentTime(atMs)
  const key = yield* getKey(accountId, id, atMs)
  return key === null ? null : { key, nowMs, isUsable: keyStatus(key, nowMs) === 'usable' }
}

interface LockedKey {
  readonly key: KeyRecord
  readonly nowMs: number
  readonly isUsable: boolean
}

const updateKey = atomic(function* (
  accountId: string,
  id: string,
  changes: KeyChanges,
  atMs: number,
  actor: Actor,
): Operation<KeyEdit> {
  const locked = yield* lockKey(accountId, id, atMs)
  if (locked === null) return { kind: 'none' }
  if (!locked.isUsable) return { kind: 'final', key: locked.key }
  const { budgetId } = locked.key
  const [ofKey, ofBudget] = [changesSql(changes, 'api_key'), changesSql(changes, 'budget')]
  if (ofKey !== null) yield sql`UPDATE api_key SET ${ofKey} WHERE id = ${id}`
  if (ofBudget !== null) {
    yield onPostgres(sql`SELECT id FROM budget WHERE id = ${budgetId} ${FOR_UPDATE}`)
    yield sql`UPDATE budget SET ${ofBudget} WHERE id = ${budgetId}`
  }
  const key = yield* readKey(accountId, id, atMs)
  const changed = keyChangesOf(locked.key, key, atMs)
  if (changed !== null) {
    yield* recordKey('key.updated', key, actor, atMs, { changes: changed })
    if (ofBudget !== null) yield* recordCaps(key, changes, actor, atMs)
  }
  return { kind: 'changed', key }
})

const revokeKey = atomic(function* (
  accountId: string,
  id: string,
  atMs: number,
  actor: Actor,
): Operation<KeyRecord | null> {
  const locked = yield* lockKey(accountId, id, atMs)
  if (locked === null || !locked.isUsable) return locked?.key ?? null
  yield sql`UPDATE api_key SET revoked_at_ms = ${locked.nowMs} WHERE id = ${id}`
  const key = yield* readKey(accountId, id, atMs)
  yield* recordKey('key.revoked', key, actor, atMs)
  return key
})

/** A key that exists. */
function* readKey(accountId: string, id: string, atMs: number): Operation<KeyRecord> {
  const key = yield* getKey(accountId, id, atMs)
  if (key === null) throw new Error(`there is no key ${id}`)
  return key
}

function* recordKey(
  type: 'key.created' | 'key.updated' | 'key.rotated' | 'key.revoked',
  key: KeyRecord,
  actor: Actor,
  atMs: number,
  more: object = {},
): Operation<void> {
  const data = { key: eventKey(key, atMs), ...more }
  yield* recordEvent({ accountId: key.accountId, type, actor, data }, atMs)
}

/** Lock the budget, as settlement does before it reads the cap: one of the two sees the other's change. */
function* recordCaps(key: KeyRecord, changes: KeyChanges, actor: Actor, atMs: number): Operation<void> {
  const [row] = yield sql`
    SELECT ${BUDGET_COLUMNS} FROM budget b WHERE id = ${key.budgetId}`
  const budget = budgetState(present(row))
  const nowMs = yield* currentTime(atMs)
  const isSet = { month: changes.monthlyBudgetNanos != null, day: changes.dailyBudgetNanos != null }
  const ceilings = keyCeilings(budget, dayOf(nowMs))
  const subject = { key: eventKey(key, atMs) }
  const edit = { accountId: key.accountId, budgetId: budget.id, subject, actor }
  yield* recordCapEdit(
    edit,
    ceilings.filter(({ period }) => isSet[period]),
    atMs,
  )
}

const rotateKey = atomic(function* (
  accountId: string,
  id: string,
  successor: KeySuccessor,
  idempotency: Idempotency | null,
  actor: Actor,
): Operation<Rotation> {
  const { oldExpiresAtMs, ...made } = successor
  const { createdAtMs } = made
  const readNow = (newId: string) => getKey(accountId, newId, idempotency?.atMs ?? createdAtMs)
  const locked = yield* lockKey(accountId, id, createdAtMs)
  // A replayed rotation must find its new key even if the old one has ended since, perhaps by this rotation.
  const replay = locked?.isUsable
    ? yield* claimKey(idempotency, made.id, readNow)
    : yield* findReplay(idempotency, readNow)
  if (replay !== null) return replay
  if (locked === null) return { kind: 'none' }
  const { key: old, nowMs } = locked
  if (!locked.isUsable) return { kind: 'final', key: old }

  // From here on the key is rotated. The new key gets the expiry that the old key had before.
  const key = yield* insertKey({ ...old, ...made }, id, old.budgetId)
  if (oldExpiresAtMs !== null) {
    // The old key's remaining time counts from the store's clock, not from the node's.
    const endMs = nowMs + oldExpiresAtMs - createdAtMs
    if (endMs < (old.expiresAtMs ?? Number.POSITIVE_INFINITY))
      yield sql`UPDATE api_key SET expires_at_ms = ${endMs} WHERE id = ${id}`
  }
  const old_key = eventKey(yield* readKey(accountId, id, createdAtMs), createdAtMs)
  yield* recordKey('key.rotated', key, actor, createdAtMs, { old_key })
  return { kind: 'done', value: key }
})

function* listKeys(query: KeyQuery): Operation<Page<KeyRecord>> {
  const { accountId, status, search, after, limit, atMs } = query
  const where = [accountId === null ? sql`true` : sql`account_id = ${accountId}`]
  if (status !== null) where.push(sql`${statusSql(sql`(SELECT ${now(atMs)})`)} = ${status}`)
  if (search !== null) where.push(found(search))
  if (after !== null) where.push(sql`id < ${after}`)
  // Limit the page before joining the months.
  const page = sql`(SELECT * FROM api_key WHERE ${and(where)} ORDER BY id DESC LIMIT ${limit + 1})`
  const rows = yield sql`SELECT ${COLUMNS} FROM ${withMonth(page, atMs)} ORDER BY id DESC`
  return pageOf(rows, limit, keyRecord)
}

type KeyName = Pick<KeyRecord, 'id' | 'name'>

/** The names of keys, in any order. Keys that do not exist are left out. */
function* readKeyNames(ids: readonly string[]): Operation<readonly KeyName[]> {
  return (yield sql`SELECT id, name FROM api_key WHERE id IN (${join(ids)})`).map(recordOf<KeyName>)
}

/** Unlike LIKE, `instr` and `strpos` have no special characters. */
export const POSITION = byStore({ sqlite: 'instr', postgres: 'strpos' })

function found(search: string): Sql {
  return sql`(${POSITION}(name_upper, ${search.toUpperCase()}) > 0 OR ${POSITION}(id, ${search}) > 0
    OR ${POSITION}(prefix, ${search}) > 0 OR ${POSITION}(last4, ${search}) > 0 ${orPair(search)})`
}

const PAIRS = byStore({ sqlite: 'json_each(metadata)', postgres: 'jsonb_each_text(metadata)' })

/** `metadata.team:web` finds the keys whose metadata has this pair. */
function orPair(search: string): Sql {
  if (!/^metadata\..+:/.test(search)) return sql``
  return sql`OR EXISTS (SELECT 1 FROM ${PAIRS} AS pair WHERE 'metadata.' || pair.key || ':' || pair.value = ${search})`
}

/** The status of a key in SQL, by the same rules as `keyStatus`. */
function statusSql(at: Sql): Sql {
  return sql`CASE WHEN revoked_at_ms IS NOT NULL THEN 'revoked' WHEN expires_at_ms <= ${at} THEN 'expired'
    ELSE 'usable' END`
}

/** The last use of a key: its last call, or a use that left no call, which the column has. */
const LAST_USED = raw(`(SELECT max(at_ms) FROM (SELECT k.last_used_at_ms AS at_ms UNION ALL SELECT * FROM (
  SELECT started_at_ms FROM call WHERE key_id = k.id ORDER BY started_at_ms DESC LIMIT 1) AS last) AS used)`)

const COLUMNS = sql`k.id, k.account_id, k.budget_id, name, prefix, last4,
  ${raw(KEY_LIMITS.map(({ column }) => column).join(', '))}, created_at_ms, revoked_at_ms, rotated_from,
  ${LAST_USED} AS last_used_at_ms, spent_nanos, held_nanos, lost_nanos, day_spent_nanos`

/** Keys, from the table or from a subquery of it, with the figures of their budget for the month and the day. */
function withMonth(keys: Sql, atMs: number): Sql {
  const [ofMonth, ofDay] = [sql`month = ${monthOf(atMs)}`, sql`day = ${dayOf(atMs)}`]
  const figures = ['spent_nanos', 'held_nanos', 'lost_nanos', 'day_spent_nanos'].map(
    (column) => sql`CASE WHEN ${column.startsWith('day') ? ofDay : ofMonth} THEN ${raw(column)} ELSE 0 END
      AS ${raw(column)}`,
  )
  const limits = KEY_LIMITS.filter(({ table }) => table === 'budget').map(({ column }) => raw(column))
  return sql`${keys} AS k JOIN (SELECT id AS its_id, ${join([...limits, ...figures])} FROM budget) AS b
    ON b.its_id = k.budget_id`
}

function* insertKey(
  key: NewKey,
  rotatedFrom: string | null,
  sharedBudgetId: string | null,
): Operation<KeyRecord> {
  // The key and its budget have the same ULID.
  const budgetId = sharedBudgetId ?? key.id.replace(/^key_/, 'bud_')
  const [ofBudget, ofKey] = (['budget', 'api_key'] as const).map((table) => {
    const limits = KEY_LIMITS.filter((limit) => limit.table === table)
    return {
      columns: raw(limits.map(({ column }) => column).join(', ')),
      values: join(limits.map(({ name }) => limitValue(key[name]))),
    }
  }) as [LimitColumns, LimitColumns]
  if (sharedBudgetId === null)
    yield sql`
      INSERT INTO budget (id, account_id, ${ofBudget.columns})
      VALUES (${budgetId}, ${key.accountId}, ${ofBudget.values})`
  yield sql`
    INSERT INTO api_key (id, account_id, budget_id, name, name_upper, digest, prefix, last4, created_at_ms, rotated_from,
      ${ofKey.columns})
    VALUES (${key.id}, ${key.accountId}, ${budgetId}, ${key.name}, ${key.name.toUpperCase()}, ${key.digest},
      ${key.prefix}, ${key.last4}, ${key.createdAtMs}, ${rotatedFrom}, ${ofKey.values})`
  return yield* readKey(key.accountId, key.id, key.createdAtMs)
}

interface LimitColumns {
  readonly columns: Sql
  readonly values: Sql
}

/** Names of models and metadata are stored as JSON. */
function limitValue(value: KeyLimits[keyof KeyLimits]): SqlValue {
  return typeof value === 'object' ? json(value) : value
}

/** The assignments of a change in one table; absent members stay. Null: there are none. */
function changesSql({ name, ...limits }: KeyChanges, table: 'api_key' | 'budget'): Sql | null {
  const set = KEY_LIMITS.filter((limit) => limit.table === table).flatMap((limit) => {
    const value = limits[limit.name]
    return value === undefined ? [] : [sql`${raw(limit.column)} = ${limitValue(value)}`]
  })
  if (name !== undefined && table === 'api_key')
    set.push(sql`name = ${name}, name_upper = ${name.toUpperCase()}`)
  return set.length === 0 ? null : join(set)
}

function keyRecord(row: Row): KeyRecord {
  const { spentNanos, heldNanos, lostNanos, daySpentNanos, ...key } = recordOf<KeyRecord & KeyMonth>(row)
  return { ...key, month: { spentNanos, heldNanos, lostNanos, daySpentNanos } }
}

const DAY_MS = 24 * 60 * 60 * 1000

/** Days before a key's expiry at which `key.expiring` is emitted. */
const EXPIRING_DAYS = [7, 1]

const SWEPT_TO = 'events_swept_to_ms'

/** A transaction that commits after the last sweep may have set an expiry before it. */
const LOOK_BACK_MS = 60_000

export const SWEPT_MAX = 500

const sweepEvents = atomic(function* (atMs: number): Operation<boolean> {
  const nowMs = yield* currentTime(atMs)
  const sweptToMs = Number((yield* readSetting(SWEPT_TO)) ?? nowMs)
  const fromMs = sweptToMs - LOOK_BACK_MS
  let isMore = yield* sweepExpiry(null, fromMs, nowMs)
  for (const days of EXPIRING_DAYS) isMore = (yield* sweepExpiry(days, fromMs, nowMs)) || isMore
  // Events are not recorded twice, so this setting need not be exact; writing it each time would cost an fsync.
  if (!isMore && (sweptToMs === nowMs || nowMs - sweptToMs >= LOOK_BACK_MS))
    yield* writeSetting(SWEPT_TO, String(nowMs))
  return isMore
})

/**
 * Records events for keys whose expiry, or some days before it, falls into this interval. Skips keys that were created
 * after that moment or have ended since. Returns whether there are more.
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
    const key = yield* readKey(accountId, id, nowMs)
    const once = `${prefix}${id}/${number(row, 'expires_at_ms')}`
    const type = days === null ? 'key.expired' : 'key.expiring'
    yield* recordEvent({ accountId, type, actor: SYSTEM, data: { key: eventKey(key, nowMs) }, once }, nowMs)
  }
  return keys.length === SWEPT_MAX
}

export const KEYS = {
  brief: { createKey, getKey, updateKey, revokeKey, rotateKey, sweepEvents },
  reads: { listKeys, readKeyNames },
}
