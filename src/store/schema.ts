import { InstallationError } from '../kernel/errors.ts'
import { TABLE_DEFINITIONS, type TableDefinition } from './tables.ts'

/** The parsed tables of `tables.ts`, and the statements that create them. Export and import use them too. */

type ColumnKind = 'text' | 'integer' | 'flag' | 'json' | 'bytes'

export type Column = Readonly<ReturnType<typeof parseColumn>>

export interface Table extends Required<Omit<TableDefinition, 'columns' | 'key' | 'indexes'>> {
  readonly name: string
  readonly columns: readonly Column[]
  readonly key: readonly string[]
  readonly indexes: readonly ReturnType<typeof parseIndex>[]
}

export const TABLES: readonly Table[] = Object.entries(TABLE_DEFINITIONS).map(([name, definition]) => ({
  ...{ checks: [], isHot: false, isWide: false, location: 'main', isExported: true },
  ...definition,
  name,
  columns: definition.columns
    .replaceAll(/--.*/g, '')
    .split(',')
    .map((text) => parseColumn(text.trim())),
  key: definition.key.split(', '),
  indexes: Object.entries(definition.indexes ?? {}).map(([index, text]) => parseIndex(index, text)),
}))

const kinds = new Map(
  TABLES.flatMap(({ name: table, columns }) =>
    columns.map(({ name, kind }) => [`${table}.${name}`, kind] as const),
  ),
)

/** Undefined: the table has no such column. */
export const kindOf = (table: string, column: string): ColumnKind | undefined =>
  kinds.get(`${table}.${column}`)

function parseColumn(text: string) {
  const [, name = '', kind = '', mark, defaultSql = null, references = null] =
    /^(\w+) (\w+)(\??)(?: = (.*)| -> (.*))?$/.exec(text) ?? []
  return { name, kind: kind as ColumnKind, isNullable: mark === '?', defaultSql, references }
}

function parseIndex(name: string, text: string) {
  const [, unique, columns = '', where = null] = /^(unique )?(.*?)(?: where (.*))?$/.exec(text) ?? []
  return { name, columns, isUnique: unique !== undefined, where }
}

/** The version of the schema. A database of a later version is refused; an earlier one runs UPGRADES. */
export const SCHEMA_VERSION = 1

/** Statements by the version to which they upgrade. */
const UPGRADES: Readonly<Record<number, Readonly<Record<'sqlite' | 'postgres', string>>>> = {}

export function newerSchema(version: number): InstallationError {
  return new InstallationError(
    `The database has schema version ${version}, this Tollgate knows up to ${SCHEMA_VERSION}. ` +
      'It was written by a newer version: start that one, or restore a backup made before the upgrade.',
  )
}

export function upgradesFrom(version: number, store: 'sqlite' | 'postgres'): readonly string[] {
  if (version > SCHEMA_VERSION) throw newerSchema(version)
  const steps = Array.from({ length: SCHEMA_VERSION - version }, (_, i) => version + i + 1)
  return steps.map((step) => UPGRADES[step]?.[store] ?? '')
}

/** The rows that a new database begins with. `NOW_MS` stands for its clock. */
export const FIRST_ROWS: Readonly<Record<string, string>> = {
  account: "INSERT INTO account (id, created_at_ms) VALUES ('default', NOW_MS)",
  body_total: 'INSERT INTO body_total (id, bytes) VALUES (1, 0)',
}

type Types = Readonly<Record<ColumnKind, string>>

const SQLITE_TYPES: Types = { text: 'TEXT', integer: 'INTEGER', flag: 'INTEGER', json: 'TEXT', bytes: 'BLOB' }

/** Texts sort by their bytes, as they do in SQLite. */
const POSTGRES_TYPES: Types = {
  ...{ text: 'text COLLATE "C"', integer: 'bigint', flag: 'boolean', json: 'jsonb', bytes: 'bytea' },
}

export function sqliteSchema(location: 'main' | 'bodies'): string {
  const tables = TABLES.filter((table) => table.location === location)
  const text = statementsOf(
    tables,
    (table) => `${tableOf(table, SQLITE_TYPES)} STRICT${table.isWide ? '' : ', WITHOUT ROWID'}`,
  )
  return text.replace('NOW_MS', "CAST(unixepoch('subsec') * 1000 AS INTEGER)")
}

/** The database's clock, read when the expression is evaluated, not when the statement begins. */
const CLOCK = `CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS
  $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;`

export function postgresSchema(): string {
  const tables = statementsOf(TABLES, (table) => {
    const text = tableOf(table, POSTGRES_TYPES)
    // Wide columns are compressed already.
    const external = table.isWide ? table.columns.filter(({ kind }) => kind === 'bytes') : []
    return [
      table.isHot ? `${text} WITH (fillfactor = 50)` : text,
      ...external.map(({ name }) => `ALTER TABLE ${table.name} ALTER COLUMN ${name} SET STORAGE EXTERNAL`),
    ].join(';\n')
  })
  return `${CLOCK}\n${tables.replace('NOW_MS', 'now_ms()')}`
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

function tableOf({ name, columns, key, checks }: Table, types: Types): string {
  const parts = [
    ...columns.map((column) => columnOf(column, types)),
    `PRIMARY KEY (${key.join(', ')})`,
    ...checks.map((check) => `CHECK (${check})`),
  ]
  return `CREATE TABLE ${name} (\n  ${parts.join(',\n  ')}\n)`
}

function columnOf({ name, kind, isNullable, defaultSql, references }: Column, types: Types): string {
  return [
    `${name} ${types[kind]}`,
    ...(isNullable ? [] : ['NOT NULL']),
    ...(defaultSql === null ? [] : [`DEFAULT ${defaultSql}`]),
    ...(references === null ? [] : [`REFERENCES ${references} (id)`]),
  ].join(' ')
}
