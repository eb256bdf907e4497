import { columnOf } from '../../ledger/call-columns.ts'
import { kindOf } from '../tables.ts'
import { join, json, raw, type Sql, type SqlValue, sql } from './sql.ts'

/** Statements that write records as `recordOf` reads them: each member is a column, in camel case. */

type Cell = readonly [column: string, value: SqlValue]

/** Leaves out members that are undefined, or not a column of this table. */
function cellsOf(table: string, record: object): readonly Cell[] {
  return Object.entries(record).flatMap(([name, value]) => {
    const column = columnOf(name)
    const kind = kindOf(table, column)
    if (kind === undefined || value === undefined) return []
    return [[column, kind === 'json' ? json(value) : value]]
  })
}

/** An INSERT of records. A member that a record lacks is null. `suffix` follows the values. */
export function insertInto(table: string, records: readonly object[], suffix: Sql = sql``): Sql {
  const rows = records.map((record) => new Map(cellsOf(table, record)))
  const columns = [...new Set(rows.flatMap((cells) => [...cells.keys()]))]
  const values = rows.map((cells) => sql`(${join(columns.map((column) => cells.get(column) ?? null))})`)
  return sql`INSERT INTO ${raw(`${table} (${columns.join(', ')})`)} VALUES ${join(values)} ${suffix}`
}

/** An UPDATE of the row with this id. Without changes it is empty, and is not run. */
export function updateRow(table: string, id: string, changes: object): Sql {
  const set = cellsOf(table, changes).map(([column, value]) => sql`${raw(column)} = ${value}`)
  return set.length === 0 ? sql`` : sql`UPDATE ${raw(table)} SET ${join(set)} WHERE id = ${id}`
}
