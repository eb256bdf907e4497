import type { Batches, SumsRow } from '../../ledger/audited.ts'
import type { Database } from './database.ts'
import { bool, type Row, text } from './rows.ts'

export interface Comparison {
  readonly stored: string
  readonly derived: string
  /** Whether there should be, or may be, a stored row. */
  readonly due: string
  readonly key: readonly string[]
  where(row: Row): string
}

/** Every row that this gives is a difference, so a few are enough. */
const DIFFERENCES_MAX = 100

/** Rows of a table that are not what was derived. */
export async function* compared(
  db: Database,
  columns: readonly string[],
  tables: Comparison,
): Batches<SumsRow> {
  const { key, due } = tables
  const list = (alias: string): string =>
    columns.map((column) => `coalesce(${alias}.${column}, 0)::numeric`).join(', ')
  const shown = (alias: string): string =>
    columns.map((column) => `coalesce(${alias}.${column}, 0)::text AS ${alias}_${column}`).join(', ')
  const isStored = `stored.${key[0]} IS NOT NULL`
  const isDue = `coalesce(${due}, false)`
  const rows = await db.query(
    `SELECT ${key.map((column) => `coalesce(stored.${column}, derived.${column}) AS ${column}`).join(', ')},
       ${shown('stored')}, ${shown('derived')}, ${isStored} AS is_stored, ${isDue} AS is_due
     FROM ${tables.stored} AS stored FULL JOIN ${tables.derived} AS derived
       ON ${key.map((column) => `derived.${column} = stored.${column}`).join(' AND ')}
     WHERE CASE WHEN ${isDue} THEN ROW(${list('stored')}) <> ROW(${list('derived')}) ELSE ${isStored} END
     ORDER BY ${key.map((_, i) => i + 1).join(', ')} LIMIT ${DIFFERENCES_MAX}`,
  )
  yield rows.map((row) => {
    const side = (name: string): Record<string, bigint> =>
      Object.fromEntries(columns.map((column) => [column, BigInt(text(row, `${name}_${column}`))]))
    return {
      where: tables.where(row),
      stored: bool(row, 'is_stored') ? side('stored') : null,
      derived: bool(row, 'is_due') ? side('derived') : null,
    }
  })
}
