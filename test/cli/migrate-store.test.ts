import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { createMoveProgress } from '../../src/cli/progress.ts'
import { lockDataDir } from '../../src/store/data-dir.ts'
import { whyNotOpened } from '../../src/store/migrate-store/move-state.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import type { Store } from '../../src/store/store.ts'
import { openByCallersClock } from '../store/postgres-under-test.ts'
import { runInThread } from '../support/command-thread.ts'
import { createDatabase, createEmptyDatabase, runOn, stopPostgres } from '../support/postgres.ts'
import { type Finished, runTollgate, startCommand } from '../support/tollgate-process.ts'
import { until } from '../support/until.ts'
import { fillInstallation, type Installations } from './moved-installation.ts'

let installations: Installations
before(async () => {
  installations = await fillInstallation()
})
after(async () => {
  installations.remove()
  await stopPostgres()
})

function environment(dataDir: string, url: string) {
  return { TOLLGATE_DATA_DIR: dataDir, TOLLGATE_DATABASE_URL: url }
}

function move(dataDir: string, url: string, ...more: string[]): Promise<Finished> {
  return runInThread(['migrate-store', ...more], environment(dataDir, url))
}

/** Starts the command, and kills it while it waits to write into the table. */
async function killBefore(table: string, dataDir: string, url: string): Promise<Finished> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    await client.query('BEGIN')
    await client.query(`LOCK TABLE ${table} IN SHARE MODE`)
    const command = startCommand(['migrate-store'], environment(dataDir, url))
    const ended = command.finished.then(({ stderr }) =>
      assert.fail(`it did not wait for ${table}: ${stderr}`),
    )
    const waits = until(`the command waits for ${table}`, async () => {
      const waiting = await client.query(
        'SELECT 1 FROM pg_locks WHERE NOT granted AND relation = $1::regclass',
        [table],
      )
      return waiting.rowCount !== 0
    })
    await Promise.race([waits, ended])
    ended.catch(() => {})
    command.signal('SIGKILL')
    return await command.finished
  } finally {
    await client.end()
  }
}

const openFile = (dataDir: string): Promise<Store> =>
  openSqliteStore(join(dataDir, 'tollgate.db'), (error) => {
    throw error
  })

const NOW = Date.UTC(2026, 11, 1)
const EVERY_KEY = { accountId: 'default', status: null, search: null, after: null, limit: 100, atMs: NOW }

/** The whole content of the books, read through the ports of a store. */
async function readAll(store: Store) {
  const account = { accountId: 'default' }
  const { rows: keys } = await store.listKeys(EVERY_KEY)
  const found = await store.listKeys({ ...EVERY_KEY, search: 'PLAIN SS' })
  const filter = { ...account, keyId: null, fromMs: null, toMs: null, model: null, status: null }
  const log = { ...filter, minCostNanos: null, flag: null }
  const { calls } = await store.listCalls({ ...log, state: null }, null, 100)
  const refused = await store.listCalls({ ...log, state: 'refused' }, null, 100)
  const usageQuery = { ...account, keyId: null, startDay: '2025-01-01', endDay: '2028-01-01', after: null }
  const bodies = await Promise.all(calls.map(({ requestId }) => store.getBodies(requestId)))
  return {
    balance: await store.getBalance('default'),
    keys,
    found,
    months: await Promise.all(keys.map(({ id }) => store.getKey('default', id, calls[0]?.startedAtMs ?? 0))),
    adminKeys: await store.listAdminKeys(),
    calls,
    refused,
    // One store gives buffers, the other plain arrays; a copy of either is plain.
    bodies: bodies.map((kept) => structuredClone(kept)),
    usage: await store.readUsage({ ...usageQuery, groupBy: ['day', 'model', 'key'], limit: 100 }),
    pepper: await store.readSetting('pepper'),
  }
}

/** Asserts that the store says why it must not be used. */
async function assertRefused(opening: Promise<Store>, why: RegExp): Promise<void> {
  const store = await opening
  try {
    assert.match((await whyNotOpened(store)) ?? 'nothing stands against it', why)
  } finally {
    await store.close()
  }
}

test('a move that is killed leaves nothing and can be started again, and all ports say the same of both stores', async () => {
  const dataDir = installations.copy()
  const database = await createDatabase()
  try {
    const runs = []
    for (const table of ['api_key', 'call', 'call_body']) {
      runs.push(await killBefore(table, dataDir, database.url))
    }
    assert.match(runs[0]?.stdout ?? '', /^Calls that were in flight when the gateway ended: 1, interrupted/)
    assert.match(runs[0]?.stdout ?? '', /^Moving the books in \S+ to postgres:\/\/127\.0\.0\.1:\d+\/\w+\.$/m)
    await runOn(database.url, 'DO $$ BEGIN ASSERT NOT EXISTS (SELECT FROM api_key); END $$')
    await assertRefused(openByCallersClock(database.url), /still being moved into this database/)

    const rerate = (databaseUrl: string) =>
      runTollgate(['rerate', '--from', '2026-01-01', '--apply', '--yes'], environment(dataDir, databaseUrl))
    const tooSoon = await rerate(database.url)
    assert.equal(tooSoon.code, 1)
    assert.match(tooSoon.stderr, /still being moved into this database/)

    const last = await move(dataDir, database.url)
    assert.equal(last.code, 0, last.stderr)
    assert.match(last.stdout, /^Both sides have the same rows and the same sums\.$/m)
    assert.match(last.stdout, /^The audit found no difference in 14 calls/m)
    assert.match(last.stdout, /Set TOLLGATE_PEPPER on every node to the content of the file \S+pepper:/)

    await assertRefused(openFile(dataDir), /were moved to postgres:\S+ on .*tollgate migrate-store --undo$/)
    const rerated = await rerate('')
    assert.equal(rerated.code, 1)
    assert.match(rerated.stderr, /were moved to postgres:\S+ on .*tollgate migrate-store --undo$/m)
    const from = await openFile(dataDir)
    const to = await openByCallersClock(database.url)
    assert.equal(await whyNotOpened(to), null)
    const said = { from: await readAll(from), to: await readAll(to) }
    await Promise.all([from.close(), to.close()])
    assert.deepEqual(said.to, said.from)
    assert.deepEqual([said.from.calls.length, said.from.keys.length, said.from.found.rows.length], [14, 8, 1])

    // The command was killed between its mark in SQLite and its mark in PostgreSQL: neither is served from until both are set.
    const unsaid = `regexp_replace(value, '"finishedAtMs":[0-9]+', '"finishedAtMs":null')`
    await runOn(database.url, `UPDATE setting SET value = ${unsaid} WHERE name = 'store_move'`)
    await assertRefused(openByCallersClock(database.url), /still being moved into this database/)
    const finishing = await move(dataDir, database.url)
    assert.equal(finishing.code, 0, finishing.stderr)
    assert.match(finishing.stdout, /^The rows of the books in \S+ are in \S+ already\.$/m)
    const again = await move(dataDir, database.url)
    assert.deepEqual([again.code, again.stderr], [0, ''])
    assert.match(again.stdout, /were moved to \S+ before, and the move is finished\.$/m)
  } finally {
    await database.drop()
  }
})

test('books that changed after a move was killed are moved as they are now, into a database that had no schema', async () => {
  const dataDir = installations.copy()
  const database = await createEmptyDatabase()
  try {
    // The schema is made first, so that there is a table to wait for.
    await (await openByCallersClock(database.url)).close()
    await killBefore('call_body', dataDir, database.url)
    const store = await openFile(dataDir)
    const [key] = (await store.listKeys({ ...EVERY_KEY, search: 'listed' })).rows
    assert.equal((await store.updateKey('default', key?.id ?? '', { name: 'renamed' }, NOW)).kind, 'changed')
    await store.close()

    const moved = await move(dataDir, database.url)
    assert.equal(moved.code, 0, moved.stderr)
    const to = await openByCallersClock(database.url)
    assert.equal((await to.listKeys({ ...EVERY_KEY, search: 'renamed' })).rows.length, 1)
    await to.close()

    // After `--undo` both books can be used, and each changes by itself.
    const undone = await move(dataDir, '', '--undo')
    assert.equal(undone.code, 0, undone.stderr)
    assert.match(undone.stdout, /are in use again, as they were on .* Nothing was changed in postgres:/)
    const from = await openFile(dataDir)
    assert.equal(await whyNotOpened(from), null)
    await from.updateKey('default', key?.id ?? '', { name: 'renamed again' }, NOW)
    await from.close()
    const refused = await move(dataDir, database.url)
    assert.equal(refused.code, 1)
    assert.match(refused.stderr, /taken into use again since\. Two sets of books cannot be made one/)
  } finally {
    await database.drop()
  }
})

test('books that are in use, missing, moved, newer or not in order are not moved', async () => {
  const database = await createDatabase()
  const dataDir = installations.copy()
  const refusals: [what: Finished, code: number, message: RegExp][] = []
  const missing = join(dataDir, 'nowhere')
  const [noUrl, noBooks, wrong, help, notMoved, unreachable] = await Promise.all([
    runInThread(['migrate-store'], { TOLLGATE_DATA_DIR: dataDir }),
    move(missing, database.url),
    move(dataDir, database.url, '--fast'),
    move(dataDir, database.url, '--help'),
    move(installations.copy(), database.url, '--undo'),
    move(installations.copy(), 'postgres://x:secret@127.0.0.1:1/x'),
  ])
  refusals.push(
    [noUrl, 2, /TOLLGATE_DATABASE_URL is not set: it says where to, such as postgres:/],
    [noBooks, 2, /TOLLGATE_DATA_DIR: there are no books in .*nowhere/],
    [wrong, 2, /Unknown option '--fast'[\s\S]*Usage\n/],
    [notMoved, 1, /were not moved anywhere/],
    [unreachable, 1, /database postgres:\/\/127\.0\.0\.1:1\/x cannot be used: no connection/],
  )
  assert.equal(help.code, 0)
  assert.match(help.stdout, /^Usage\n[\s\S]*Example\n/)
  assert.ok(!unreachable.stderr.includes('secret'))

  const lock = lockDataDir(dataDir)
  // A lock keeps other processes out, not other threads of this one.
  const served = await runTollgate(['migrate-store'], environment(dataDir, database.url))
  lock?.release()
  refusals.push([served, 1, /A gateway serves from .* Stop it first/])

  const newer = installations.copy()
  change(newer, 'PRAGMA user_version = 99')
  const moved = installations.copy()
  const to = JSON.stringify({ database: 'postgres://elsewhere:5432/x', atMs: 0 })
  change(moved, `INSERT INTO setting VALUES ('moved_to', '${to}')`)
  const broken = installations.copy()
  writeFileSync(join(broken, 'tollgate.db'), 'no database')
  for (const suffix of ['-wal', '-shm']) rmSync(join(broken, `tollgate.db${suffix}`), { force: true })
  const unsound = installations.copy()
  change(unsound, 'UPDATE account SET charged_nanos = charged_nanos + 1')
  const results = await Promise.all([newer, moved, broken, unsound].map((each) => move(each, database.url)))
  const messages = [
    /schema version 99, this Tollgate knows up to/,
    /were moved to postgres:\/\/elsewhere:5432\/x on 1970-01-01/,
    /cannot be opened: file is not a database/,
    /The audit found a difference: charged of an account[\s\S]*No node serves from the database like this/,
  ]
  for (const [i, what] of results.entries()) refusals.push([what, 1, messages[i] ?? /^$/])
  const servedAgain = await runTollgate(['serve'], { TOLLGATE_DATA_DIR: moved, TOLLGATE_PORT: '0' })
  refusals.push([servedAgain, 1, /were moved to postgres:\/\/elsewhere:5432\/x[\s\S]*migrate-store --undo/])
  for (const [what, code, message] of refusals) {
    assert.match(what.stderr, message)
    assert.equal(what.code, code, what.stderr)
  }
  await assertRefused(openByCallersClock(database.url), /still being moved/)
  const left = await openFile(unsound)
  assert.equal(await whyNotOpened(left), null, 'the books that were not in order can still be served')
  await left.close()
  await database.drop()
})

test('progress is a bar with rows, rate and time left on a terminal, and a line now and then elsewhere', () => {
  let nowMs = 0
  const draw = (isTTY: boolean): string[] => {
    const written: string[] = []
    const write = (text: string | Uint8Array): boolean => written.push(String(text)) > 0
    const stream = { isTTY, write, columns: 60 } as unknown as NodeJS.WriteStream
    const progress = createMoveProgress(stream, { monotonicMs: () => nowMs })
    progress.show('Moving keys', 0, 0)
    progress.show('Moving calls', 1_000, 101_000)
    progress.show('Moving calls', 2_000, 101_000)
    nowMs += 10_000
    progress.show('Moving calls', 51_000, 101_000)
    progress.show('Moving calls', 101_000, 101_000)
    progress.show('Moving calls', 101_000, 101_000)
    progress.end()
    return written
  }
  assert.deepEqual(draw(false), [
    'Moving calls: 51,000 of 101,000, 5,000/s, 10 s left\n',
    'Moving calls: 101,000 of 101,000, 10,000/s\n',
  ])
  assert.deepEqual(draw(true), [
    '\rMoving calls [..........] 1,000 of 101,000\x1b[K',
    '\rMoving calls [#####.....] 51,000 of 101,000, 5,000/s, 10 s \x1b[K',
    '\rMoving calls [##########] 101,000 of 101,000, 10,000/s\x1b[K',
    '\r\x1b[K',
  ])
})

function change(dataDir: string, sql: string): void {
  const db = new DatabaseSync(join(dataDir, 'tollgate.db'))
  db.exec(sql)
  db.close()
}
