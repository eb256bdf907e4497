import type { Snapshot } from '../operations/operation.ts'
import { bool, number, present } from '../rows.ts'
import { postgresSchema, SCHEMA_VERSION, upgradesFrom } from '../schema.ts'
import { openPool, type Pool, type Queries } from './database.ts'
import { queryOn } from './run-operation.ts'

/** The only timeout of a command-line tool, longer than any of them takes. */
const COMMAND_MS = 7 * 24 * 60 * 60 * 1000

function openConnection(url: string): Pool {
  return openPool({ url, connectionsMax: 1, connectMs: 5_000, statementMs: COMMAND_MS, deadlines: false })
}

/** Connects a command-line tool. Nodes may be running. Null: this database has no Tollgate tables. */
export async function openLedger(url: string): Promise<Pool | null> {
  const db = openConnection(url)
  try {
    const [row] = await db.query(
      "SELECT to_regclass('schema_version') IS NOT NULL AND to_regclass('call') IS NOT NULL AS has_tables",
    )
    if (bool(present(row), 'has_tables')) {
      upgradesFrom(await versionOf(db), 'postgres')
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

/** The key of an advisory lock. Nothing else in the database may use it. */
const MIGRATION_LOCK = 746_001

/** The schema version of the database; 0 if it has no tables yet. */
async function versionOf(db: Queries): Promise<number> {
  const [row] = await db.query('SELECT version FROM schema_version')
  return row === undefined ? 0 : number(row, 'version')
}

/** Creates or upgrades the tables in one transaction. Its lock is not the session's, so it works behind a pooler. */
export async function migratePostgres(url: string): Promise<void> {
  const db = openConnection(url)
  try {
    await db.transaction(async (tx) => {
      await tx.query(`SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`)
      await tx.query('CREATE TABLE IF NOT EXISTS schema_version (version integer NOT NULL)')
      const version = await versionOf(tx)
      for (const statement of version === 0 ? [postgresSchema()] : upgradesFrom(version, 'postgres'))
        await tx.query(statement)
      if (version === SCHEMA_VERSION) return
      await tx.query('DELETE FROM schema_version')
      await tx.query('INSERT INTO schema_version (version) VALUES ($1)', [SCHEMA_VERSION])
    })
  } finally {
    await db.close()
  }
}
