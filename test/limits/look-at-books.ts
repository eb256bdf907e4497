import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

export interface CallRow {
  readonly id: string
  readonly keyId: string
  readonly state: string
  readonly month: string
  readonly startedAtMs: number
  readonly path: string
  readonly costNanos: number
}

export interface Books {
  calls(keyId?: string): CallRow[]
  /** By month, such as `2026-12`. */
  months(keyId: string): Map<string, { readonly spentNanos: number; readonly heldNanos: number }>
}

/** What the database says, past the API. Sums of tests are far below 2⁵³ nanodollars. */
export function lookAtBooks(dataDir: string): Books {
  const read = (sql: string, ...values: string[]) => {
    const db = new DatabaseSync(join(dataDir, 'tollgate.db'), { readOnly: true })
    try {
      return db.prepare(sql).all(...values)
    } finally {
      db.close()
    }
  }
  return {
    calls: (keyId) =>
      read('SELECT * FROM call ORDER BY started_at_ms, id')
        .filter((row) => keyId === undefined || row['key_id'] === keyId)
        .map((row) => ({
          id: String(row['id']),
          keyId: String(row['key_id']),
          state: String(row['state']),
          month: String(row['month']),
          startedAtMs: Number(row['started_at_ms']),
          path: String(row['path']),
          costNanos: Number(row['cost_nanos'] ?? 0),
        })),
    months: (keyId) =>
      new Map(
        read('SELECT * FROM key_month WHERE key_id = ?', keyId).map((row) => [
          String(row['month']),
          { spentNanos: Number(row['spent_nanos']), heldNanos: Number(row['held_nanos']) },
        ]),
      ),
  }
}

export const usdOf = (nanos: number): number => Number((nanos / 1e9).toFixed(9))
export const nanosOf = (usd: unknown): number => Math.round(Number(usd) * 1e9)

/** A change by another process, which tells this one nothing. */
export function changeFromBeside(dataDir: string, sql: string): void {
  const db = new DatabaseSync(join(dataDir, 'tollgate.db'), { timeout: 5_000 })
  try {
    db.exec(`BEGIN IMMEDIATE; ${sql}; COMMIT`)
  } finally {
    db.close()
  }
}
