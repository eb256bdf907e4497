import type { SQLInputValue, StatementSync } from 'node:sqlite'
import type { ColumnKind } from '../../ledger/call-columns.ts'

/** A JS number would be bound as REAL, and a comparison or sum with it would leave the integers. */
export function integer(value: number): bigint {
  return BigInt(Math.trunc(value))
}

export function flag(value: boolean): bigint {
  return value ? 1n : 0n
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
