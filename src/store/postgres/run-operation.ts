import {
  asyncMethods,
  type Batch,
  isAtomic,
  type Methods,
  type Operation,
  type Operations,
} from '../operations/operation.ts'
import { statementsOf } from '../operations/prepared.ts'
import { type Dialect, render, type Sql, type StoreClock } from '../operations/sql.ts'
import type { Row } from '../rows.ts'
import { escapeNulInJson, type Pool, type Queries } from './database.ts'

/** How long a transaction may be idle. A suspended node must lose its locks soon: admissions may wait for them. */
const IDLE_MS_MAX = 2_000

/** Longer than a batch, because a command that changes a key waits for the batches that use the key. */
const ATOMIC_MS_MAX = 8_000

export function dialectOf(clock: StoreClock): Dialect {
  return { store: 'postgres', clock, toJson: escapeNulInJson }
}

export async function runStatement(db: Queries, statement: Sql, dialect: Dialect): Promise<readonly Row[]> {
  const { text, values } = render(statement, dialect)
  return text === '' ? [] : await db.query(text, values)
}

export async function runToEnd<T>(db: Queries, operation: Operation<T>, dialect: Dialect): Promise<T> {
  let step = operation.next()
  while (!step.done) step = operation.next(await runStatement(db, step.value, dialect))
  return step.value
}

export function operationsOn<O extends Operations>(
  db: Pool,
  operations: O,
  clock: StoreClock,
  answerMs = 0,
): Methods<O> {
  const dialect = dialectOf(clock)
  const limits = { idleMs: Math.max(IDLE_MS_MAX, answerMs), totalMs: Math.max(ATOMIC_MS_MAX, answerMs) }
  return asyncMethods(operations, (name, args) => {
    const operate = operations[name] as Operations[string]
    return isAtomic(operate)
      ? db.transaction((tx) => runToEnd(tx, operate(...args), dialect), limits)
      : runToEnd(db, operate(...args), dialect)
  })
}

/** Runs a batch in one transaction: each step is one round trip, the first with BEGIN and the last with COMMIT. */
export function runBatch<T>(db: Pool, operate: () => Batch<T>, dialect: Dialect): Promise<T> {
  return db.transaction(async ({ pipeline }) => {
    const batch = operate()
    let result = batch.next()
    while (!result.done) {
      const { statements, end } = result.value
      const sent = statements.map((statement) => statementsOf(statement, dialect))
      const rows = (await pipeline(sent.flat(), end)).values()
      result = batch.next(sent.map((each) => each.flatMap(() => rows.next().value ?? [])))
    }
    return result.value
  })
}
