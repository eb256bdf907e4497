import { monthOf } from '../../ledger/calendar.ts'
import { onPostgres, type Sql, sql } from './sql.ts'

/** Beyond it the year has more than four digits, and months are not in the order of their texts. */
const YEAR_10000_MS = Date.UTC(10_000, 0)

/**
 * Leaves out the months in which there is nothing to look for: PostgreSQL keeps calls by the month of their admission.
 * The text goes on from another condition.
 */
export function withinMonths(fromMs: number, toMs: number): Sql {
  const isMonth = (atMs: number): boolean => atMs >= 0 && atMs < YEAR_10000_MS
  const from = isMonth(fromMs) ? sql`AND month >= ${monthOf(fromMs)}` : sql``
  const to = isMonth(toMs) ? sql`AND month <= ${monthOf(toMs)}` : sql``
  return onPostgres(sql`${from} ${to}`)
}
