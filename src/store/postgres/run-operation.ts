import {
  asyncMethods,
  type Batch,
  isAtomic,
  type Methods,
  type Operations,
  type RunQuery,
  runOn,
} from '../operations/operation.ts'
import { postgresStatement } from '../operations/prepared.ts'
import { type Dialect, render, type StoreClock } from '../operations/sql.ts'
import type { Pool, Queries } from './database.ts'

/** How long a transaction may be idle. A suspended node must lose its locks soon: admissions may wait for them. */
const IDLE_MS_MAX = 2_000

/** Longer than a batch, because a command that changes a key waits for the batches that use the key. */
const ATOMIC_MS_MAX = 8_000

export function dialectOf(clock: StoreClock): Dialect {
  return { store: 'postgres', clock }
}

export function queryOn(db: Queries, dialect = dialectOf('database')): RunQuery {
  return async (statement) => {
    const { text, values } = render(statement, dialect)
    return text === '' ? [] : await db.query(text, values)
  }
}

export function postgresOperations<O extends Operations>(
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
      ? db.transaction((tx) => runOn(queryOn(tx, dialect), operate(...args)), limits)
      : runOn(queryOn(db, dialect), operate(...args))
  })
}

/** Runs a batch in one transaction: each step is one round trip, the first with BEGIN and the last with COMMIT. */
export function runBatchOnPostgres<T>(db: Pool, operate: () => Batch<T>, dialect: Dialect): Promise<T> {
  return db.transaction(async ({ pipeline }) => {
    const batch = operate()
    let result = batch.next()
    while (!result.done) {
      const { statements, end } = result.value
      const sent = statements.map((statement) => postgresStatement(statement, dialect))
      const rows = (
        await pipeline(
          sent.filter((each) => each !== null),
          end,
        )
      ).values()
      result = batch.next(sent.map((each) => (each === null ? [] : (rows.next().value ?? []))))
    }
    return result.value
  })
}
