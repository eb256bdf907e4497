import assert from 'node:assert/strict'
import type { Statement } from '../../src/store/operations/sql.ts'
import { openPool, type Pool } from '../../src/store/postgres/database.ts'
import { createDatabase, stopPostgres, type TestDatabase } from '../support/postgres.ts'
import { after, before, test } from '../support/suite.ts'

let database: TestDatabase
let pool: Pool
before(async () => {
  database = await createDatabase()
  const patience = { connectMs: 60_000, statementMs: 60_000 }
  pool = openPool({ url: database.url, connectionsMax: 1, deadlines: true, isHot: true, ...patience })
})
after(async () => {
  await pool.close()
  await stopPostgres()
})

const together = (statements: readonly Statement[]) =>
  pool.transaction(({ pipeline }) => pipeline(statements, 'COMMIT'))

test('statements sent together are answered in order, prepared or not, with and without rows', async () => {
  const named = { text: 'SELECT $1::bigint AS n, NULL AS none', name: 'named' }
  for (const n of [1n, 2n])
    assert.deepEqual(
      await together([
        { ...named, values: [n] },
        { text: 'SELECT 1 WHERE false', values: [] },
        { text: 'SELECT * FROM generate_series(1, 2) AS i', values: [] },
        { ...named, values: [n + 10n] },
      ]),
      [[{ n, none: null }], [], [{ i: 1 }, { i: 2 }], [{ n: n + 10n, none: null }]],
    )
})

test('every kind of value arrives as it is, alone and in an array', async () => {
  const texts = ['', 'NULL', 'a "b" \\ {c}, \'d\'', 'ü\n']
  const bytes = new Uint8Array([0, 34, 92, 255]).subarray(1)
  const [rows] = await together([
    {
      text: `SELECT $1::text[] AS texts, $2::bytea[] AS bytes, $3::boolean[] AS flags, $4::bytea AS one,
        $5::boolean AS flag, $6::jsonb[] AS json`,
      values: [[...texts, null], [bytes, null], [true, false, null], bytes, true, ['{"a":"\\\\"}']],
    },
  ])
  const whole = Buffer.from(bytes)
  assert.deepEqual(rows, [
    {
      texts: [...texts, null],
      bytes: [whole, null],
      flags: [true, false, null],
      one: whole,
      flag: true,
      json: [{ a: '\\' }],
    },
  ])
})

test('after a failure the later statements are not run, and those that it left prepared work', async () => {
  const divide = (by: bigint): Statement => ({
    text: 'SELECT 1 / $1::bigint AS n',
    name: 'divide',
    values: [by],
  })
  const create: Statement = { text: 'CREATE TABLE never (id int)', name: 'create', values: [] }
  await assert.rejects(together([divide(0n), create]), /division by zero/)
  assert.deepEqual(await together([divide(1n)]), [[{ n: 1n }]])
  assert.deepEqual(await pool.query("SELECT to_regclass('never') AS found", []), [{ found: null }])
  assert.deepEqual(await together([create, divide(1n)]), [[], [{ n: 1n }]])
})

test('statements that the database has forgotten fail once, and are prepared again', async () => {
  const known: Statement = { text: 'SELECT 1 AS n', name: 'known', values: [] }
  await together([known])
  await pool.query('DEALLOCATE ALL')
  await assert.rejects(together([known]), /prepared statement "\w+" does not exist/)
  assert.deepEqual(await together([known]), [[{ n: 1 }]])
})
