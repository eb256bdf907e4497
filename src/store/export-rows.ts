import type { Snapshot } from './operations/operation.ts'
import { byStore, onPostgres, raw, type Sql, sql } from './operations/sql.ts'
import { bool, number, present, type Row, text } from './rows.ts'
import { type Column, SCHEMA_VERSION, TABLES, type Table } from './schema.ts'

/**
 * The export file is NDJSON: a head; for each table a line with its name and columns, followed by its rows as arrays;
 * and a last line with the number of rows, without which the file is incomplete. Integers beyond 2^53 are strings,
 * bytes are base64, JSON columns are JSON text with sorted members. Both stores write the same bytes for the same rows.
 */
export interface ExportHead {
  readonly tollgate_export: 1
  readonly schema_version: number
  /** Fingerprint of the pepper that digests and stored secrets depend on. */
  readonly pepper: string
}

export interface TableHead {
  readonly table: string
  readonly columns: readonly string[]
}

export interface ExportEnd {
  readonly rows: number
}

export type Cell = string | number | boolean | null

/** The exported tables. Each comes after the tables that it references. */
export const EXPORTED_TABLES: readonly Table[] = TABLES.filter(({ isExported }) => isExported)

/** The node of a call has no meaning in another installation. */
export function exportedColumns({ columns }: Table): readonly Column[] {
  return columns.filter(({ name }) => name !== 'node_id')
}

/** Why an export is not possible now: running nodes, or calls that a crashed process left open. Null: it is possible. */
export async function whyNotExported({ ask }: Snapshot): Promise<string | null> {
  const nodes = await ask(
    onPostgres(`SELECT name FROM node WHERE fenced_at_ms IS NULL AND cleared_at_ms IS NULL
      AND seen_at_ms > extract(epoch FROM clock_timestamp()) * 1000 - 10000`),
  )
  if (nodes.length > 0)
    return `The node ${text(present(nodes[0]), 'name')} serves from this database. Stop every node, then export.`
  const [open] = await ask(
    sql`SELECT count(*) AS calls FROM call WHERE state = 'in_flight' AND object_id IS NULL AND parent_id IS NULL`,
  )
  return number(present(open), 'calls') === 0
    ? null
    : 'A gateway ended without closing its calls. Start it once and stop it, so that they are closed, then export.'
}

/** The name of a table that has rows; null if the store is as empty as a new one. */
export async function findRows({ ask }: Pick<Snapshot, 'ask'>): Promise<string | null> {
  for (const { name, location } of EXPORTED_TABLES) {
    if (location === 'bodies' && !(await hasBodies({ ask }))) continue
    // A new store has one account and one row in `body_total`.
    const new_rows = name === 'account' || name === 'body_total' ? 1 : 0
    const [row] = await ask(
      sql`SELECT count(*) > ${new_rows} AS used FROM (SELECT 1 FROM ${raw(name)} LIMIT 2) AS first`,
    )
    if (bool(present(row), 'used')) return name
  }
  return null
}

/** SQLite creates the bodies file with the first logged body. */
async function hasBodies({ ask }: Pick<Snapshot, 'ask'>): Promise<boolean> {
  const found = await ask(
    byStore({
      sqlite: "SELECT 1 FROM pragma_table_list WHERE name = 'call_body'",
      postgres: 'SELECT 1 AS one',
    }),
  )
  return found.length > 0
}

/** The row of body_total in a store that has logged no bodies. */
const NO_BODIES: readonly Cell[] = [1, 0]

/** Rows in memory at once. A row with bodies may take megabytes. */
const BATCH_ROWS = 2_000
const BATCH_BODIES = 20

/** Yields the lines of an export in groups, without newlines. */
export async function* exportLines(
  snapshot: Snapshot,
  onRows: (rows: number) => void,
): AsyncGenerator<readonly string[]> {
  const [pepper] = await snapshot.ask(sql`SELECT value FROM setting WHERE name = 'pepper'`)
  const head: ExportHead = {
    tollgate_export: 1,
    schema_version: SCHEMA_VERSION,
    pepper: text(present(pepper), 'value'),
  }
  yield [JSON.stringify(head)]
  let rows = 0
  for (const table of EXPORTED_TABLES) {
    const columns = exportedColumns(table)
    const tableHead: TableHead = { table: table.name, columns: columns.map(({ name }) => name) }
    yield [JSON.stringify(tableHead)]
    if (table.location === 'bodies' && !(await hasBodies(snapshot))) {
      if (table.name !== 'body_total') continue
      yield [JSON.stringify(NO_BODIES)]
      rows += 1
      onRows(rows)
      continue
    }
    for await (const batch of batchesOf(snapshot, table, columns)) {
      yield batch.map((row) => JSON.stringify(columns.map((column) => cellOf(column, row[column.name]))))
      rows += batch.length
      onRows(rows)
    }
  }
  const end: ExportEnd = { rows }
  yield [JSON.stringify(end)]
}

async function* batchesOf(
  { ask }: Snapshot,
  { name, key, location }: Table,
  columns: readonly Column[],
): AsyncGenerator<readonly Row[]> {
  const names = raw(columns.map((column) => column.name).join(', '))
  const order = raw(key.join(', '))
  const limit = location === 'bodies' ? BATCH_BODIES : BATCH_ROWS
  for (let after = sql``; ; ) {
    const rows = await ask(sql`SELECT ${names} FROM ${raw(name)} ${after} ORDER BY ${order} LIMIT ${limit}`)
    if (rows.length > 0) yield rows
    if (rows.length < limit) return
    const last = present(rows.at(-1))
    after = sql`WHERE (${order}) > (${joined(key.map((column) => last[column] as string | bigint | Uint8Array))})`
  }
}

function joined(values: readonly (string | bigint | Uint8Array)[]): Sql {
  return values.reduce<Sql>((list, value, at) => (at === 0 ? sql`${value}` : sql`${list}, ${value}`), sql``)
}

function cellOf({ kind }: Column, value: unknown): Cell {
  if (value === null || value === undefined) return null
  switch (kind) {
    case 'integer': {
      const number = Number(value)
      return Number.isSafeInteger(number) ? number : String(value)
    }
    case 'flag':
      return value === true || value === 1n
    case 'bytes':
      return Buffer.from(value as Uint8Array).toString('base64')
    case 'json':
      return sortedJson(typeof value === 'string' ? JSON.parse(value) : value)
    case 'text':
      return value as string
  }
}

/** PostgreSQL reorders the members of an object. */
function sortedJson(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) =>
    each !== null && typeof each === 'object' && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  )
}
