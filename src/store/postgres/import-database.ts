import { type Cell, emptyStore } from '../export-rows.ts'
import type { ImportInto } from '../import-rows.ts'
import { storableJson } from '../operations/sql.ts'
import type { Column } from '../table.ts'
import { liftDeadlines, openLedger } from './ledger.ts'
import { migratePostgres } from './migrate.ts'
import { queryOn } from './run-operation.ts'

export async function importIntoDatabase(url: string): Promise<ImportInto> {
  await migratePostgres(url)
  const pool = await openLedger(url)
  if (pool === null) throw new Error('the tables were not created')
  return async (work) => {
    try {
      const answer = await pool.transaction(async (tx) => {
        await liftDeadlines(tx)
        await emptyStore(queryOn(tx))
        return await work(async (table, columns, rows) => {
          const names = columns.map(({ name }) => name).join(', ')
          await tx.query(
            `INSERT INTO ${table} (${names}) SELECT ${names} FROM json_populate_recordset(NULL::${table}, $1::json)`,
            [recordsOf(columns, rows)],
          )
        })
      })
      await pool.query('ANALYZE')
      return answer
    } finally {
      await pool.close()
    }
  }
}

function recordsOf(columns: readonly Column[], rows: readonly (readonly Cell[])[]): string {
  const records = rows.map((row) =>
    Object.fromEntries(columns.map((column, at) => [column.name, jsonOf(row[at] ?? null, column)])),
  )
  return storableJson(records)
}

function jsonOf(cell: Cell, { kind }: Column): unknown {
  if (cell === null) return null
  if (kind === 'bytes') return `\\x${Buffer.from(String(cell), 'base64').toString('hex')}`
  return kind === 'json' ? JSON.parse(String(cell)) : cell
}
