import assert from 'node:assert/strict'
import { StoreUnavailable } from '../../src/kernel/errors.ts'
import { type MigrateOptions, migratePostgres } from '../../src/store/postgres/migrate.ts'
import type { Store } from '../../src/store/store.ts'
import { createEmptyDatabase, openPatientPool, runOn, stopPostgres } from '../support/postgres.ts'
import { after, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { closing, opening } from './conformance/fixtures.ts'
import { BREAKING_RELEASE, NEXT } from './next-release.ts'
import { type OpenDatabase, openByCallersClock, openDatabaseAt } from './postgres-under-test.ts'
import { versionOne } from './version-1.ts'

after(stopPostgres)

const QUICK: Partial<MigrateOptions> = { release: NEXT, pauseMs: 10, lockMs: 20, tryMs: 60_000 }

/** A node of this release serves beside, in a database of version 1 with a settled call. */
async function beside(prove: (store: Store, database: OpenDatabase) => Promise<void>): Promise<void> {
  const empty = await createEmptyDatabase()
  await runOn(empty.url, versionOne('postgres'))
  const database = openDatabaseAt(empty.url)
  const store = await openByCallersClock(database.url)
  try {
    assert.equal((await store.getCall('req_0'))?.state, 'settled')
    await store.admit(opening('req_1', 'a'))
    await prove(store, database)
  } finally {
    await store.close()
    await database.close()
    await empty.drop()
  }
}

async function versionIn(database: OpenDatabase): Promise<unknown> {
  return (await database.query('SELECT version FROM schema_version'))[0]?.['version']
}

test('PostgreSQL: an upgrade runs while a node of the older release serves, and it may restart', () =>
  beside(async (store, database) => {
    let done = false
    const upgraded = Promise.all([
      migratePostgres(database.url, QUICK),
      migratePostgres(database.url, QUICK),
    ]).finally(() => {
      done = true
    })
    let calls = 0
    for (; !done; calls++) {
      const id = `req_beside_${calls}`
      assert.equal((await store.admit(opening(id, 'a'))).kind, 'admitted')
      assert.equal((await store.settle(closing(id))).applied, true)
    }
    await upgraded
    assert.equal(await versionIn(database), 3)
    assert.deepEqual(
      await database.query(
        "SELECT indisvalid AS valid FROM pg_index WHERE indexrelid = 'call_by_region'::regclass",
      ),
      [{ valid: true }],
    )
    assert.equal((await store.settle(closing('req_1'))).applied, true)
    const restarted = await openByCallersClock(database.url, {
      node: { name: 'restarted', alone: true, beatEveryMs: null },
    })
    assert.equal((await restarted.admit(opening('req_2', 'a'))).kind, 'admitted')
    assert.equal((await restarted.getCall('req_1'))?.state, 'settled')
    await restarted.close()
  }))

test('PostgreSQL: what an interrupted index build left is dropped, and the index is built', () =>
  beside(async (_store, database) => {
    const [first] = NEXT.steps
    assert.ok(first !== undefined)
    await migratePostgres(database.url, { ...QUICK, release: { ...NEXT, version: 2, steps: [first] } })
    await database.query('CREATE INDEX call_by_region ON call (region)')
    await database.query(
      "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'call_by_region'::regclass",
    )
    await migratePostgres(database.url, QUICK)
    assert.deepEqual(
      await database.query(
        "SELECT indisvalid AS valid FROM pg_index WHERE indexrelid = 'call_by_region'::regclass",
      ),
      [{ valid: true }],
    )
    assert.equal(await versionIn(database), 3)
  }))

test('PostgreSQL: a lock of another session delays a step, which gives up and changes nothing', () =>
  beside(async (store, database) => {
    const other = openPatientPool(database.url)
    const held = Promise.withResolvers<void>()
    const release = Promise.withResolvers<void>()
    const holding = other.transaction(async (tx) => {
      await tx.query('LOCK TABLE call IN ACCESS SHARE MODE')
      held.resolve()
      await release.promise
    })
    await held.promise
    await assert.rejects(
      migratePostgres(database.url, { ...QUICK, tryMs: 0 }),
      /schema version 2 could not lock its tables .* pg_stat_activity/,
    )
    assert.equal(await versionIn(database), 1)
    const upgrading = migratePostgres(database.url, QUICK)
    // Calls go on between the attempts.
    assert.equal((await store.admit(opening('req_2', 'a'))).kind, 'admitted')
    assert.equal((await store.settle(closing('req_2'))).applied, true)
    release.resolve()
    await Promise.all([holding, upgrading])
    assert.equal(await versionIn(database), 3)
    await other.close()
  }))

test('PostgreSQL: a step that older nodes cannot use waits until they end, and fences those that are silent', () =>
  beside(async (store, database) => {
    const lines: unknown[] = []
    const log = { info: (line: unknown) => lines.push(line) } as unknown as MigrateOptions['log']
    await database.query('UPDATE node SET seen_at_ms = now_ms()')
    const upgrading = migratePostgres(database.url, { ...QUICK, release: BREAKING_RELEASE, log })
    await until('the upgrade waits', async () =>
      lines.some((line) => (line as { nodes?: string }).nodes === 'test'),
    )
    assert.equal(await versionIn(database), 3)
    assert.equal((await store.admit(opening('req_2', 'a'))).kind, 'admitted')
    await database.query('UPDATE node SET seen_at_ms = now_ms() - 61000')
    await upgrading
    assert.equal(await versionIn(database), 4)
    await assert.rejects(store.admit(opening('req_3', 'a')), (error) => {
      assert.ok(error instanceof StoreUnavailable)
      assert.match(error.message, /a newer release has upgraded the database/)
      return true
    })
    await assert.rejects(openByCallersClock(database.url), /upgraded by a newer release/)
  }))

test('PostgreSQL: an upgrade whose process dies changes nothing of its step, and the next start goes on', () =>
  beside(async (store, database) => {
    const [first] = NEXT.steps
    assert.ok(first !== undefined)
    const postgres = 'CREATE TABLE half (i bigint); SELECT pg_sleep(3600)'
    const endless = { version: 3, oldestVersion: 1, statements: { postgres } }
    const dying = migratePostgres(database.url, { ...QUICK, release: { ...NEXT, steps: [first, endless] } })
    const died = assert.rejects(dying)
    const sleeping =
      "FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%pg_sleep(3600)%' AND pid <> pg_backend_pid()"
    await until('step 3 runs', async () => (await database.query(`SELECT 1 ${sleeping}`)).length > 0)
    await database.query(`SELECT pg_terminate_backend(pid) ${sleeping}`)
    await died
    assert.equal(await versionIn(database), 2)
    assert.deepEqual(await database.query("SELECT to_regclass('half') AS half"), [{ half: null }])
    await migratePostgres(database.url, QUICK)
    assert.equal(await versionIn(database), 3)
    assert.equal((await store.admit(opening('req_2', 'a'))).kind, 'admitted')
  }))
