import assert from 'node:assert/strict'
import { mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { SYSTEM } from '../../src/kernel/actor.ts'
import { StoreGone, StoreRefused, StoreUnavailable } from '../../src/kernel/errors.ts'
import { limits } from '../../src/kernel/limits.ts'
import type { KeyQuery } from '../../src/keys/key-store.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import type { Store } from '../../src/store/store.ts'
import { test } from '../support/suite.ts'
import {
  addKey,
  ask,
  capped,
  closing,
  costing,
  digestOf,
  NOON,
  newKey,
  opening,
} from './conformance/fixtures.ts'

const ALL: KeyQuery = { accountId: 'default', status: null, search: null, after: null, limit: 10, atMs: NOON }

/** SQLITE_FULL. */
const DISK_FULL = 13

interface Opened {
  readonly store: Store
  /** Commits fail with this SQLite code; 0 is a working disk. */
  failCommits(errcode: number): void
  /** Changes rows from another connection, as another process would. */
  execBeside(sql: string): void
}

function withStore(sentence: string, prove: (opened: Opened) => Promise<void>): void {
  test(sentence, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-reader-'))
    const fault = new SharedArrayBuffer(4)
    const fail = (error: Error) => {
      throw error
    }
    const file = join(folder, 'tollgate.db')
    const store = await openSqliteStore(file, fail, fault)
    const execBeside = (sql: string) => {
      using db = new DatabaseSync(file, { timeout: 5_000 })
      db.exec(sql)
    }
    const failCommits = (errcode: number) => Atomics.store(new Int32Array(fault), 0, errcode)
    try {
      await prove({ store, failCommits, execBeside })
    } finally {
      await store.close()
      rmSync(folder, { recursive: true })
    }
  })
}

withStore('a list is read on a thread that does not write', async ({ store, failCommits }) => {
  await addKey(store, 'a')
  failCommits(DISK_FULL)
  await assert.rejects(store.getKey('default', 'key_a', NOON), StoreUnavailable)
  assert.equal((await store.listKeys(ALL)).rows.length, 1)
  failCommits(0)
  await addKey(store, 'b')
  assert.equal((await store.listKeys(ALL)).rows.length, 2)
})

withStore('a write that was not committed is not in a list', async ({ store, failCommits }) => {
  failCommits(DISK_FULL)
  await assert.rejects(store.createKey(newKey('a'), null, SYSTEM), StoreUnavailable)
  assert.deepEqual(await store.listKeys(ALL), { rows: [], more: false })
  failCommits(0)
})

withStore(
  'reads beyond the limit are refused, and those that wait are answered in order',
  async ({ store }) => {
    const order: number[] = []
    const all = Array.from({ length: 1 + limits.readQueueMax }, (_, i) => i)
    const asked = all.map(async (i) => {
      await store.listKeys(ALL)
      order.push(i)
    })
    await assert.rejects(store.listKeys(ALL), StoreUnavailable)
    await Promise.all(asked)
    assert.deepEqual(order, all)
    assert.deepEqual(await store.listKeys(ALL), { rows: [], more: false })
  },
)

withStore('closing answers what was asked for before, and nothing after', async ({ store }) => {
  const asked = [store.listKeys(ALL), store.listKeys(ALL)]
  await Promise.all([store.close(), store.close()])
  for (const answer of asked) assert.deepEqual(await answer, { rows: [], more: false })
  await assert.rejects(store.listKeys(ALL), StoreGone)
})

withStore('a read that cannot be done fails alone', async ({ store }) => {
  const [bad, good] = await Promise.allSettled([
    store.listKeys({ ...ALL, accountId: {} as never }),
    store.listKeys(ALL),
  ])
  assert.ok(bad.status === 'rejected' && bad.reason instanceof StoreRefused)
  assert.equal(good.status, 'fulfilled')
})

withStore('an admission sees what another process has written', async ({ store, execBeside }) => {
  await capped(store, 'a', 10_000n)
  assert.equal(await ask(store, 'req_1', 'a'), 'admitted')
  execBeside('UPDATE budget SET spent_nanos = 10000')
  assert.equal(await ask(store, 'req_2', 'a'), 'budget_exceeded')
  execBeside('UPDATE api_key SET revoked_at_ms = 1')
  assert.equal(await ask(store, 'req_3', 'a'), 'revoked_key')
})

withStore('what a failed batch has decided does not count', async ({ store, failCommits }) => {
  await capped(store, 'a', 1_000n)
  await store.admit(opening('req_1', 'a'))
  await store.settle(closing('req_1', costing(100n)))
  failCommits(DISK_FULL)
  await assert.rejects(ask(store, 'req_2', 'a'), StoreUnavailable)
  failCommits(0)
  assert.equal(await ask(store, 'req_3', 'a'), 'admitted')
})

test('if the reader thread cannot start, its reads fail, and the next read starts it again', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-reader-'))
  const file = join(folder, 'tollgate.db')
  const store = await openSqliteStore(file, assert.fail)
  await addKey(store, 'a')
  renameSync(file, `${file}-moved`)
  for (const answer of await Promise.allSettled([store.listKeys(ALL), store.listKeys(ALL)])) {
    assert.ok(answer.status === 'rejected' && answer.reason instanceof StoreUnavailable)
    assert.ok(!(answer.reason instanceof StoreGone))
  }
  renameSync(`${file}-moved`, file)
  assert.equal((await store.listKeys(ALL)).rows.length, 1)
  await store.close()
  rmSync(folder, { recursive: true })
})

const SQLITE_IOERR = 10

test('a failed commit ends the store', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-uses-'))
  const diskFault = new SharedArrayBuffer(4)
  const fatal = Promise.withResolvers<Error>()
  const store = await openSqliteStore(join(folder, 'tollgate.db'), fatal.resolve, diskFault)
  Atomics.store(new Int32Array(diskFault), 0, SQLITE_IOERR)
  await assert.rejects(addKey(store, 'a'), StoreUnavailable)
  assert.match((await fatal.promise).message, /disk fault 10/)
  await assert.rejects(store.lookUpKey(digestOf('a'), NOON), StoreGone)
  await store.close()
  rmSync(folder, { recursive: true })
})

test('a batch with a failing command runs again one by one and records nothing twice', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-store-'))
  const store = await openSqliteStore(join(folder, 'tollgate.db'), (error) => {
    throw error
  })
  await store.createKey(newKey('free'), null, SYSTEM)
  // The first command goes at once; the commands that arrive meanwhile form one batch.
  const outcomes = await Promise.allSettled([
    store.getBalance('default'),
    store.admit(opening('req_a', 'free')),
    store.settle(closing('req_nowhere')),
    store.admit(opening('req_a', 'free')),
    store.admit(opening('req_b', 'free')),
  ])
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'rejected', 'rejected', 'fulfilled'],
  )
  await store.settle(closing('req_b'))
  const balance = { creditedNanos: 0n, chargedNanos: 800n, heldNanos: 1_000n, creditEnforced: false }
  assert.deepEqual(await store.getBalance('default'), balance)
  await store.close()
  rmSync(folder, { recursive: true })
})
