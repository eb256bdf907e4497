import type { SQLInputValue, SQLOutputValue, StatementSync } from 'node:sqlite'
import type { ColumnKind } from '../../ledger/call-columns.ts'

/** A row as node:sqlite gives it, with integers as bigint. */
export type Row = Record<string, SQLOutputValue>

/** A JS number would be bound as REAL, and a comparison or sum with it would leave the integers. */
export function integer(value: number): bigint {
  return BigInt(Math.trunc(value))
}

export function integerOrNull(value: number | null): bigint | null {
  return value === null ? null : integer(value)
}

export function flag(value: boolean): bigint {
  return value ? 1n : 0n
}

export function present(row: Row | undefined): Row {
  if (row === undefined) throw new Error('a row that must be there is not')
  return row
}

export function text(row: Row, column: string): string {
  return String(row[column])
}

export function textOrNull(row: Row, column: string): string | null {
  const value = row[column]
  return value === null || value === undefined ? null : String(value)
}

export function number(row: Row, column: string): number {
  return Number(row[column])
}

export function numberOrNull(row: Row, column: string): number | null {
  const value = row[column]
  return value === null || value === undefined ? null : Number(value)
}

export function nanos(row: Row, column: string): bigint {
  const value = row[column]
  if (typeof value !== 'bigint') throw new Error(`${column} is not an integer`)
  return value
}

export function nanosOrNull(row: Row, column: string): bigint | null {
  return row[column] === null ? null : nanos(row, column)
}

/** A value of a column of a call, as a statement takes it. */
export function bind(value: unknown, kind: ColumnKind): SQLInputValue {
  if (value === null) return null
  if (kind === 'flag') return flag(value as boolean)
  return kind === 'count' || kind === 'count?' ? integer(value as number) : (value as string | bigint)
}

/** Rows as arrays: an object takes as long again, for the names of its columns alone. */
export function inArrays(statement: StatementSync): StatementSync {
  statement.setReturnArrays(true)
  return statement
}
