import assert from 'node:assert/strict'
import pg from 'pg'
import { StoreUnavailable } from '../../src/kernel/errors.ts'
import { migrate } from '../../src/store/postgres/ledger.ts'
import { createEmptyDatabase, runOn, stopPostgres } from '../support/postgres.ts'
import { after, test } from '../support/suite.ts'

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
