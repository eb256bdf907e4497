import { type Column, FIRST_ROWS, TABLES, type Table } from './schema.ts'
import type { ColumnKind } from './table-parts.ts'

/** The statements that make the tables of a new database. */

const SQLITE_TYPES: Readonly<Record<ColumnKind, string>> = {
  text: 'TEXT',
  integer: 'INTEGER',
  flag: 'INTEGER',
  json: 'TEXT',
  bytes: 'BLOB',
}

/** Texts sort by their bytes, as they do in SQLite. */
const POSTGRES_TYPES: Readonly<Record<ColumnKind, string>> = {
  text: 'text COLLATE "C"',
  integer: 'bigint',
  flag: 'boolean',
  json: 'jsonb',
  bytes: 'bytea',
}

/** The tables of the database, or those of the file for bodies. */
export function sqliteSchema(location: 'main' | 'bodies'): string {
  const tables = TABLES.filter((table) => table.location === location)
  return statementsOf(
    tables,
    (table) => `${tableOf(table, SQLITE_TYPES)} STRICT${table.isWide ? '' : ', WITHOUT ROWID'}`,
  )
}

/** The database's clock: read where it stands in a statement, and not at its begin. */
const CLOCK = `CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS
  $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;`

export function postgresSchema(): string {
  return `${CLOCK}\n${postgresTables()}`
}

function postgresTables(): string {
  return statementsOf(TABLES, (table) => {
    const text = tableOf(table, POSTGRES_TYPES)
    // Wide columns are compressed already.
    const external = table.isWide ? table.columns.filter(({ kind }) => kind === 'bytes') : []
    return [
      table.isHot ? `${text} WITH (fillfactor = 50)` : text,
      ...external.map(({ name }) => `ALTER TABLE ${table.name} ALTER COLUMN ${name} SET STORAGE EXTERNAL`),
    ].join(';\n')
  })
}

function statementsOf(tables: readonly Table[], create: (table: Table) => string): string {
  const statements = tables.flatMap((table) => [
    create(table),
    ...table.indexes.map(
      ({ name, columns, isUnique, where }) =>
        `CREATE ${isUnique ? 'UNIQUE ' : ''}INDEX ${name} ON ${table.name} (${columns})${where === null ? '' : ` WHERE ${where}`}`,
    ),
    ...(FIRST_ROWS[table.name] === undefined ? [] : [FIRST_ROWS[table.name]]),
  ])
  return `${statements.join(';\n')};`
}

function tableOf(table: Table, types: Readonly<Record<ColumnKind, string>>): string {
  const parts = [
    ...table.columns.map((column) => columnOf(column, types)),
    `PRIMARY KEY (${table.key.join(', ')})`,
    ...table.checks.map((check) => `CHECK (${check})`),
  ]
  return `CREATE TABLE ${table.name} (\n  ${parts.join(',\n  ')}\n)`
}

function columnOf(column: Column, types: Readonly<Record<ColumnKind, string>>): string {
  const { name, kind, isNullable, defaultSql, references } = column
  return [
    `${name} ${types[kind]}`,
    ...(isNullable ? [] : ['NOT NULL']),
    ...(defaultSql === null ? [] : [`DEFAULT ${defaultSql}`]),
    ...(references === null ? [] : [`REFERENCES ${references} (id)`]),
  ].join(' ')
}
