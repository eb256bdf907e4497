import { KEY_LIMITS, type KeyChanges, type KeyRecord } from '../../keys/key-store.ts'
import { CAP_PERCENT } from '../../ledger/budget-crossings.ts'
import { nanos, present, text } from '../rows.ts'
import type { Operation } from './operation.ts'
import { exceededMark, isTold, keptKey, markAll, tell } from './outbox.ts'
import { FOR_UPDATE, monthNow, now, onPostgres, sql } from './sql.ts'

/** What commands on keys tell, in their own transactions. */

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
 * A cap that was put at or below what is spent is reached by that. On PostgreSQL the month is locked until the edit is
 * committed, as settlement locks it before it looks at the cap: one of the two sees what the other has done.
 */
export function* tellOfCap(key: KeyRecord, changes: KeyChanges, atMs: number): Operation<void> {
  const { monthlyBudgetNanos: capNanos = null } = changes
  if (capNanos === null || !(yield* isTold(key.accountId))) return
  const [current] = yield sql`SELECT ${monthNow(atMs)} AS month`
  const month = text(present(current), 'month')
  yield onPostgres(
    sql`INSERT INTO key_month (key_id, month) VALUES (${key.id}, ${month}) ON CONFLICT DO NOTHING`,
  )
  const [row] = yield sql`
    SELECT spent_nanos, held_nanos FROM key_month WHERE key_id = ${key.id} AND month = ${month} ${FOR_UPDATE}`
  const spent = row === undefined ? 0n : nanos(row, 'spent_nanos')
  const held = row === undefined ? 0n : nanos(row, 'held_nanos')
  if (spent < capNanos) return
  if ((yield* markAll([exceededMark(key.id, month, capNanos)], atMs)).size === 0) return
  const budget = {
    ...{ percent: CAP_PERCENT, spent: String(spent), held: String(held), cap: String(capNanos) },
    ...{ month, requestId: null },
  }
  const told = { accountId: key.accountId, type: 'key.budget.exceeded', keyId: key.id } as const
  yield* tell({ ...told, facts: { budget } }, now(atMs))
}
