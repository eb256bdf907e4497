import { DAY_SUMS } from '../../ledger/audited.ts'
import type { Database } from './database.ts'
import { text } from './rows.ts'

/** Months that sums are kept of, and whose partition of calls has been detached. */
export async function findMonthsAway(db: Database): Promise<string[]> {
  const rows = await db.query(
    `WITH kept AS (
       SELECT DISTINCT left(day, 7) AS month FROM rollup
       UNION SELECT month FROM key_month WHERE spent_nanos <> 0 OR held_nanos <> 0 OR lost_nanos <> 0
     ), here AS (
       SELECT replace(right(relname, 7), '_', '-') AS month
       FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid WHERE inhparent = 'call'::regclass
     )
     SELECT month FROM kept WHERE month NOT IN (SELECT month FROM here) ORDER BY month`,
  )
  return rows.map((row) => text(row, 'month'))
}

/** What the days of these months say is derived from their calls, as far as anybody can know. */
export async function takeDays(db: Database, months: readonly string[]): Promise<void> {
  const columns = `account_id, day, model, key_id, ${DAY_SUMS.join(', ')}`
  await db.query(
    `INSERT INTO derived_day (${columns}) SELECT ${columns} FROM rollup WHERE left(day, 7) = ANY ($1)`,
    [months],
  )
}

/** What was spent is in the days; what was lost is nowhere else. Nothing should be held for calls that are away. */
export async function takeLosses(db: Database, months: readonly string[]): Promise<void> {
  await db.query(
    `INSERT INTO derived_month (key_id, month, lost_nanos)
     SELECT key_id, month, lost_nanos FROM key_month WHERE month = ANY ($1)
     ON CONFLICT (key_id, month) DO UPDATE SET lost_nanos = excluded.lost_nanos`,
    [months],
  )
}
