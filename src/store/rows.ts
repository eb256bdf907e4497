import type { Page } from '../keys/key-store.ts'
import { READERS } from './table.ts'
import { TABLES } from './tables.ts'

/** A row of either store: integers are bigint, JSON of PostgreSQL is parsed, a flag is a boolean or 0 and 1. */
export type Row = Readonly<Record<string, unknown>>

export function present<T = Row>(row: T | null | undefined): T {
  if (row === null || row === undefined) throw new Error('a required row is missing')
  return row
}

export function text(row: Row, column: string): string {
  const value = row[column]
  if (typeof value !== 'string') throw new Error(`${column} is not text`)
  return value
}

export function number(row: Row, column: string): number {
  const value = row[column]
  if (typeof value !== 'bigint' && typeof value !== 'number') throw new Error(`${column} is not a number`)
  return Number(value)
}

export function nanos(row: Row, column: string): bigint {
  const value = row[column]
  if (typeof value !== 'bigint') throw new Error(`${column} is not an integer`)
  return value
}

/** An integer of any size, read as text: PostgreSQL's sums are numeric. */
export function sum(row: Row, column: string): bigint {
  return BigInt(text(row, column))
}

const BILLION = 1_000_000_000n

/** The columns of a sum that may exceed 64 bits, where SQLite's sum() fails: whole dollars, and the rest. */
export function wideSum(amount: string, name: string): string {
  const part = (of: string, suffix: string) => `CAST(coalesce(sum(${of}), 0) AS text) AS ${name}_${suffix}`
  return `${part(`(${amount}) / ${BILLION}`, 'dollars')}, ${part(`(${amount}) % ${BILLION}`, 'rest')}`
}

export function readWideSum(row: Row, name: string): bigint {
  return sum(row, `${name}_dollars`) * BILLION + sum(row, `${name}_rest`)
}

export function bool(row: Row, column: string): boolean {
  const value = row[column]
  if (typeof value !== 'boolean' && typeof value !== 'bigint') throw new Error(`${column} is not a flag`)
  return value === true || value === 1n
}

/** Reads a JSON list of strings, which SQLite returns as text. */
export function namesOf(column: unknown): readonly string[] | null {
  return typeof column === 'string' ? (JSON.parse(column) as string[]) : (column as readonly string[] | null)
}

function orNull<T>(read: (row: Row, column: string) => T): (row: Row, column: string) => T | null {
  return (row, column) => ((row[column] ?? null) === null ? null : read(row, column))
}

export const textOrNull = orNull(text)
export const numberOrNull = orNull(number)
export const nanosOrNull = orNull(nanos)

const kinds = new Map(TABLES.flatMap(({ columns }) => columns.map(({ name, kind }) => [name, kind] as const)))
const readers = new Map<string, { readonly name: string; read(value: unknown): unknown }>()

function readerOf(column: string) {
  const known = readers.get(column)
  if (known !== undefined) return known
  const name = column.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
  const reader = { name, read: parserOf(column) }
  readers.set(column, reader)
  return reader
}

function parserOf(column: string): (value: unknown) => unknown {
  const kind = kinds.get(column)
  if (kind === 'flag' || kind === 'json') return READERS[kind]
  return column.endsWith('_nanos') ? READERS.amount : READERS.integer
}

/** Columns in camel case, flags as booleans, JSON parsed, amounts (`…_nanos`) as bigint, other integers as numbers. */
export function recordOf<Record extends object>(row: Row): Record {
  const record: { [name: string]: unknown } = {}
  for (const column in row) {
    const { name, read } = readerOf(column)
    const value = row[column]
    record[name] = value === null ? null : read(value)
  }
  return record as Record
}

export function readValue(column: string, value: unknown): unknown {
  return value === null ? null : readerOf(column).read(value)
}

/** A page of records. The query asked for one row more than the limit, which shows whether there are more. */
export function pageOf<Record>(
  rows: readonly Row[],
  limit: number,
  read: (row: Row) => Record,
): Page<Record> {
  return { rows: rows.slice(0, limit).map(read), more: rows.length > limit }
}
