import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { InstallationError } from '../../src/kernel/errors.ts'
import { SCHEMA, SCHEMA_VERSION } from '../../src/store/schema.ts'
import { migrateBodies, migrateSqlite, openSqliteSnapshot } from '../../src/store/sqlite/database.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import type { Store } from '../../src/store/store.ts'
import { type ReleaseSchema, stepsFrom } from '../../src/store/upgrades.ts'
import { test } from '../support/suite.ts'
import { NOON, opening } from './conformance/fixtures.ts'
import { BREAKING_RELEASE, NEXT } from './next-release.ts'
import { AT_1, creationOf, PLACES, versionOne } from './version-1.ts'

const BODIES = {
  requestId: 'req_1',
  atMs: NOON,
  request: { compressed: Buffer.of(1), contentType: null, lengthBytes: 1, truncated: false },
  response: null,
}

test('the steps of a release lead from the recorded version to its own', () => {
  assert.deepEqual(stepsFrom(AT_1, SCHEMA), [])
  const versions = (version: number) =>
    stepsFrom({ version, oldestVersion: 1 }, NEXT).map((step) => step.version)
  assert.deepEqual([versions(1), versions(2), versions(3)], [[2, 3], [3], []])
})

test('a release whose steps have a gap, or do not lead to its version, does not start', () => {
  const [first, last] = NEXT.steps
  assert.ok(first !== undefined && last !== undefined)
  const broken: ReleaseSchema[] = [
    { ...NEXT, steps: [first] },
    { ...NEXT, steps: [last] },
    { ...NEXT, steps: [] },
    { ...NEXT, steps: [last, first] },
  ]
  for (const release of broken)
    for (const version of [1, 3])
      assert.throws(() => stepsFrom({ version, oldestVersion: 1 }, release), /This release is broken/)
})

test('a database that is too old or too new is refused, with what to do', () => {
  const later = { ...NEXT, first: { version: 2, release: '1.2' }, steps: NEXT.steps.slice(1) }
  assert.throws(() => stepsFrom(AT_1, later), /Install Tollgate 1\.2 and start it once/)
  assert.throws(
    () => stepsFrom({ version: 9, oldestVersion: 4 }, NEXT),
    (error) =>
      error instanceof InstallationError && /needs a Tollgate of schema version 4/.test(error.message),
  )
  assert.deepEqual(stepsFrom({ version: 9, oldestVersion: 3 }, NEXT), [])
})

test('the databases of version 1 in this folder are those of this release', {
  skip: SCHEMA_VERSION > 1,
}, () => {
  const remedy =
    'Until the first release, run `node test/store/version-1.ts`; after it, add a step to SCHEMA.'
  for (const place of PLACES) assert.ok(versionOne(place).startsWith(creationOf(place)), remedy)
})

async function withFiles(prove: (file: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-upgrade-'))
  try {
    await prove(join(folder, 'tollgate.db'))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** The store of this release. */
async function withStore<T>(file: string, work: (store: Store) => Promise<T>): Promise<T> {
  const store = await openSqliteStore(file, (error) => {
    throw error
  })
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}

/** A database of version 1 with a settled call, its bodies, and an open call. */
function restore(file: string): void {
  for (const place of ['main', 'bodies'] as const) {
    const db = new DatabaseSync(place === 'main' ? file : join(file, '../bodies.db'))
    db.exec(`PRAGMA journal_mode = wal; ${versionOne(place)}`)
    db.close()
  }
}

function upgrade(file: string, release = NEXT): void {
  const db = new DatabaseSync(file, { readBigInts: true })
  try {
    migrateSqlite(db, 'main', release)
    migrateBodies(file, release)
  } finally {
    db.close()
  }
}

function read(file: string, query: string): unknown[] {
  const db = new DatabaseSync(file)
  const rows = db
    .prepare(query)
    .all()
    .map((row) => ({ ...row }))
  db.close()
  return rows
}

test('SQLite: an upgrade keeps all rows of both files, and the older release goes on', () =>
  withFiles(async (file) => {
    restore(file)
    upgrade(file)
    for (const each of [file, join(file, '../bodies.db')])
      assert.deepEqual(read(each, 'SELECT * FROM schema_version'), [{ version: 3, oldest_version: 1 }])
    assert.deepEqual(read(file, "SELECT name FROM sqlite_schema WHERE name IN ('team', 'call_by_region')"), [
      { name: 'team' },
      { name: 'call_by_region' },
    ])
    await withStore(file, async (store) => {
      assert.equal((await store.getCall('req_1'))?.state, 'in_flight')
      assert.equal((await store.admit(opening('req_2', 'a'))).kind, 'admitted')
      assert.equal(await store.interruptOpenCalls(NOON + 1), 2)
      assert.equal((await store.getBodies('req_0'))?.atMs, NOON)
      await store.storeBodies({ ...BODIES, requestId: 'req_2' })
    })
    await (await openSqliteSnapshot(file))?.close()
  }))

test('SQLite: an upgrade that fails keeps its completed steps, and the next start goes on', () =>
  withFiles(async (file) => {
    restore(file)
    const [first] = NEXT.steps
    assert.ok(first !== undefined)
    const failing = {
      ...NEXT,
      steps: [
        first,
        {
          version: 3,
          oldestVersion: 1,
          statements: { main: 'CREATE TABLE half (id TEXT); SELECT * FROM none' },
        },
      ],
    }
    assert.throws(() => upgrade(file, failing), /no such table: none/)
    assert.deepEqual(read(file, 'SELECT version FROM schema_version'), [{ version: 2 }])
    assert.deepEqual(read(file, "SELECT 1 FROM sqlite_schema WHERE name = 'half'"), [])
    upgrade(file)
    assert.deepEqual(read(file, 'SELECT version FROM schema_version'), [{ version: 3 }])
  }))

test('SQLite: an upgrade on a full disk changes nothing of its step, and goes on once there is space', () =>
  withFiles(async (file) => {
    restore(file)
    const db = new DatabaseSync(file, { readBigInts: true })
    db.exec(`PRAGMA max_page_count = ${db.prepare('PRAGMA page_count').get()?.['page_count']}`)
    assert.throws(() => migrateSqlite(db, 'main', NEXT), /disk is full/)
    db.close()
    assert.deepEqual(read(file, 'SELECT version FROM schema_version'), [{ version: 1 }])
    assert.deepEqual(read(file, "SELECT 1 FROM pragma_table_info('call') WHERE name = 'region'"), [])
    upgrade(file)
    assert.deepEqual(read(file, 'SELECT version FROM schema_version'), [{ version: 3 }])
  }))

test('SQLite: a release that cannot use the files any more refuses them', () =>
  withFiles(async (file) => {
    restore(file)
    upgrade(file, BREAKING_RELEASE)
    await assert.rejects(
      withStore(file, async () => {}),
      /upgraded by a newer release/,
    )
    await assert.rejects(openSqliteSnapshot(file), /upgraded by a newer release/)
  }))

test('SQLite: an upgrade that is killed changes nothing of its step, and the next start goes on', () =>
  withFiles(async (file) => {
    restore(file)
    const killed = spawn(process.execPath, [
      fileURLToPath(new URL('endless-upgrade.ts', import.meta.url)),
      file,
    ])
    const begun = await text(killed.stdout.take(1))
    assert.equal(begun, 'step 3 runs')
    killed.kill('SIGKILL')
    await once(killed, 'close')
    assert.deepEqual(read(file, 'SELECT version FROM schema_version'), [{ version: 2 }])
    assert.deepEqual(read(file, "SELECT 1 FROM sqlite_schema WHERE name = 'half'"), [])
    upgrade(file)
    assert.deepEqual(read(file, 'SELECT version FROM schema_version'), [{ version: 3 }])
    await withStore(file, async (store) => {
      assert.equal((await store.getCall('req_0'))?.state, 'settled')
    })
  }))
