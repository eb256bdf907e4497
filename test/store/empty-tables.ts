import { FIRST_ROWS } from '../../src/store/schema.ts'
import type { Table } from '../../src/store/table.ts'
import { TABLES } from '../../src/store/tables.ts'

/** Deletes the rows of these tables, except those of a new store. */
export function emptyTables(...locations: readonly Table['location'][]): string {
  const tables = TABLES.filter(({ location }) => locations.includes(location))
  const deleted = tables.toReversed().map(({ name }) => `DELETE FROM ${name}`)
  const first = tables.flatMap(({ name }) => FIRST_ROWS[name]?.replace('NOW_MS', '0') ?? [])
  return [...deleted, ...first].join(';\n')
}
