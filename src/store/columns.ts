/** The types of columns, from which the types of rows, the SQL schema and the readers of rows follow. */

export type ColumnKind = 'text' | 'integer' | 'amount' | 'flag' | 'json' | 'bytes'

interface ColumnFacts {
  readonly kind: ColumnKind
  readonly isNullable: boolean
  /** In SQL that both stores understand. */
  readonly defaultSql: string | null
  /** The table whose id the column holds. */
  readonly foreignTable: string | null
}

export interface ColumnType<Value> extends ColumnFacts {
  /** Only a type: what a record has for the column. */
  readonly value?: Value
  /** A narrower type of the same kind, for example the values of an enumeration. */
  of<Narrow extends Value>(): ColumnType<Narrow>
  orNull(): ColumnType<Value | null>
  default(value: Value): ColumnType<Value>
  references(table: string): ColumnType<Value>
}

function columnType<Value>(facts: ColumnFacts): ColumnType<Value> {
  return {
    ...facts,
    of: () => columnType(facts),
    orNull: () => columnType({ ...facts, isNullable: true }),
    default: (value) => columnType({ ...facts, defaultSql: literal(value) }),
    references: (foreignTable) => columnType({ ...facts, foreignTable }),
  }
}

function literal(value: unknown): string {
  if (typeof value === 'string') return `'${value}'`
  return typeof value === 'object' ? `'${JSON.stringify(value)}'` : String(value)
}

function ofKind<Value>(kind: ColumnKind): ColumnType<Value> {
  return columnType({ kind, isNullable: false, defaultSql: null, foreignTable: null })
}

/** Integers are exact up to 2^53; an amount of nanodollars is a bigint. */
export const column = {
  text: ofKind<string>('text'),
  integer: ofKind<number>('integer'),
  amount: ofKind<bigint>('amount'),
  flag: ofKind<boolean>('flag'),
  bytes: ofKind<Uint8Array>('bytes'),
  json: <Value>() => ofKind<Value>('json'),
}

/** The column of a member of a record: its name in snake case. */
export function snakeCase(member: string): string {
  return member.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
