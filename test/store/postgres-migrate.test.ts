import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import pg from 'pg'
import { StoreUnavailable } from '../../src/kernel/errors.ts'
import { FUNCTIONS_HASH, migrate } from '../../src/store/postgres/migrate.ts'
import { SCHEMA_VERSION } from '../../src/store/schema.ts'
import { createEmptyDatabase, runOn, stopPostgres } from '../support/postgres.ts'

after(stopPostgres)

async function read(url: string, query: string): Promise<unknown[]> {
  const client = new pg.Client(url)
  await client.connect()
  const { rows } = await client.query(query)
  await client.end()
  return rows
}

test('nodes that start at once on an empty database migrate it once', async () => {
  const database = await createEmptyDatabase()
  await Promise.all(Array.from({ length: 5 }, () => migrate(database.url)))
  assert.equal((await read(database.url, 'SELECT version FROM schema_version')).length, 1)
  assert.deepEqual(await read(database.url, 'SELECT id FROM account'), [{ id: 'default' }])
  await database.drop()
})

/** A function whose text stands for that of another version. */
const STALE = `CREATE OR REPLACE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS $$ SELECT -1::bigint $$`
const IS_STALE = 'SELECT now_ms() = -1 AS stale'

/** The text of every function of the database, and the shape of every table. */
const SHAPE = `SELECT proname AS name, pg_get_functiondef(oid) AS shape FROM pg_proc
    WHERE pronamespace = 'public'::regnamespace
  UNION ALL SELECT table_name || '.' || column_name, concat(data_type, column_default, is_nullable)
    FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2`

test('functions of another text are replaced, by one of the nodes that start at once', async () => {
  const database = await createEmptyDatabase()
  await migrate(database.url)
  const fresh = await read(database.url, SHAPE)
  await runOn(database.url, `${STALE}; UPDATE schema_version SET functions = 'another'`)
  await Promise.all(Array.from({ length: 5 }, () => migrate(database.url)))
  assert.deepEqual(await read(database.url, SHAPE), fresh)
  assert.deepEqual(await read(database.url, 'SELECT version, functions FROM schema_version'), [
    { version: SCHEMA_VERSION, functions: FUNCTIONS_HASH },
  ])
  await database.drop()
})

test('functions of the same text are left as they are', async () => {
  const database = await createEmptyDatabase()
  await migrate(database.url)
  await runOn(database.url, STALE)
  await migrate(database.url)
  assert.deepEqual(await read(database.url, IS_STALE), [{ stale: true }])
  await database.drop()
})

test('a schema of a newer version is refused and left as it is', async () => {
  const database = await createEmptyDatabase()
  await migrate(database.url)
  await runOn(database.url, 'UPDATE schema_version SET version = 999')
  await assert.rejects(
    migrate(database.url),
    /schema version 999, this Tollgate knows up to \d+\. It was written/,
  )
  assert.deepEqual(await read(database.url, 'SELECT version FROM schema_version'), [{ version: 999 }])
  await database.drop()
})

test('a database that does not answer is unavailable', async () => {
  await assert.rejects(migrate('postgres://nobody@127.0.0.1:1/nothing'), StoreUnavailable)
})
