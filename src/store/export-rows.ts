import { InstallationError } from '../kernel/errors.ts'
import { type RunQuery, runOn, type Snapshot } from './operations/operation.ts'
import { readSetting } from './operations/settings.ts'
import { join, onPostgres, raw, sql } from './operations/sql.ts'
import { number, present, type Row, readValue, text } from './rows.ts'
import { FIRST_ROWS, SCHEMA_VERSION } from './schema.ts'
import type { Column, Table } from './table.ts'
import { TABLES } from './tables.ts'

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

export const EXPORTED_TABLES: readonly Table[] = TABLES.filter(({ isExported }) => isExported)

/** The columns to export: all except the node of a call, which has no meaning in another installation. */
export function exportedColumns({ columns }: Table): readonly Column[] {
  return columns.filter(({ name }) => name !== 'node_id')
}

/** Why an export is not possible now (running nodes, or calls that a crashed process left open), or null. */
export async function whyNotExported({ query }: Snapshot): Promise<string | null> {
  const nodes = await query(
    onPostgres(`SELECT name FROM node WHERE fenced_at_ms IS NULL
      AND seen_at_ms > extract(epoch FROM clock_timestamp()) * 1000 - 10000`),
  )
  if (nodes.length > 0)
    return `The node ${text(present(nodes[0]), 'name')} is running on this database. Stop every node, then export.`
  const [open] = await query(sql`SELECT count(*) AS calls FROM hold WHERE node_id <> ''`)
  return number(present(open), 'calls') === 0
    ? null
    : 'A gateway ended without closing its calls. Start and stop it once, which closes the calls, then export.'
}

/** Deletes the rows of a new database, and throws if there are others. Runs in the import's transaction. */
export async function emptyStore(query: RunQuery): Promise<void> {
  for (const { name } of EXPORTED_TABLES) {
    const rows = await query(sql`SELECT 1 AS used FROM ${raw(name)} LIMIT 2`)
    if (rows.length > (FIRST_ROWS[name] === undefined ? 0 : 1))
      throw new InstallationError(
        `The database is not empty: the table "${name}" has rows. Import into a new database or a new data directory.`,
      )
  }
  for (const name of Object.keys(FIRST_ROWS)) await query(sql`DELETE FROM ${raw(name)}`)
}

/** Rows in memory at once. A row with bodies may take megabytes. */
const BATCH_ROWS = 2_000
const BATCH_BODIES = 20

/** Writes the lines of an export in groups, without newlines. Returns the number of rows. */
export async function exportLines(
  snapshot: Snapshot,
  write: (lines: readonly string[]) => Promise<unknown>,
): Promise<number> {
  const pepper = present(await runOn(snapshot.query, readSetting('pepper')))
  const head: ExportHead = { tollgate_export: 1, schema_version: SCHEMA_VERSION, pepper }
  await write([JSON.stringify(head)])
  let rows = 0
  for (const table of EXPORTED_TABLES) {
    const columns = exportedColumns(table)
    const names = columns.map(({ name }) => name)
    await write([JSON.stringify({ table: table.name, columns: names } satisfies TableHead)])
    for await (const batch of batchesOf(snapshot, table, columns)) {
      await write(
        batch.map((row) => JSON.stringify(columns.map((column) => cellOf(column, row[column.name])))),
      )
      rows += batch.length
    }
  }
  await write([JSON.stringify({ rows } satisfies ExportEnd)])
  return rows
}

async function* batchesOf(
  { query }: Snapshot,
  { name, key, location }: Table,
  columns: readonly Column[],
): AsyncGenerator<readonly Row[]> {
  const names = raw(columns.map((column) => column.name).join(', '))
  const order = raw(key.join(', '))
  const limit = location === 'bodies' ? BATCH_BODIES : BATCH_ROWS
  for (let after = sql``; ; ) {
    const rows = await query(sql`SELECT ${names} FROM ${raw(name)} ${after} ORDER BY ${order} LIMIT ${limit}`)
    if (rows.length > 0) yield rows
    if (rows.length < limit) return
    const last = present(rows.at(-1))
    after = sql`WHERE (${order}) > (${join(key.map((column) => last[column] as string | bigint | Uint8Array))})`
  }
}

function cellOf({ name, kind }: Column, value: unknown): Cell {
  if (value === null || value === undefined) return null
  switch (kind) {
    case 'amount':
    case 'integer': {
      const number = Number(value)
      return Number.isSafeInteger(number) ? number : String(value)
    }
    case 'bytes':
      return Buffer.from(value as Uint8Array).toString('base64')
    case 'json':
      return JSON.stringify(readValue(name, value))
    default:
      return readValue(name, value) as string | boolean
  }
}
