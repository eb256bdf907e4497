import pg from 'pg'
import { failureOf, unconnected } from './database.ts'
import { FUNCTIONS, FUNCTIONS_HASH } from './functions.ts'
import { migrations } from './migrations.ts'

export const SCHEMA_VERSION = migrations.length

/** Any number that nothing else in the database uses. */
const MIGRATION_LOCK = 746_001

interface SchemaRow {
  readonly version: number
  /** The hash of the functions that are there; absent before there was one. */
  readonly functions?: string | null
}

/**
 * Brings the schema and its functions to this version, in one transaction; a database of a newer version is refused.
 * Of nodes that start at once the first does it and the others wait. The lock belongs to the transaction, not to the
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
    const { rows } = await client.query<SchemaRow>('SELECT * FROM schema_version')
    const { version = 0, functions = null } = rows[0] ?? {}
    if (version > SCHEMA_VERSION) throw newerSchema(version)
    for (const migration of migrations.slice(version)) await client.query(migration)
    if (functions !== FUNCTIONS_HASH) await client.query(FUNCTIONS)
    if (version < SCHEMA_VERSION || functions !== FUNCTIONS_HASH) {
      await client.query('DELETE FROM schema_version')
      await client.query('INSERT INTO schema_version (version, functions) VALUES ($1, $2)', [
        ...[SCHEMA_VERSION, FUNCTIONS_HASH],
      ])
    }
    await client.query('COMMIT')
  } catch (error) {
    throw error instanceof NewerSchema ? error : failureOf(error)
  } finally {
    // The end of the connection is the end of a transaction that was not committed.
    await client.end().catch(() => {})
  }
}

class NewerSchema extends Error {}

export function newerSchema(version: number): Error {
  return new NewerSchema(
    `The database has schema version ${version}, this Tollgate knows up to ${SCHEMA_VERSION}. ` +
      'It was written by a newer version: start that one, or restore a backup made before the upgrade.',
  )
}
