import assert from 'node:assert/strict'
import pg from 'pg'
import { StoreRefused, StoreUnavailable } from '../../src/kernel/errors.ts'
import { firstUlid } from '../../src/kernel/ids.ts'
import type { CallBodies, CallFilter } from '../../src/ledger/request-log.ts'
import { audit } from '../../src/store/operations/audit.ts'
import { atomic, type Operation, runOn as runOperation } from '../../src/store/operations/operation.ts'
import { FORCE_INDEX_ORDER, pageSql, scanEndSql } from '../../src/store/operations/request-log.ts'
import { type Sql, sql } from '../../src/store/operations/sql.ts'
import { USAGE } from '../../src/store/operations/usage.ts'
import { openPostgresSnapshot } from '../../src/store/postgres/ledger.ts'
import { migratePostgres } from '../../src/store/postgres/migrate.ts'
import { dialectOf, postgresOperations, queryOn } from '../../src/store/postgres/run-operation.ts'
import { present, text } from '../../src/store/rows.ts'
import { PostgresLedger } from '../ledger/postgres-ledger.ts'
import { fillLedger, rateAgain } from '../ledger/test-ledger.ts'
import { startPickyPooler } from '../support/picky-pooler.ts'
import {
  createDatabase,
  createEmptyDatabase,
  openPatientPool,
  runOn,
  stopPostgres,
} from '../support/postgres.ts'
import { after, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { ALL_CALLS, NOON } from './conformance/fixtures.ts'
import { openFreshPostgres } from './postgres-under-test.ts'

after(stopPostgres)

const WRITTEN = sql`INSERT INTO setting (name, value) VALUES ('a', 'b')`

function* writeAndFail(): Operation<void> {
  yield WRITTEN
  throw new Error('after it was written')
}

function* idleLimit(): Operation<string> {
  const [row] = yield sql`SELECT current_setting('idle_in_transaction_session_timeout') AS value`
  return text(present(row), 'value')
}

const operations = {
  writeAndFail: atomic(function* () {
    yield* writeAndFail()
  }),
  writeAndFailInParts: writeAndFail,
  idleLimit: atomic(function* () {
    return yield* idleLimit()
  }),
  idleLimitAlone: idleLimit,
  readAll: function* (): Operation<number> {
    return (yield sql`SELECT 1 FROM setting WHERE name = 'a'`).length
  },
}

test('an atomic operation commits entirely or not at all, and its locks have an idle limit', async () => {
  const database = await createDatabase()
  const db = openPatientPool(database.url)
  const { writeAndFail, writeAndFailInParts, idleLimit, idleLimitAlone, readAll } = postgresOperations(
    db,
    operations,
    'database',
  )
  try {
    await assert.rejects(writeAndFail(), StoreRefused)
    assert.equal(await readAll(), 0)
    await assert.rejects(writeAndFailInParts(), /after it was written/)
    assert.equal(await readAll(), 1)
    assert.equal(await idleLimit(), '2s')
    assert.equal(await idleLimitAlone(), '0')
  } finally {
    await db.close()
    await database.drop()
  }
})

test('a transaction that the database ended because this process did nothing says so', async () => {
  const database = await createDatabase()
  const db = openPatientPool(database.url)
  const other = openPatientPool(database.url)
  try {
    const idle = db.transaction(
      async (tx) => {
        const [row] = await tx.query('SELECT pg_backend_pid() AS pid')
        await until('the database has ended the connection', async () => {
          const alive = await other.query('SELECT 1 FROM pg_stat_activity WHERE pid = $1', [row?.['pid']])
          return alive.length === 0
        })
        await tx.query('SELECT 1')
      },
      { idleMs: 1, totalMs: 60_000 },
    )
    await assert.rejects(idle, /did nothing for so long .* suspended, or its machine was too busy/)
  } finally {
    await db.close()
    await other.close()
    await database.drop()
  }
})

const request = {
  contentType: 'application/json',
  compressed: Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, 1, 0xff]),
  lengthBytes: 5_000_000_000,
  truncated: true,
}
const response = { contentType: null, compressed: Buffer.alloc(0), lengthBytes: 0, truncated: false }

const bodies = (requestId: string, more: Partial<CallBodies> = {}): CallBodies => ({
  ...{ requestId, request, response, atMs: NOON },
  ...more,
})

test('the logged bodies of a call are stored once and do not change', async () => {
  const { store, close } = await openFreshPostgres()
  try {
    assert.equal(await store.getBodies('req_1'), null)
    await store.storeBodies(bodies('req_1'))
    await store.storeBodies(bodies('req_1', { request: null }))
    assert.deepEqual(await store.getBodies('req_1'), bodies('req_1'))
    await store.storeBodies(bodies('req_2', { request: null, response: null }))
    assert.deepEqual(await store.getBodies('req_2'), bodies('req_2', { request: null, response: null }))
  } finally {
    await close()
  }
})

test('the first value of a setting wins', async () => {
  const { store, close } = await openFreshPostgres()
  try {
    assert.equal(await store.readSetting('pepper'), null)
    const kept = await Promise.all(
      ['one', 'two', ''].map((value) => store.getOrCreateSetting('pepper', value)),
    )
    assert.equal(new Set(kept).size, 1)
    assert.equal(await store.readSetting('pepper'), kept[0])
    assert.equal(await store.getOrCreateSetting('other', 'two'), 'two')
  } finally {
    await close()
  }
})

async function read(url: string, query: string): Promise<unknown[]> {
  const client = new pg.Client(url)
  await client.connect()
  const { rows } = await client.query(query)
  await client.end()
  return rows
}

test('nodes that start together migrate an empty database once', async () => {
  const database = await createEmptyDatabase()
  await Promise.all(Array.from({ length: 5 }, () => migratePostgres(database.url)))
  assert.equal((await read(database.url, 'SELECT version FROM schema_version')).length, 1)
  assert.deepEqual(await read(database.url, 'SELECT id FROM account'), [{ id: 'default' }])
  await database.drop()
})

test('a schema that this release cannot use is refused and unchanged', async () => {
  const database = await createEmptyDatabase()
  await migratePostgres(database.url)
  await runOn(database.url, 'UPDATE schema_version SET version = 999, oldest_version = 998')
  await assert.rejects(migratePostgres(database.url), /schema version 999, .* version 998 or later/)
  assert.deepEqual(await read(database.url, 'SELECT version FROM schema_version'), [{ version: 999 }])
  await database.drop()
})

test('a database that does not answer is unavailable', async () => {
  await assert.rejects(migratePostgres('postgres://nobody@127.0.0.1:1/nothing'), StoreUnavailable)
})

const OF_KEY = { ...ALL_CALLS, keyId: 'key_a' }
const RARE = { model: 'rare' }
const OF_SOCKET = { ...ALL_CALLS, socketId: 'req_socket' }
const MARCH = { fromMs: Date.UTC(2026, 2, 1), toMs: Date.UTC(2026, 3, 1) - 1 }

const dialect = dialectOf('database')

test('a page of the log is read in index order', async () => {
  const database = await createDatabase()
  const db = openPatientPool(database.url)
  try {
    for (const month of [1, 2, 3]) {
      const times = Array.from({ length: 5_000 }, (_, i) => Date.UTC(2026, month, 1) + (i + 1) * 1_000)
      await db.query(
        `INSERT INTO call (id, month, account_id, key_id, state, started_at_ms, ended_at_ms, day, method, path, surface,
           hold_nanos, hold_list_nanos, cost_nanos, list_nanos, balance_nanos, overhead_ms, price_version, rating, client_ip)
         SELECT id, '2026-01', 'default', CASE WHEN i % 100 = 0 THEN 'key_b' ELSE 'key_a' END, 'settled', at, at, '2026-01-01', 'POST', '/', 'chat',
           0, 0, 0, 0, 0, 0, 'v', '{}', ''
         FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS calls (id, at, i)`,
        [times.map((at) => `req_${firstUlid(at)}`), times],
      )
    }
    // The planner now knows that one key has few calls, which it could sort.
    await db.query('ANALYZE call')
    const planOf = (filter: CallFilter): Promise<string> =>
      db.transaction(async (tx) => {
        if (filter.model !== null || filter.keyId !== null) await queryOn(tx, dialect)(FORCE_INDEX_ORDER)
        const looks = [scanEndSql(filter, null), pageSql(filter, null, 100)]
        const plans = []
        for (const look of looks) plans.push(await queryOn(tx, dialect)(sql`EXPLAIN ${look}`))
        return plans
          .flat()
          .map((line) => text(line, 'QUERY PLAN'))
          .join('\n')
      })
    const filters = [ALL_CALLS, OF_KEY, { ...ALL_CALLS, ...RARE }, { ...OF_KEY, ...RARE }]
    const ofSockets = [OF_SOCKET, { ...OF_SOCKET, ...RARE, keyId: 'key_b' }]
    const all = { ...ALL_CALLS, accountId: null }
    for (const filter of [...filters, all, { ...OF_KEY, ...RARE, keyId: 'key_b' }, ...ofSockets]) {
      const whole = await planOf(filter)
      assert.doesNotMatch(whole, /Seq Scan on call|Bitmap|-> {2}Sort .*\n *Sort Key: call\./, whole)
      const name = 'socketId' in filter ? 'by_socket' : filter.keyId === null ? 'by_account' : 'by_key'
      // Nearly all calls are of one account and key, so the primary key serves these too.
      const index = filter.accountId === null ? 'call_pkey' : `call_${name}|call_pkey`
      assert.match(await planOf({ ...filter, ...MARCH }), new RegExp(index))
    }
  } finally {
    await db.close()
    await database.drop()
  }
})

test('usage of an account is read by its index, whatever its part of all usage', async () => {
  const database = await createDatabase()
  const db = openPatientPool(database.url)
  try {
    await db.query(
      `INSERT INTO rollup (account_id, day, model, key_id)
       SELECT 'default', '2026-11-01', 'm', 'key_' || i FROM generate_series(1, 1000) AS i`,
    )
    // The planner now knows that all rows are of this account.
    await db.query('ANALYZE rollup')
    const days = { startDay: '2026-11-01', endDay: '2026-11-30' }
    const query = {
      ...days,
      accountId: 'default',
      keyId: null,
      groupBy: ['key', 'day'],
      after: null,
    } as const
    const plans = await db.transaction(async (tx) => {
      const found: string[] = []
      const explained = async (statement: Sql) => {
        const plan = await queryOn(tx, dialect)(sql`EXPLAIN ${statement}`)
        found.push(...plan.map((line) => text(line, 'QUERY PLAN')))
        return await queryOn(tx, dialect)(statement)
      }
      await runOperation(explained, USAGE.reads.readUsage({ ...query, limit: 100 }))
      return found.join('\n')
    })
    assert.match(plans, /Index .* on rollup/)
    assert.doesNotMatch(plans, /Seq Scan on rollup/)
  } finally {
    await db.close()
    await database.drop()
  }
})

test('a snapshot has no deadline, even through a pooler, and cannot write', async () => {
  const ledger = await PostgresLedger.create()
  const { url } = ledger
  await fillLedger(ledger)
  await runOn(url, `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET statement_timeout = '5s'`)
  const pooler = await startPickyPooler(url)
  try {
    const snapshot = await openPostgresSnapshot(pooler.url)
    assert.ok(snapshot)
    const [row] = await snapshot.query(sql`SELECT current_setting('statement_timeout') AS value`)
    assert.equal(row?.['value'], '0')
    assert.equal((await audit(snapshot.query, rateAgain)).difference, null)
    await assert.rejects(snapshot.query(sql`UPDATE account SET held_nanos = 0`), /read-only transaction/)
    await snapshot.close()
  } finally {
    await pooler.close()
    await ledger.remove()
  }
})

test('a database without our tables has no snapshot', async () => {
  const database = await createEmptyDatabase()
  assert.equal(await openPostgresSnapshot(database.url), null)
  await database.drop()
})

test('a snapshot fails if its connection is lost, instead of reading a later state', async () => {
  const database = await createDatabase()
  const snapshot = await openPostgresSnapshot(database.url)
  assert.ok(snapshot)
  try {
    const [own] = await snapshot.query(sql`SELECT pg_backend_pid() AS pid`)
    await runOn(database.url, `SELECT pg_terminate_backend(${Number(own?.['pid'])}, 10000)`)
    const readOn = async () => {
      for (let i = 0; i < 1_000; i += 1) await snapshot.query(sql`SELECT 1 AS one`)
    }
    await assert.rejects(readOn(), StoreUnavailable)
    await assert.rejects(snapshot.query(sql`SELECT 1 AS one`), StoreUnavailable)
  } finally {
    await snapshot.close()
    await database.drop()
  }
})
