import pg from 'pg'
import { postgresSchema } from '../render-schema.ts'
import { SCHEMA_VERSION } from '../schema.ts'
import { NewerSchema, upgradesFrom } from '../upgrades.ts'
import { failureOf, unconnected } from './database.ts'

/** Any number that nothing else in the database uses. */
const MIGRATION_LOCK = 746_001

interface SchemaRow {
  readonly version: number
}

/**
 * Creates the tables of a new database, or upgrades an earlier version, in one transaction; a newer version is refused.
 * If several nodes start at once, the first migrates and the others wait. The lock belongs to the transaction, not to the
 * session, so that a pooler may stand between.
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
    // The end of the connection rolls back a transaction that was not committed.
    await client.end().catch(() => {})
  }
}
