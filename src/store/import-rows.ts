import { InstallationError } from '../kernel/errors.ts'
import {
  type Cell,
  EXPORTED_TABLES,
  type ExportEnd,
  type ExportHead,
  exportedColumns,
  type TableHead,
} from './export-rows.ts'
import { SCHEMA_VERSION } from './schema.ts'
import type { Column } from './table.ts'

type InsertRows = (
  table: string,
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
) => Promise<void>

/** Runs the work in one transaction on an empty database. If the work fails, the database stays empty. */
export type ImportInto = <T>(work: (insert: InsertRows) => Promise<T>) => Promise<T>

const BATCH_ROWS = 1_000
const BATCH_CHARACTERS = 8 * 1024 * 1024

export async function importLines(
  lines: AsyncIterable<string>,
  pepper: string,
  insert: InsertRows,
): Promise<number> {
  let rows = 0
  let table: { readonly name: string; readonly columns: readonly Column[] } | null = null
  let batch: (readonly Cell[])[] = []
  let characters = 0
  let isHead = true
  let end: ExportEnd | null = null
  const flush = async (): Promise<void> => {
    if (table !== null && batch.length > 0) await insert(table.name, table.columns, batch)
    rows += batch.length
    batch = []
    characters = 0
  }
  for await (const line of lines) {
    const parsed = parseLine(line)
    if (isHead) {
      checkHead(parsed, pepper)
      isHead = false
    } else if (Array.isArray(parsed)) {
      if (table === null || parsed.length !== table.columns.length) throw damaged('a row fits no table')
      batch.push(parsed as readonly Cell[])
      characters += line.length
      if (batch.length >= BATCH_ROWS || characters >= BATCH_CHARACTERS) await flush()
    } else {
      await flush()
      if (parsed !== null && typeof parsed === 'object' && 'rows' in parsed) end = parsed as ExportEnd
      else table = tableOf(parsed)
    }
  }
  if (end === null || end.rows !== rows) throw damaged('its end is missing')
  return rows
}

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    throw damaged('a line is not JSON')
  }
}

function checkHead(parsed: unknown, pepper: string): void {
  const head = parsed as Partial<ExportHead> | null
  if (head?.tollgate_export !== 1) throw damaged('its first line is not the head of an export')
  if (head.schema_version !== SCHEMA_VERSION)
    throw new InstallationError(
      `The export has schema version ${head.schema_version}, this Tollgate has ${SCHEMA_VERSION}. Import it with the version ` +
        'that exported it, then upgrade.',
    )
  if (head.pepper !== pepper)
    throw new InstallationError(
      'The export is from an installation with another pepper, so no key in it would be recognised. Copy the file "pepper" of the exported ' +
        'installation into the data directory, or set TOLLGATE_PEPPER to its value.',
    )
}

function tableOf(parsed: unknown): { readonly name: string; readonly columns: readonly Column[] } {
  const head = parsed as Partial<TableHead>
  const table = EXPORTED_TABLES.find(({ name }) => name === head.table)
  if (table === undefined || !Array.isArray(head.columns)) throw damaged(`it has an unknown table`)
  const known = new Map(exportedColumns(table).map((column) => [column.name, column]))
  const columns = head.columns.map((name) => known.get(name))
  if (columns.length !== known.size || columns.some((column) => column === undefined))
    throw damaged(`the columns of ${table.name} are not those of this version`)
  return { name: table.name, columns: columns as Column[] }
}

function damaged(why: string): InstallationError {
  return new InstallationError(`The export is incomplete: ${why}. Nothing was imported; export again.`)
}
