import { createHash } from 'node:crypto'
import pg from 'pg'
import { failureOf, unconnected } from './database.ts'
import { admission } from './functions/admission.ts'
import { nodes } from './functions/nodes.ts'
import { holdFloors, settlement } from './functions/settlement.ts'
import { webhooks } from './functions/webhooks.ts'
import { migrations } from './migrations.ts'

/**
 * The functions inside the database. Their texts may be edited: a start finds by the hash that they have changed and
 * applies all of them again, after the migrations and in the same transaction. A function whose arguments or answer change
 * is dropped first, in its text. Nodes of the version before still run and call the functions, which therefore answer as
 * before; and if such a node starts again it applies its own texts. Where that would be wrong, a migration goes with the
 * change, an empty one if need be: a node that does not know the schema version does not start.
 */
export const FUNCTIONS = [admission, holdFloors, webhooks, settlement, nodes].join('\n')

export const FUNCTIONS_HASH = createHash('sha256').update(FUNCTIONS).digest('hex')

export const SCHEMA_VERSION = migrations.length

/** Any number that nothing else in the database uses. */
const MIGRATION_LOCK = 746_001

interface SchemaRow {
  readonly version: number
  /** The hash of the functions in the database; absent in databases from before the hash was kept. */
  readonly functions?: string | null
}

/**
 * Brings the schema and its functions to this version, in one transaction; a database of a newer version is refused.
 * Of nodes that start at once the first migrates and the others wait. The lock belongs to the transaction, not to the
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
    // The end of the connection rolls back a transaction that was not committed.
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
