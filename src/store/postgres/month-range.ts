import { monthOf } from '../../ledger/calendar.ts'
import type { Bound } from './bound.ts'

/** Beyond it the year has more than four digits, and months are not in the order of their texts. */
const YEAR_10000_MS = Date.UTC(10_000, 0)

/** Leaves out the months in which there is nothing to look for: calls are kept by the month of their admission. */
export function monthRange(bound: Bound, fromMs: number, toMs: number): string[] {
  return [...monthSql(bound, '>=', fromMs), ...monthSql(bound, '<=', toMs)]
}

function monthSql(bound: Bound, comparison: '>=' | '<=', atMs: number): string[] {
  return atMs >= 0 && atMs < YEAR_10000_MS ? [`month ${comparison} ${bound.as('text', monthOf(atMs))}`] : []
}
