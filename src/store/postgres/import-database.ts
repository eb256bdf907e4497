import pg from 'pg'
import { type Cell, findRows } from '../export-rows.ts'
import { type ImportTarget, notEmpty } from '../import-rows.ts'
import { type Column, FIRST_ROWS } from '../schema.ts'
import { type Database, failureOf, toKeptJson, unconnected } from './database.ts'
import { migrate } from './ledger.ts'
import { dialectOf, runStatement } from './run-operation.ts'

export async function openImportDatabase(url: string): Promise<ImportTarget> {
  await migrate(url)
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 })
  client.on('error', () => {})
  await client.connect().catch((error: unknown) => {
    throw unconnected(error)
  })
  const query = async (text: string, values: readonly unknown[] = []) => {
    try {
      return (await client.query(text, [...values])).rows
    } catch (error) {
      throw failureOf(error)
    }
  }
  const end = () => client.end().catch(() => {})
  try {
    await query('BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0')
    const tx: Database = { query, transaction: (work) => work(tx) }
    const used = await findRows({ ask: (statement) => runStatement(tx, statement, dialectOf('database')) })
    if (used !== null) throw notEmpty(used)
    for (const name of Object.keys(FIRST_ROWS)) await query(`DELETE FROM ${name}`)
  } catch (error) {
    // Closing the connection rolls the transaction back.
    await end()
    throw error
  }
  return {
    async insert(table, columns, rows) {
      const names = columns.map(({ name }) => name).join(', ')
      const json = recordsOf(columns, rows)
      await query(
        `INSERT INTO ${table} (${names}) SELECT ${names} FROM json_populate_recordset(NULL::${table}, $1::json)`,
        [json],
      )
    },
    async commit() {
      await query('COMMIT')
      await query('ANALYZE')
      await end()
    },
    abort: end,
  }
}

/** Rows as a JSON array of objects. */
function recordsOf(columns: readonly Column[], rows: readonly (readonly Cell[])[]): string {
  const records = rows.map((row) => {
    const record: Record<string, unknown> = {}
    for (const [at, column] of columns.entries()) record[column.name] = jsonOf(row[at] ?? null, column)
    return record
  })
  const json = JSON.stringify(records)
  // PostgreSQL accepts none of the JSON escapes for U+0000, U+0001 and lone surrogates.
  return /\\u(?:000[01]|d[89a-f])/.test(json) ? toKeptJson(records) : json
}

function jsonOf(cell: Cell, { kind }: Column): unknown {
  if (cell === null) return null
  if (kind === 'bytes') return `\\x${Buffer.from(String(cell), 'base64').toString('hex')}`
  return kind === 'json' ? JSON.parse(String(cell)) : cell
}
