import type { WebhookEventType } from '../../kernel/vocabulary.ts'
import { KEY_LIMITS, type KeyChanges, type KeyRecord } from '../../keys/key-store.ts'
import { CAP_PERCENT } from '../../ledger/budget-crossings.ts'
import { monthOf } from '../../ledger/calendar.ts'
import type { Balance } from '../../ledger/ledger-store.ts'
import type { WebhookRecord } from '../../webhooks/webhook-store.ts'
import { nanos, present, text } from '../rows.ts'
import { currentTime, type Operation } from './operation.ts'
import { join, json, now, onPostgres, type Sql, sql } from './sql.ts'

/**
 * The outbox: events, each written in the transaction that causes it. Those of settlements are in tell-settled.ts.
 */

/** The facts of an outbox row besides its type, key and instant. Amounts are text, since JSON numbers are doubles. */
export interface OutboxFacts {
  /** The key as it was then; for events that settlement and time cause, the key is read when they are relayed. */
  readonly key?: KeptKey
  readonly oldKey?: KeptKey
  readonly budget?: KeptBudget
  readonly balance?: KeptBalance
  readonly days?: number
  readonly model?: string | null
  readonly requestId?: string
  readonly webhook?: WebhookRecord
}

export interface KeptBudget {
  readonly percent: number
  readonly spent: string
  readonly held: string
  readonly cap: string
  readonly month: string
  readonly requestId: string | null
}

export interface KeptBalance {
  readonly credited: string
  readonly charged: string
  readonly held: string
  readonly enforced: boolean
}

/** The record of a key without bigints, and the instant at which it was read. */
interface KeptKey {
  readonly record: Readonly<Record<string, unknown>>
  readonly atMs: number
}

const AMOUNTS = KEY_LIMITS.filter(({ kind }) => kind === 'nanos?').map(({ name }) => name)

function keptKey(key: KeyRecord, atMs: number): KeptKey {
  const month = Object.fromEntries(Object.entries(key.month).map(([name, nanos]) => [name, String(nanos)]))
  const amounts = AMOUNTS.map((name) => [name, key[name] === null ? null : String(key[name])])
  return { record: { ...key, ...Object.fromEntries(amounts), month }, atMs }
}

/** A limit that the version which kept the key did not have is null. */
export function keyOf({ record }: KeptKey): KeyRecord {
  const month = Object.entries(record['month'] as Record<string, string>)
  const amounts = AMOUNTS.map((name) => [name, record[name] == null ? null : BigInt(String(record[name]))])
  return {
    ...record,
    ...Object.fromEntries(amounts),
    month: Object.fromEntries(month.map(([name, nanos]) => [name, BigInt(nanos)])),
  } as unknown as KeyRecord
}

export function keptBalance({ creditedNanos, chargedNanos, heldNanos, enforced }: Balance): KeptBalance {
  const [credited, charged, held] = [creditedNanos, chargedNanos, heldNanos].map(String) as [
    string,
    string,
    string,
  ]
  return { credited, charged, held, enforced }
}

export function balanceOf({ credited, charged, held, enforced }: KeptBalance): Balance {
  return {
    creditedNanos: BigInt(credited),
    chargedNanos: BigInt(charged),
    heldNanos: BigInt(held),
    enforced,
  }
}

/** The setting that holds the percents of a cap, as JSON. */
export const BUDGET_THRESHOLDS = 'budget_thresholds'

/** The setting that holds the balance below which `balance.low` is told, in nanodollars; without it the event is not told. */
export const BALANCE_LOW = 'balance_low_nanos'

/** While this mark is there, a low balance has been told, and the sweep does not tell it again. */
export function lowMark(accountId: string): string {
  return `low/${accountId}`
}

/** Whether the account has an endpoint that is enabled. */
export function* isTold(accountId: string): Operation<boolean> {
  const found = yield sql`SELECT 1 AS found FROM webhook WHERE account_id = ${accountId} AND enabled LIMIT 1`
  return found.length > 0
}

export interface NewOutboxRow {
  readonly accountId: string
  readonly type: WebhookEventType
  readonly keyId: string | null
  readonly facts: OutboxFacts
}

export function* tell(row: NewOutboxRow, at: Sql): Operation<void> {
  yield* tellAll([[row, at]])
}

export function* tellAll(rows: readonly (readonly [NewOutboxRow, at: Sql])[]): Operation<void> {
  if (rows.length === 0) return
  const values = rows.map(
    ([{ accountId, type, keyId, facts }, at]) =>
      sql`(${accountId}, ${type}, ${keyId}, ${at}, ${json(facts)})`,
  )
  yield sql`INSERT INTO webhook_outbox (account_id, type, key_id, at_ms, facts) VALUES ${join(values)}`
}

/** How long a mark is kept that says that an event of an instant, a day or a month was told. */
export const MARK_MS = 40 * 24 * 60 * 60 * 1000

/** Makes marks. Returns the names of those that were not there yet. */
export function* markAll(names: readonly string[], atMs: number): Operation<ReadonlySet<string>> {
  if (names.length === 0) return new Set()
  const until = sql`${now(atMs)} + ${MARK_MS}`
  const made = yield sql`
    INSERT INTO webhook_mark (name, until_ms) VALUES ${join(names.map((name) => sql`(${name}, ${until})`))}
    ON CONFLICT DO NOTHING RETURNING name`
  return new Set(made.map((row) => text(row, 'name')))
}

export function exceededMark(budgetId: string, month: string, capNanos: bigint): string {
  return `exceeded/${budgetId}/${month}/${capNanos}`
}

/** The prefix of the marks of all models of a day; the name of a model follows. */
export function unpricedMarks(accountId: string, day: string): string {
  return `unpriced/${accountId}/${day}/`
}

/** Events of commands on keys, written in the commands' own transactions. */

export function* tellOfKey(
  type: 'key.created' | 'key.updated' | 'key.rotated' | 'key.revoked',
  key: KeyRecord,
  atMs: number,
  oldKey: KeyRecord | null = null,
): Operation<void> {
  if (!(yield* isTold(key.accountId))) return
  const old = oldKey === null ? {} : { oldKey: keptKey(oldKey, atMs) }
  const facts = { key: keptKey(key, atMs), ...old }
  yield* tell({ accountId: key.accountId, type, keyId: key.id, facts }, now(atMs))
}

/** Whether an edit has left everything as it was. */
export function isSame(before: KeyRecord, after: KeyRecord): boolean {
  const [a, b] = [before, after].map((key) =>
    JSON.stringify([key.name, ...KEY_LIMITS.map(({ name }) => key[name])], (_, value) =>
      typeof value === 'bigint' ? String(value) : value,
    ),
  )
  return a === b
}

/**
 * An edit that sets the cap at or below the sum spent exceeds the budget. On PostgreSQL the budget is locked until the
 * edit is committed, as settlement locks it before it reads the cap: one of the two sees the work of the other.
 */
export function* tellOfCap(key: KeyRecord, changes: KeyChanges, atMs: number): Operation<void> {
  const { monthlyBudgetNanos: capNanos = null } = changes
  if (capNanos === null || !(yield* isTold(key.accountId))) return
  const [row] = yield sql`
    SELECT b.id, month, spent_nanos, held_nanos FROM budget b JOIN api_key k ON k.budget_id = b.id
    WHERE k.id = ${key.id} ${onPostgres('FOR NO KEY UPDATE OF b')}`
  const budgetRow = present(row)
  const month = text(budgetRow, 'month')
  const isNow = month === monthOf(yield* currentTime(atMs))
  const spent = isNow ? nanos(budgetRow, 'spent_nanos') : 0n
  const held = isNow ? nanos(budgetRow, 'held_nanos') : 0n
  if (spent < capNanos) return
  if ((yield* markAll([exceededMark(text(budgetRow, 'id'), month, capNanos)], atMs)).size === 0) return
  const budget = {
    ...{ percent: CAP_PERCENT, spent: String(spent), held: String(held), cap: String(capNanos) },
    ...{ month, requestId: null },
  }
  const told = { accountId: key.accountId, type: 'key.budget.exceeded', keyId: key.id } as const
  yield* tell({ ...told, facts: { budget } }, now(atMs))
}
