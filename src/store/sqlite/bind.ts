import type { SQLInputValue, StatementSync } from 'node:sqlite'
import type { Brought } from '../../ledger/call-columns.ts'

/** A JS number would be bound as REAL, and a comparison or sum with it would leave the integers. */
export function integer(value: number): bigint {
  return BigInt(Math.trunc(value))
}

export function flag(value: boolean): bigint {
  return value ? 1n : 0n
}

/**
 * Binders give a statement the columns of a call out of the command that brings them. Counts stay numbers: where they are
 * stored, and not compared or added, the table makes integers of them, in a third of the time.
 */
export function bindersOf<Command>(
  columns: readonly Brought<Command>[],
): readonly ((command: Command) => SQLInputValue)[] {
  return columns.map(({ of, kind }) =>
    kind === 'flag' ? (command) => (of(command) ? 1 : 0) : (of as (command: Command) => SQLInputValue),
  )
}

/** Rows as arrays: an object takes as long again, for the names of its columns alone. */
export function inArrays(statement: StatementSync): StatementSync {
  statement.setReturnArrays(true)
  return statement
}
