import type { Snapshot } from '../operations/operation.ts'
import { bool, number, present } from '../rows.ts'
import { SCHEMA } from '../schema.ts'
import { assertReadable, READ_RECORD, type RecordedVersion } from '../upgrades.ts'
import { openPool, type Pool, type Queries } from './database.ts'
import { queryOn } from './run-operation.ts'

/** The only timeout of a command-line tool, longer than any of them takes. */
const COMMAND_MS = 7 * 24 * 60 * 60 * 1000

export function openConnections(url: string, connectionsMax = 1): Pool {
  return openPool({ url, connectionsMax, connectMs: 5_000, statementMs: COMMAND_MS, deadlines: false })
}

/** Connects a command-line tool. Nodes may be running. Null: this database has no Tollgate tables. */
export async function openLedger(url: string): Promise<Pool | null> {
  const db = openConnections(url)
  try {
    const [row] = await db.query(
      "SELECT to_regclass('schema_version') IS NOT NULL AND to_regclass('call') IS NOT NULL AS has_tables",
    )
    if (bool(present(row), 'has_tables')) {
      assertReadable(await readVersion(db), SCHEMA)
      return db
    }
  } catch (error) {
    await db.close()
    throw error
  }
  await db.close()
  return null
}

/** A snapshot, during which PostgreSQL cannot vacuum newer changes. Null: this database has no Tollgate tables. */
export async function openPostgresSnapshot(url: string): Promise<Snapshot | null> {
  const db = await openLedger(url)
  if (db === null) return null
  // Use one transaction: the pool would replace a lost connection, and reads on another connection see another state.
  const opened = Promise.withResolvers<Queries>()
  const ended = Promise.withResolvers<void>()
  const running = db.transaction(async (tx) => {
    await tx.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY')
    await liftDeadlines(tx)
    opened.resolve(tx)
    await ended.promise
  })
  running.catch(opened.reject)
  const close = async (): Promise<void> => {
    ended.resolve()
    // The caller of the statement already got the failure.
    await running.catch(() => {})
    await db.close()
  }
  try {
    return { query: queryOn(await opened.promise), close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Removes the timeouts for this transaction. Timeouts set on the role or database are meant for nodes. */
export async function liftDeadlines(tx: Queries): Promise<void> {
  await tx.query(
    `SELECT set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true)`,
  )
}

export async function readVersion(db: Queries, lock: '' | 'FOR SHARE' = ''): Promise<RecordedVersion> {
  const row = present((await db.query(`${READ_RECORD} ${lock}`))[0])
  return { version: number(row, 'version'), oldestVersion: number(row, 'oldest_version') }
}
