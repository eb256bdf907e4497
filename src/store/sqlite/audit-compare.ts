import type { DatabaseSync } from 'node:sqlite'
import type { SumsRow } from '../../ledger/audited.ts'
import { nanos, type Row } from './rows.ts'

export interface Comparison {
  readonly stored: string
  readonly derived: string
  /** Of the derived row: whether there should be a stored one. */
  readonly due: string
  readonly key: readonly string[]
  where(row: Row): string
}

/** Rows of a table that are not what was derived. */
export function* differing(
  db: DatabaseSync,
  columns: readonly string[],
  tables: Comparison,
): Iterable<SumsRow> {
  const { key } = tables
  const list = (alias: string): string => columns.map((column) => `${alias}.${column}`).join(', ')
  const select = db.prepare(
    `SELECT ${key.map((column) => `coalesce(stored.${column}, derived.${column}) AS ${column}`).join(', ')},
       ${columns.map((column) => `stored.${column} AS stored_${column}, derived.${column} AS derived_${column}`).join(', ')},
       stored.${key[0]} IS NOT NULL AS is_stored, coalesce(${tables.due}, 0) AS is_due
     FROM ${tables.stored} AS stored FULL JOIN ${tables.derived} AS derived
       ON ${key.map((column) => `derived.${column} = stored.${column}`).join(' AND ')}
     WHERE (${list('stored')}) IS NOT (${list('derived')}) OR NOT is_due
     ORDER BY ${key.map((_, i) => i + 1).join(', ')}`,
  )
  for (const row of select.iterate()) {
    const side = (name: string): Record<string, bigint> =>
      Object.fromEntries(columns.map((column) => [column, nanos(row, `${name}_${column}`)]))
    yield {
      where: tables.where(row),
      stored: row['is_stored'] === 1n ? side('stored') : null,
      derived: row['is_due'] === 1n ? side('derived') : null,
    }
  }
}
