import type { ColumnKind } from './columns.ts'
import type { Table } from './table.ts'
import { ACCOUNTS_TABLES } from './tables/accounts.ts'
import { CALLS_TABLES } from './tables/calls.ts'
import { EVENTS_TABLES } from './tables/events.ts'
import { PRICES_TABLES } from './tables/prices.ts'

export const tables = { ...ACCOUNTS_TABLES, ...CALLS_TABLES, ...EVENTS_TABLES, ...PRICES_TABLES }

/** Each table comes after those that it references. */
export const TABLES: readonly Table[] = Object.values(tables)

const kinds = new Map(
  TABLES.flatMap(({ name: table, columns }) =>
    columns.map(({ name, kind }) => [`${table}.${name}`, kind] as const),
  ),
)

/** Undefined: the table has no such column. */
export function kindOf(table: string, column: string): ColumnKind | undefined {
  return kinds.get(`${table}.${column}`)
}
