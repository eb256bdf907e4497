import type { Clock } from '../../kernel/clock.ts'
import type { RerateWriter } from '../../ledger/rerate.ts'
import type { Ask, Snapshot } from '../operations/operation.ts'
import { rerateWriter } from '../operations/rerate.ts'
import type { Sql } from '../operations/sql.ts'
import { bool, number, present } from '../rows.ts'
import { upgradesFrom } from '../upgrades.ts'
import { type Database, openPool, type Pool } from './database.ts'
import { migrate } from './migrate.ts'
import { dialectOf, runAtomically, runStatement } from './run-operation.ts'

/** The only deadline of a command, longer than any command should take. */
const COMMAND_MS = 7 * 24 * 60 * 60 * 1000

/** Connects a command that runs beside the nodes. Null: this database has no tables of Tollgate. */
export async function openLedger(url: string): Promise<Pool | null> {
  const pool = openPool({
    url,
    connectionsMax: 1,
    statementMs: COMMAND_MS,
    settings: { deadlines: false },
  })
  try {
    const [row] = await pool.query(
      "SELECT to_regclass('schema_version') IS NOT NULL AND to_regclass('call') IS NOT NULL AS there",
    )
    if (bool(present(row), 'there')) {
      const [schema] = await pool.query('SELECT version FROM schema_version')
      upgradesFrom(number(present(schema), 'version'), 'postgres')
      return pool
    }
  } catch (error) {
    await pool.close()
    throw error
  }
  await pool.close()
  return null
}

export async function hasLedger(url: string): Promise<boolean> {
  const pool = await openLedger(url)
  await pool?.close()
  return pool !== null
}

/**
 * Reads the database as it was at one instant, while nodes go on writing. While it lasts, PostgreSQL cannot vacuum what
 * changes meanwhile: on a large installation run an audit on a restored copy. Null: this database has no tables of ours.
 */
export async function openSnapshot(url: string): Promise<Snapshot | null> {
  const pool = await openLedger(url)
  if (pool === null) return null
  const opened = Promise.withResolvers<Database>()
  const ended = Promise.withResolvers<void>()
  const running = pool.transaction(async (tx) => {
    await tx.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY')
    await liftDeadlines(tx)
    opened.resolve(tx)
    await ended.promise
  })
  running.catch(opened.reject)
  const close = async (): Promise<void> => {
    ended.resolve()
    // A failure has been thrown already where the statement was asked.
    await running.catch(() => {})
    await pool.close()
  }
  try {
    return { ask: askOn(await opened.promise), close }
  } catch (error) {
    await close()
    throw error
  }
}

export async function openRerateWriter(url: string, clock: Clock): Promise<RerateWriter | null> {
  const db = await openLedger(url)
  if (db === null) return null
  try {
    await migrate(url)
  } catch (error) {
    await db.close()
    throw error
  }
  return rerateWriter(
    {
      ask: (statement) => askAtLength(db, statement),
      doAtomically: (operate) => runAtomically(db, operate, DIALECT),
      close: () => db.close(),
    },
    clock,
  )
}

const DIALECT = dialectOf('database')

export function askOn(db: Database): Ask {
  return (statement) => runStatement(db, statement, DIALECT)
}

/** A statement over many calls, without a timeout. */
export function askAtLength(db: Database, statement: Sql): ReturnType<Ask> {
  return db.transaction(async (tx) => {
    await liftDeadlines(tx)
    return await runStatement(tx, statement, DIALECT)
  })
}

/** Lifts the timeouts for this transaction. Timeouts of the role or the database are meant for nodes. */
async function liftDeadlines(tx: Database): Promise<void> {
  await tx.query(
    `SELECT set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true)`,
  )
}
