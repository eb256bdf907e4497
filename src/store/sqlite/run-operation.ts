import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import type { Answers, Batch, Operation, Operations } from '../operations/operation.ts'
import { type Dialect, type Runnable, render } from '../operations/sql.ts'
import type { Row } from '../rows.ts'

const SQLITE: Dialect = { store: 'sqlite', clock: 'caller', toJson: JSON.stringify }

/** Preparing a statement costs six times as much as running it. Most operations have few texts; lists of values make many. */
const PREPARED_MAX = 200
const PREPARED_CHARACTERS_MAX = 4_000

export type RunStatement = (statement: Runnable) => readonly Row[]

export function statementRunner(db: DatabaseSync): RunStatement {
  const prepared = new Map<string, StatementSync>()

  function prepare(text: string): StatementSync {
    const known = prepared.get(text)
    if (known !== undefined) return known
    const made = db.prepare(text)
    if (prepared.size >= PREPARED_MAX) prepared.clear()
    if (text.length <= PREPARED_CHARACTERS_MAX) prepared.set(text, made)
    return made
  }

  return (statement) => {
    const { text, values } = render(statement, SQLITE)
    return text === '' ? [] : prepare(text).all(...(values as SQLInputValue[]))
  }
}

/** Runs a batch in the current transaction. The caller commits. */
export function runBatch<T>(batch: Batch<T>, run: RunStatement): T {
  let result = batch.next()
  while (!result.done) result = batch.next(result.value.statements.map(run))
  return result.value
}

/** Runs an operation in the current transaction. */
export function runToEnd<T>(operation: Operation<T>, run: RunStatement): T {
  let step = operation.next()
  while (!step.done) step = operation.next(run(step.value))
  return step.value
}

export function operationsOn<O extends Operations>(run: RunStatement, operations: O): Answers<O> {
  return Object.fromEntries(
    Object.entries(operations).map(([name, operate]) => [
      name,
      (...args: never[]) => runToEnd(operate(...args), run),
    ]),
  ) as Answers<O>
}
