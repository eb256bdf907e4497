import { firstUlid } from '../../kernel/ids.ts'
import { type Sql, sql } from './sql.ts'

/** Maximum time from the arrival of a call to its start: its body may be slow, it may wait, and clocks may differ. */
const START_AFTER_ID_MS = 24 * 60 * 60 * 1000

/** Conditions for calls that began from `fromMs`, and before `toMs`. No index has times, so they bound the id too. */
export function startedWithin(fromMs: number | null, toMs: number | null): Sql[] {
  const conditions: Sql[] = []
  if (fromMs !== null)
    conditions.push(
      sql`started_at_ms >= ${fromMs} AND id >= ${`req_${firstUlid(fromMs - START_AFTER_ID_MS)}`}`,
    )
  if (toMs !== null)
    conditions.push(sql`started_at_ms < ${toMs} AND id < ${`req_${firstUlid(toMs + START_AFTER_ID_MS)}`}`)
  return conditions
}
