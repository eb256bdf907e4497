import { MOVED_TABLES, type MovedTable } from './moved-tables.ts'
import type { Source } from './source.ts'
import type { Target } from './target.ts'

/** Rows and sums on both sides. Null: they are the same, and nothing is held. */
export async function compareBooks(
  source: Source,
  target: Target,
  onTable: (table: MovedTable, done: number, total: number) => void,
): Promise<string | null> {
  for (const [i, table] of MOVED_TABLES.entries()) {
    onTable(table, i, MOVED_TABLES.length)
    const from = source.totals(table)
    const to = await target.totals(table)
    for (const [column, sum] of Object.entries(from)) {
      if (to[column] === sum) continue
      const what = column === 'rows' ? 'the number of' : `the sum of ${column} of`
      return `${what} ${table.noun} is ${sum} in SQLite and ${to[column]} in PostgreSQL`
    }
    const held = to['held_nanos'] ?? 0n
    if (held !== 0n) return `${table.noun} have ${held} nanodollars held, and no call is open`
  }
  return null
}
