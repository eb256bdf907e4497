import type { Clock } from '../../kernel/clock.ts'
import type { OpenBooks } from '../../ledger/audited.ts'
import type { RerateWriter } from '../../ledger/rerate.ts'
import { booksIn } from '../operations/audit-reader.ts'
import type { Ask } from '../operations/operation.ts'
import { rerateWriter } from '../operations/rerate.ts'
import type { Sql } from '../operations/sql.ts'
import { bool, number, present } from '../rows.ts'
import { type Database, openPool, type Pool } from './database.ts'
import { migrate, newerSchema, SCHEMA_VERSION } from './migrate.ts'
import { dialectOf, runAtomically, runStatement } from './run-operation.ts'

/** The only deadline of a command, longer than any command should take. */
const COMMAND_MS = 7 * 24 * 60 * 60 * 1000

/** Connects a command that works on the books beside the nodes. Null: this database has no books. */
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
      const version = number(present(schema), 'version')
      if (version > SCHEMA_VERSION) throw newerSchema(version)
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

export interface Snapshot<T> {
  readonly db: Database
  readonly prepared: T
  close(): Promise<void>
}

/**
 * A snapshot reads the books as they were at one instant, while nodes go on booking. While it lasts, the database cannot
 * clean up after any change: rows that change often get slower to find, the account's above all. On a large installation
 * the place for it is a copy of the database that was restored from a backup. `prepare` may make temporary tables, which
 * go with the snapshot; after that only those tables can be written to.
 */
export async function openSnapshot<T>(
  pool: Pool,
  prepare: (db: Database) => Promise<T>,
): Promise<Snapshot<T>> {
  let end = (): void => {}
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  let running: Promise<void> = Promise.resolve()
  const close = async (): Promise<void> => {
    end()
    // A failure has been thrown already where the statement was asked.
    await running.catch(() => {})
    await pool.close()
  }
  const opened = new Promise<Omit<Snapshot<T>, 'close'>>((resolve, reject) => {
    running = pool.transaction(async (tx) => {
      await tx.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ')
      await liftDeadlines(tx)
      const prepared = await prepare(tx)
      await tx.query('SET TRANSACTION READ ONLY')
      resolve({ db: tx, prepared })
      await ended
    })
    running.catch(reject)
  })
  try {
    return { ...(await opened), close }
  } catch (error) {
    await close()
    throw error
  }
}

/** The books as they stand now; later reads see the same instant. Null: there are none. */
export async function openBooks(url: string): Promise<OpenBooks | null> {
  const pool = await openLedger(url)
  if (pool === null) return null
  const { prepared, close } = await openSnapshot(pool, (tx) => booksIn(askOn(tx)))
  return { ...prepared, close }
}

export async function openRerateWriter(url: string, clock: Clock): Promise<RerateWriter | null> {
  const db = await openLedger(url)
  if (db === null) return null
  try {
    // Bookings may write events into the outbox, and books of an earlier version have no table for it.
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
