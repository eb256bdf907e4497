import { type ColumnKind, type ColumnType, snakeCase } from './columns.ts'
import { compileLiteral } from './compile-literal.ts'

type Row = Readonly<Record<string, unknown>>
type ColumnTypes = Readonly<Record<string, ColumnType<unknown>>>
type Member<Columns> = keyof Columns & string
type ValueOf<Type> = Type extends ColumnType<infer Value> ? Value : never

/** A row as a record: each column is a member, in camel case. */
export type RecordOf<T> =
  T extends TypedTable<infer Columns> ? { readonly [Name in keyof Columns]: ValueOf<Columns[Name]> } : never

export interface TableDefinition<Columns extends ColumnTypes> {
  readonly columns: Columns
  readonly key: readonly Member<Columns>[]
  readonly indexes?: Readonly<Record<string, IndexDefinition<Columns>>>
  /** In SQL. */
  readonly checks?: readonly string[]
  /** Rows are updated often, so PostgreSQL leaves free space in their pages. Then updates need not change indexes. */
  readonly isHot?: boolean
  /** Rows may be large: SQLite stores them outside the primary key's index. */
  readonly isWide?: boolean
  /** `main`: the database. `bodies`: a separate file in SQLite. `postgres`: a table that SQLite does not have. */
  readonly location?: 'main' | 'bodies' | 'postgres'
  /** False for rows that have no meaning in another installation. They are not exported. */
  readonly isExported?: boolean
}

interface IndexDefinition<Columns> {
  readonly columns: readonly Member<Columns>[]
  readonly isUnique?: boolean
  /** In SQL. */
  readonly where?: string
  /** SQLite does not have the index, because each call would write one more page. */
  readonly isOnlyOnPostgres?: boolean
}

export interface Column {
  readonly member: string
  readonly name: string
  readonly kind: ColumnKind
  readonly isNullable: boolean
  readonly defaultSql: string | null
  readonly foreignTable: string | null
}

/** Columns to select, and how to read their row. */
export interface Selection<Record> {
  readonly list: string
  readonly read: (row: Row) => Record
}

/** A table as the schema, the export and the import see it. Names are those of the database. */
export interface Table {
  readonly name: string
  readonly columns: readonly Column[]
  readonly key: readonly string[]
  readonly indexes: readonly Index[]
  readonly checks: readonly string[]
  readonly isHot: boolean
  readonly isWide: boolean
  readonly location: 'main' | 'bodies' | 'postgres'
  readonly isExported: boolean
}

interface Index {
  readonly name: string
  readonly columns: readonly string[]
  readonly isUnique: boolean
  readonly where: string | null
  readonly isOnlyOnPostgres: boolean
}

export interface TypedTable<Columns extends ColumnTypes> extends Table {
  /** Selects all columns, or only those of these members. The alias is the table's in the statement. */
  select<Name extends Member<Columns> = Member<Columns>>(
    names?: readonly Name[],
    alias?: string,
  ): Selection<{ readonly [N in Name]: ValueOf<Columns[N]> }>
}

export function table<Columns extends ColumnTypes>(
  name: string,
  definition: TableDefinition<Columns>,
): TypedTable<Columns> {
  const columns = Object.entries(definition.columns).map(([member, type]) => ({
    member,
    name: snakeCase(member),
    kind: type.kind,
    isNullable: type.isNullable,
    defaultSql: type.defaultSql,
    foreignTable: type.foreignTable,
  }))
  return {
    name,
    columns,
    key: definition.key.map(snakeCase),
    indexes: Object.entries(definition.indexes ?? {}).map(
      ([index, { columns, isUnique, where, isOnlyOnPostgres }]) => ({
        name: index,
        columns: columns.map(snakeCase),
        isUnique: isUnique ?? false,
        where: where ?? null,
        isOnlyOnPostgres: isOnlyOnPostgres ?? false,
      }),
    ),
    checks: definition.checks ?? [],
    isHot: definition.isHot ?? false,
    isWide: definition.isWide ?? false,
    location: definition.location ?? 'main',
    isExported: definition.isExported ?? true,
    select(names, alias) {
      const selected = names === undefined ? columns : columns.filter(({ member }) => includes(names, member))
      return {
        list: selected
          .map((column) => (alias === undefined ? column.name : `${alias}.${column.name}`))
          .join(', '),
        // The names and the types of the columns are one definition, so the record has these members.
        read: readerOf<{ [N in Member<Columns>]: ValueOf<Columns[N]> }>(selected),
      }
    },
  }
}

function includes(names: readonly string[], name: string): boolean {
  return names.includes(name)
}

function readerOf<Read>(columns: readonly Column[]): (row: Row) => Read {
  const members = columns.map(({ member, name, kind }, i) => {
    const value = `from.${name}`
    return `${member}: ${value} == null ? null : ${READERS[kind] === same ? value : `functions[${i}](${value})`}`
  })
  const readers = columns.map(({ kind }) => READERS[kind])
  return compileLiteral(`{ ${members.join(', ')} }`, readers)
}

const same = (value: unknown): unknown => value

/** A row has the values of either store: integers are bigint, a flag is a boolean or 0 and 1, JSON is text or parsed. */
export const READERS: Readonly<Record<ColumnKind, (value: unknown) => unknown>> = {
  text: same,
  bytes: same,
  amount: same,
  integer: (value) => (typeof value === 'bigint' ? Number(value) : value),
  flag: (value) => value === true || value === 1n,
  json: (value) => sorted(typeof value === 'string' ? JSON.parse(value) : value),
}

/** PostgreSQL does not preserve the order of members, so they are sorted. */
function sorted(value: unknown): unknown {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}
