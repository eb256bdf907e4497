import { type Column, type Index, parseColumn, parseIndex, type TableLocation } from './table-parts.ts'
import { TABLE_PARTS } from './tables.ts'

export type { Column, Index }

/**
 * The schema of both stores, as data: `tables.ts` has the tables.
 * `render-schema.ts` makes the statements of SQLite and PostgreSQL from it, and export and import read and write the tables
 * by it. Amounts are nanodollars, instants are milliseconds (UTC).
 */

export interface Table {
  readonly name: string
  readonly columns: readonly Column[]
  readonly key: readonly string[]
  readonly indexes: readonly Index[]
  readonly checks: readonly string[]
  /** Rows are updated often: PostgreSQL leaves room in their pages, so that an update changes no index. */
  readonly isHot: boolean
  /** Rows may be large: SQLite keeps them apart from the index of the primary key. */
  readonly isWide: boolean
  /** `main`: the database. `bodies`: a file of its own in SQLite. `postgres`: a table that SQLite does not have. */
  readonly location: TableLocation
  /** False for rows that mean nothing outside of the running installation: export leaves them out. */
  readonly isExported: boolean
}

/** The version of the schema. A database of a later version is refused; an earlier one would run UPGRADES. */
export const SCHEMA_VERSION = 1

/** Statements for each store that bring a database from the version before to this one, by the version they lead to. */
export const UPGRADES: Readonly<Record<number, Readonly<Record<'sqlite' | 'postgres', string>>>> = {}

export const TABLES: readonly Table[] = Object.entries(TABLE_PARTS).map(([name, parts]) => ({
  name,
  columns: Object.entries(parts.columns).map(([column, text]) => parseColumn(column, text)),
  key: parts.key.split(', '),
  indexes: Object.entries(parts.indexes ?? {}).map(([index, text]) => parseIndex(index, text)),
  checks: parts.checks ?? [],
  isHot: parts.isHot ?? false,
  isWide: parts.isWide ?? false,
  location: parts.location ?? 'main',
  isExported: parts.isExported ?? true,
}))

/** The rows that a new database begins with. */
export const FIRST_ROWS: Readonly<Record<string, string>> = {
  account: "INSERT INTO account (id, created_at_ms) VALUES ('default', 0)",
  body_total: 'INSERT INTO body_total (id, bytes) VALUES (1, 0)',
}
