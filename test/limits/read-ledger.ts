import { type DatabaseOwner, readDatabase } from '../support/read-database.ts'

/** Reads the database directly. Sums in tests are far below 2⁵³ nanodollars. */
export function readLedger(gateway: DatabaseOwner) {
  const read = (sql: string) => readDatabase(gateway, sql)
  return {
    async calls(keyId: string) {
      const rows = await read(`SELECT * FROM call WHERE key_id = '${keyId}' ORDER BY started_at_ms, id`)
      return rows.map((row) => ({
        id: String(row['id']),
        keyId: String(row['key_id']),
        state: String(row['state']),
        month: String(row['month']),
        day: String(row['day']),
        startedAtMs: Number(row['started_at_ms']),
        path: String(row['path']),
        costNanos: Number(row['cost_nanos'] ?? 0),
      }))
    },
    async months(keyId: string) {
      const rows =
        await read(`SELECT month, sum(cost_nanos) AS spent_nanos, sum(hold_nanos) AS held_nanos FROM (
          SELECT month, cost_nanos, 0 AS hold_nanos FROM call WHERE key_id = '${keyId}'
          UNION ALL SELECT month, 0, hold_nanos FROM hold WHERE key_id = '${keyId}') AS each
        GROUP BY month ORDER BY month`)
      return new Map(
        rows.map((row) => [
          String(row['month']),
          { spentNanos: Number(row['spent_nanos']), heldNanos: Number(row['held_nanos']) },
        ]),
      )
    },
  }
}

export const usdOf = (nanos: number): number => Number((nanos / 1e9).toFixed(9))
export const nanosOf = (usd: unknown): number => Math.round(Number(usd) * 1e9)
