import type { ColumnKind } from './columns.ts'
import type { Column, Table } from './table.ts'
import { TABLES } from './tables.ts'
import type { ReleaseSchema, SchemaPlace } from './upgrades.ts'

/** The version of the schema. docs/UPGRADING.md lists the releases and what each version changed. */
export const SCHEMA_VERSION = 1

/** The schema of this release. A change of a table needs a step here, and a test of it on the former version. */
export const SCHEMA: ReleaseSchema = {
  version: SCHEMA_VERSION,
  oldestVersion: 1,
  first: { version: 1, release: '0.1' },
  steps: [],
  create: (place: SchemaPlace) => (place === 'postgres' ? postgresSchema() : sqliteSchema(place)),
}

/** The rows that a new database begins with. `NOW_MS` stands for its clock. */
export const FIRST_ROWS: Readonly<Record<string, string>> = {
  account: "INSERT INTO account (id, created_at_ms) VALUES ('default', NOW_MS)",
  body_total: 'INSERT INTO body_total (id, bytes) VALUES (1, 0)',
}

type Types = Readonly<Record<ColumnKind, string>>

const SQLITE_TYPES: Types = {
  text: 'TEXT',
  integer: 'INTEGER',
  amount: 'INTEGER',
  flag: 'INTEGER',
  json: 'TEXT',
  bytes: 'BLOB',
}

/** Texts sort by their bytes, as they do in SQLite. */
const POSTGRES_TYPES: Types = {
  text: 'text COLLATE "C"',
  integer: 'bigint',
  amount: 'bigint',
  flag: 'boolean',
  json: 'jsonb',
  bytes: 'bytea',
}

export function sqliteSchema(location: 'main' | 'bodies'): string {
  const text = schemaText(
    TABLES.filter((table) => table.location === location),
    (table) => `${createTable(table, SQLITE_TYPES)} STRICT${table.isWide ? '' : ', WITHOUT ROWID'}`,
    ({ isOnlyOnPostgres }) => !isOnlyOnPostgres,
  )
  return text.replace('NOW_MS', "CAST(unixepoch('subsec') * 1000 AS INTEGER)")
}

/** The database's clock, read when the expression is evaluated, not when the statement begins. */
const CLOCK = `CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS
  $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;`

/** Ends a transaction that must run again, within the statement that notices it: the commit is already on its way. */
const MUST_MATCH = `CREATE FUNCTION must_match(matches boolean) RETURNS boolean LANGUAGE plpgsql AS $$
  BEGIN
    IF NOT matches THEN
      RAISE EXCEPTION 'the terms of an account have changed' USING ERRCODE = 'serialization_failure';
    END IF;
    RETURN true;
  END $$;`

/** Rows that change with every call: after how many changes a table is vacuumed, whatever share of it they are. */
const VACUUMED_AFTER: Readonly<Record<string, number>> = { hold: 5_000, budget: 5_000, account: 1_000 }

function storageOf({ name, isHot }: Table): string {
  const changes = VACUUMED_AFTER[name]
  const settings = [
    ...(isHot ? ['fillfactor = 50'] : []),
    ...(changes === undefined
      ? []
      : ['autovacuum_vacuum_scale_factor = 0', `autovacuum_vacuum_threshold = ${changes}`]),
  ]
  return settings.length === 0 ? '' : ` WITH (${settings.join(', ')})`
}

export function postgresSchema(): string {
  const text = schemaText(TABLES, (table) => {
    const { isWide } = table
    // Wide columns are compressed already.
    const external = isWide ? table.columns.filter(({ kind }) => kind === 'bytes') : []
    return [
      `${createTable(table, POSTGRES_TYPES)}${storageOf(table)}`,
      ...external.map(({ name }) => `ALTER TABLE ${table.name} ALTER COLUMN ${name} SET STORAGE EXTERNAL`),
    ].join(';\n')
  })
  return `${CLOCK}\n${MUST_MATCH}\n${text.replace('NOW_MS', 'now_ms()')}`
}

function schemaText(
  tables: readonly Table[],
  create: (table: Table) => string,
  hasIndex: (index: Table['indexes'][number]) => boolean = () => true,
): string {
  const statements = tables.flatMap((table) => [
    create(table),
    ...createIndexes({ ...table, indexes: table.indexes.filter(hasIndex) }),
    ...(FIRST_ROWS[table.name] === undefined ? [] : [FIRST_ROWS[table.name]]),
  ])
  return `${statements.join(';\n')};`
}

function createTable({ name, columns, key, checks }: Table, types: Types): string {
  const parts = [
    ...columns.map((column) => createColumn(column, types)),
    `PRIMARY KEY (${key.join(', ')})`,
    ...checks.map((check) => `CHECK (${check})`),
  ]
  return `CREATE TABLE ${name} (\n  ${parts.join(',\n  ')}\n)`
}

function createIndexes({ name: table, indexes }: Table): string[] {
  return indexes.map(({ name, columns, isUnique, where }) => {
    const condition = where === null ? '' : ` WHERE ${where}`
    return `CREATE ${isUnique ? 'UNIQUE ' : ''}INDEX ${name} ON ${table} (${columns.join(', ')})${condition}`
  })
}

function createColumn({ name, kind, isNullable, defaultSql, foreignTable }: Column, types: Types): string {
  return [
    `${name} ${types[kind]}`,
    ...(isNullable ? [] : ['NOT NULL']),
    ...(defaultSql === null ? [] : [`DEFAULT ${defaultSql}`]),
    ...(foreignTable === null ? [] : [`REFERENCES ${foreignTable} (id)`]),
  ].join(' ')
}
