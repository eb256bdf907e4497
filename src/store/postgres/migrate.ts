import { createHash } from 'node:crypto'
import pg from 'pg'
import { postgresSchema } from '../render-schema.ts'
import { SCHEMA_VERSION } from '../schema.ts'
import { NewerSchema, upgradesFrom } from '../upgrades.ts'
import { failureOf, unconnected } from './database.ts'
import { admission } from './functions/admission.ts'
import { nodes } from './functions/nodes.ts'
import { holdFloors, settlement } from './functions/settlement.ts'
import { webhooks } from './functions/webhooks.ts'

/** The functions inside the database. A start finds by the hash that their text has changed, and applies all of them again. */
const booking = `DROP TYPE IF EXISTS booking CASCADE;
  CREATE TYPE booking AS (
    n integer, id text, month text, account_id text, key_id text, day text, model text, state text, at_ms bigint,
    hold_nanos bigint, held_nanos bigint, lost_nanos bigint, cost_nanos bigint, list_nanos bigint,
    input_tokens bigint, output_tokens bigint, cache_read_tokens bigint, cache_write_tokens bigint,
    unpriced boolean, estimated boolean
  );`

export const FUNCTIONS = [booking, admission, holdFloors, webhooks, settlement, nodes].join('\n')

export const FUNCTIONS_HASH = createHash('sha256').update(FUNCTIONS).digest('hex')

/** Any number that nothing else in the database uses. */
const MIGRATION_LOCK = 746_001

interface SchemaRow {
  readonly version: number
  readonly functions: string
}

/**
 * Creates the tables of a new database, or upgrades an earlier version, in one transaction; a newer version is refused.
 * Of nodes that start at once the first does the work and the others wait. The lock belongs to the transaction, not to the
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
    await client.query(
      'CREATE TABLE IF NOT EXISTS schema_version (version integer NOT NULL, functions text NOT NULL)',
    )
    const { rows } = await client.query<SchemaRow>('SELECT version, functions FROM schema_version')
    const { version = 0, functions = null } = rows[0] ?? {}
    const statements = version === 0 ? [postgresSchema()] : upgradesFrom(version, 'postgres')
    for (const statement of statements) await client.query(statement)
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
