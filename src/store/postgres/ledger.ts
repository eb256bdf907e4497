import pg from 'pg'
import type { Ask, Snapshot } from '../operations/operation.ts'
import { bool, number, present } from '../rows.ts'
import { NewerSchema, postgresSchema, SCHEMA_VERSION, upgradesFrom } from '../schema.ts'
import { type Database, failureOf, openPool, type Pool, unconnected } from './database.ts'
import { dialectOf, runStatement } from './run-operation.ts'

/** The only deadline of a command, longer than any should take. */
const COMMAND_MS = 7 * 24 * 60 * 60 * 1000

/** Connects a command-line tool, also while nodes run. Null: this database has no Tollgate tables. */
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

/**
 * Reads a snapshot of the database while nodes continue to write. While it is open, PostgreSQL cannot vacuum newer
 * changes: audit a large installation on a restored copy. Null: this database has no Tollgate tables.
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
    // The caller of the statement already got the failure.
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

const DIALECT = dialectOf('database')

export function askOn(db: Database): Ask {
  return (statement) => runStatement(db, statement, DIALECT)
}

/** Lifts the timeouts for this transaction. Timeouts set on the role or database are meant for nodes. */
export async function liftDeadlines(tx: Database): Promise<void> {
  await tx.query(
    `SELECT set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true)`,
  )
}

/** Any number that nothing else in the database uses. */
const MIGRATION_LOCK = 746_001

interface SchemaRow {
  readonly version: number
}

/**
 * Creates the tables of a new database, or upgrades an earlier version, in one transaction; a newer version is refused.
 * If several nodes start at once, one migrates and the others wait. The lock belongs to the transaction, not to the
 * session, so it works behind a pooler.
 */
export async function migrate(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 })
  client.on('error', () => {})
  await client.connect().catch((error: unknown) => {
    throw unconnected(error)
  })
  try {
    await client.query('BEGIN')
    await client.query(`SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`)
    await client.query('CREATE TABLE IF NOT EXISTS schema_version (version integer NOT NULL)')
    const { rows } = await client.query<SchemaRow>('SELECT version FROM schema_version')
    const version = rows[0]?.version ?? 0
    const statements = version === 0 ? [postgresSchema()] : upgradesFrom(version, 'postgres')
    for (const statement of statements) await client.query(statement)
    if (version < SCHEMA_VERSION) {
      await client.query('DELETE FROM schema_version')
      await client.query('INSERT INTO schema_version (version) VALUES ($1)', [SCHEMA_VERSION])
    }
    await client.query('COMMIT')
  } catch (error) {
    throw error instanceof NewerSchema ? error : failureOf(error)
  } finally {
    // Closing the connection rolls back an uncommitted transaction.
    await client.end().catch(() => {})
  }
}
