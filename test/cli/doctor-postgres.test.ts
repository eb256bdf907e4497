import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { hideSecretsOf } from '../../src/doctor/configuration.ts'
import type { PostgresFacts } from '../../src/doctor/postgres.ts'
import {
  checkDatabaseClock,
  checkDurability,
  checkNodes,
  checkRoundTrip,
  checkSharedDatabase,
  checkWrites,
  measure,
} from '../../src/doctor/postgres.ts'
import type { Database } from '../../src/store/postgres/database.ts'
import { startPickyPooler } from '../support/picky-pooler.ts'
import {
  createDatabase,
  createEmptyDatabase,
  runOn,
  stopPostgres,
  type TestDatabase,
} from '../support/postgres.ts'
import { type ServingProcess, serveTollgate } from '../support/tollgate-process.ts'
import { examineWith, type Report, Ward } from './doctor-ward.ts'

/** The doctor's findings about PostgreSQL, whatever the store of this run is. */

const ward = new Ward()
let database: TestDatabase
let tollgate: ServingProcess
before(async () => {
  database = await createDatabase()
  tollgate = await serveTollgate({ TOLLGATE_DATABASE_URL: database.url })
})
after(async () => {
  await tollgate.dispose()
  await database.drop()
  ward.discharge()
  await stopPostgres()
})

const examine = (url: string, dataDir = tollgate.dataDir): Promise<Report> =>
  examineWith(dataDir, { TOLLGATE_DATABASE_URL: url }, ['--offline'])

async function rowsOf(sql: string, url = database.url): Promise<unknown[]> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}

const nameOf = (url: string): string => new URL(url).pathname.slice(1)
const placeOf = (url: string): string => `postgres://${new URL(url).host}/${nameOf(url)}`

test('a database that nodes serve from is looked at from all sides, and stays as it is', async () => {
  const nodes = await rowsOf('SELECT id FROM node')
  const report = await examine(database.url)
  const states = Object.fromEntries(report.checks.map(({ name, state }) => [name, state]))
  assert.equal(report.ok, true, JSON.stringify(report.checks))
  const { found } = report.check('database')
  assert.match(found, /^PostgreSQL 1\d\.\d+ at postgres:/)
  assert.ok(found.includes(placeOf(database.url)), found)
  assert.match(found, /, schema version \d+$/)
  for (const name of ['database', 'database_writes', 'round_trip', 'database_clock', 'pooler', 'call_months'])
    assert.equal(states[name], 'ok', name)
  // The server of the tests is not to survive a power cut.
  assert.equal(states['durability'], 'warning')
  assert.match(
    report.check('durability').found,
    /^fsync, synchronous_commit, full_page_writes off: a power cut/,
  )
  assert.match(report.check('round_trip').found, /^[\d.]+ ms to the database and back \(median of 9\)$/)
  assert.match(report.check('call_months').found, /^[3-9] months of calls, .+ the database has .+ in all$/)
  assert.equal(report.check('nodes').found, '1 node serves now, with 0 calls in flight')
  assert.match(report.check('pepper').found, /private, the one that the keys were made with$/)
  assert.equal(report.check('admin_key').found, '1 key in force')
  assert.equal('serving' in states || 'integrity' in states, false, 'there is no file of SQLite')
  assert.deepEqual(await rowsOf('SELECT id FROM node'), nodes)
})

test('a node that has another pepper than the rest, or none, is told so', async () => {
  const missing = await examine(database.url, join(ward.newFolder(), 'data'))
  assert.match(missing.check('pepper').found, /^this node has none, and without that of the others/)
  assert.match(missing.check('pepper').todo ?? '', /^Set TOLLGATE_PEPPER to the same value on every node/)
  const other = await examineWith(
    tollgate.dataDir,
    { TOLLGATE_DATABASE_URL: database.url, TOLLGATE_PEPPER: 'another-pepper-0123456789' },
    ['--offline'],
  )
  assert.match(other.check('pepper').found, /made with another pepper than TOLLGATE_PEPPER/)
  assert.match(other.check('pepper').todo ?? '', /on every node/)
})

test('nodes that are gone and left calls open are told, and are not swept by the doctor', async () => {
  const { url, drop } = await createDatabase()
  await runOn(
    url,
    `     INSERT INTO node (id, name, started_at_ms, seen_at_ms) VALUES ('node_0', 'gone', 0, now_ms() - 7200000);
     INSERT INTO call (id, month, account_id, key_id, node_id, state, started_at_ms, day, method, path, surface,
       hold_nanos, hold_list_nanos, price_version, rating, client_ip)
     SELECT 'req_0', month_of(now_ms()), 'default', 'key_0', 'node_0', 'in_flight', now_ms(), '', '', '', '', 0, 0,
       '', '', ''`,
  )
  for (let time = 0; time < 2; time++) {
    const { state, found } = (await examine(url)).check('nodes')
    assert.equal(state, 'warning')
    assert.equal(found, 'no node serves now, and 1 node not heard of for up to 2 h left 1 call open')
  }
  await drop()
})

test('a database that is read-only, or of another schema version, is a problem or a warning', async () => {
  const { url, drop } = await createDatabase()
  const [row] = (await rowsOf('SELECT version FROM schema_version', url)) as [{ version: number }]
  for (const [version, state, said] of [
    [99, 'problem', /schema version 99, but this Tollgate knows up to \d+: a newer one wrote it$/],
    [row.version - 1, 'warning', /of an older Tollgate; the next start upgrades it to \d+$/],
  ] as const) {
    await runOn(url, `UPDATE schema_version SET version = ${version}`)
    const check = (await examine(url)).check('database')
    assert.equal(check.state, state)
    assert.match(check.found, said)
  }
  await runOn(url, `ALTER DATABASE ${nameOf(url)} SET default_transaction_read_only = on`)
  const report = await examine(url)
  assert.equal(report.code, 1)
  assert.match(report.check('database_writes').found, /^transactions are read-only here/)
  await drop()
})

test('a database without books is no problem, and gets none', async () => {
  const empty = await createEmptyDatabase()
  const report = await examine(empty.url, join(ward.newFolder(), 'data'))
  assert.equal(report.ok, true)
  assert.match(report.check('database').found, /, no books in it yet: the first start makes them$/)
  assert.match(report.check('admin_key').found, /^none yet/)
  assert.deepEqual(await rowsOf("SELECT 1 FROM pg_class WHERE relname = 'account'", empty.url), [])
  await empty.drop()
})

test('a pooler in transaction mode is noticed', async () => {
  const pooler = await startPickyPooler(database.url)
  try {
    const report = await examine(pooler.url)
    assert.match(report.check('pooler').found, /^a pooler in transaction mode stands between/)
    assert.equal(report.check('nodes').state, 'ok')
  } finally {
    await pooler.close()
  }
})

test('a database that does not answer, or turns the password down, is a problem, and no password is told', async () => {
  const password = 'canary-password-0123456789'
  const wrong = new URL(database.url)
  wrong.password = password
  for (const [url, said] of [
    [
      `postgres://someone:${password}@127.0.0.1:1/books`,
      /^postgres:\/\/127\.0\.0\.1:1\/books does not.*ECONNREFUSED/,
    ],
    [wrong.href, /password authentication failed/],
  ] as const) {
    const report = await examine(url)
    assert.equal(report.code, 1)
    assert.equal(report.check('database').state, 'problem')
    assert.match(report.check('database').found, said)
    assert.match(report.check('database').todo ?? '', /TOLLGATE_DATABASE_URL/)
    assert.equal(report.check('admin_key').state, 'skipped')
    assert.ok(!JSON.stringify(report.checks).includes(password))
  }
})

test('a URL that is none is a problem of the configuration, and no other books are looked at', async () => {
  const report = await examine('mysql://someone:canary-password-0123456789@localhost/books')
  assert.match(report.check('configuration').found, /^TOLLGATE_DATABASE_URL must be a URL/)
  assert.equal(report.check('database').state, 'skipped')
  assert.ok(!JSON.stringify(report.checks).includes('canary-password'))
})

test('a password that somebody else writes down is hidden, as it stands in the URL and as it is meant', () => {
  const hide = hideSecretsOf({ TOLLGATE_DATABASE_URL: 'postgres://someone:canary%2Fpassword@host/books' })
  assert.equal(hide('canary%2Fpassword canary/password'), '[secret] [secret]')
})

const SERVER: Extract<PostgresFacts, { kind: 'open' }>['server'] = {
  version: '17.5',
  majorVersion: 17,
  isReplica: false,
  isReadOnly: false,
  mayCreateTables: true,
  takesSettings: true,
  roundTrip: { medianMs: 0.4, count: 9 },
  aheadMs: 0,
  durability: { fsync: 'on', synchronousCommit: 'on', fullPageWrites: 'on' },
  bytes: 1,
}

test('PostgreSQL before 15 is a problem, and after 18 a warning', () => {
  const stateOf = (majorVersion: number): string =>
    checkSharedDatabase('postgres://x', {
      kind: 'open',
      server: { ...SERVER, majorVersion },
      schemaVersion: 6,
      schemaVersionKnown: 6,
      books: null,
    }).state
  assert.deepEqual([14, 15, 18, 19].map(stateOf), ['problem', 'ok', 'ok', 'warning'])
})

test('a server that takes no writes from us is a problem', () => {
  assert.equal(checkWrites(SERVER).state, 'ok')
  assert.match(checkWrites({ ...SERVER, isReplica: true }).found, /replica/)
  assert.match(checkWrites({ ...SERVER, mayCreateTables: false }).found, /may not create tables/)
})

test('what a power cut would cost is told', () => {
  const { durability } = SERVER
  assert.equal(checkDurability(durability).state, 'ok')
  assert.equal(checkDurability({ ...durability, synchronousCommit: 'remote_apply' }).state, 'ok')
  assert.match(
    checkDurability({ ...durability, synchronousCommit: 'off' }).found,
    /^synchronous_commit off: a power cut loses settled calls$/,
  )
  for (const setting of ['fsync', 'fullPageWrites'] as const)
    assert.match(checkDurability({ ...durability, [setting]: 'off' }).found, /breaks the database$/)
})

test('a long way to the database is a warning, and another time there is not', () => {
  assert.equal(checkRoundTrip({ medianMs: 10, count: 9 }).state, 'ok')
  assert.equal(checkRoundTrip({ medianMs: 11, count: 9 }).state, 'warning')
  assert.match(checkDatabaseClock(-1_000).found, /^agrees/)
  assert.equal(checkDatabaseClock(9_000).state, 'ok')
  assert.match(checkDatabaseClock(9_000).found, /^this machine is 9 s ahead of the database/)
  assert.match(checkDatabaseClock(-9_000).found, /^this machine is 9 s behind the database/)
})

test('of the round trips to the database the shortest tells how far this machine is ahead', async () => {
  const waysMs = [30, 9_000, 2, 40, 8, 50, 60, 70, 9_000]
  let nowMs = 1_000_000
  const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs }
  const database = {
    async query() {
      // This machine is 5 s ahead, and an answer is written at the end of the way there.
      const way = waysMs.shift() ?? 0
      nowMs += way
      const row = { now_ms: nowMs - 5_000 }
      nowMs += way
      return [row]
    },
  }
  const { aheadMs, roundTrip } = await measure(database as unknown as Database, clock)
  assert.equal(aheadMs, 4_998)
  assert.deepEqual(roundTrip, { medianMs: 100, count: 9 })
})

test('what a node left is a warning once the others have had time to close it', () => {
  const gone = { alive: 0, unswept: 1, callsOfUnswept: 2, longestSilenceMs: 61_000 }
  assert.equal(checkNodes({ ...gone, longestSilenceMs: 60_000 }, 2).found, 'no node serves now')
  const { found, todo } = checkNodes(gone, 2)
  assert.equal(found, 'no node serves now, and 1 node not heard of for up to 61 s left 2 calls open')
  assert.match(todo ?? '', /^Start a node/)
  const besides = checkNodes({ ...gone, alive: 2 }, 5)
  assert.match(besides.found, /^2 nodes serve now, with 3 calls in flight, and 1 node/)
  assert.match(besides.todo ?? '', /see their log/)
})
