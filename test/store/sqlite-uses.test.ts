import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { StoreGone } from '../../src/kernel/errors.ts'
import { SYSTEM } from '../../src/kernel/vocabulary.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { test } from '../support/suite.ts'
import { digestOf, NOON, newKey } from './conformance/fixtures.ts'

const SQLITE_IOERR = 10

test('a store that is closed has written the uses it knew of', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-uses-'))
  const file = join(folder, 'tollgate.db')
  const store = await openSqliteStore(file, assert.fail)
  await store.createKey(newKey('a'), null, SYSTEM)
  await store.lookUpKey(digestOf('a'), NOON)
  await store.close()
  const db = new DatabaseSync(file, { readOnly: true })
  assert.equal(db.prepare('SELECT last_used_at_ms FROM api_key').get()?.['last_used_at_ms'], NOON)
  db.close()
  rmSync(folder, { recursive: true })
})

test('a key is recognised without waiting for the disk, and that the disk fails is noticed afterwards', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-uses-'))
  const diskFault = new SharedArrayBuffer(4)
  const fatal = Promise.withResolvers<Error>()
  const store = await openSqliteStore(join(folder, 'tollgate.db'), fatal.resolve, diskFault)
  await store.createKey(newKey('a'), null, SYSTEM)
  Atomics.store(new Int32Array(diskFault), 0, SQLITE_IOERR)
  assert.equal((await store.lookUpKey(digestOf('a'), NOON)).kind, 'api_key')
  assert.match((await fatal.promise).message, /disk fault 10/)
  await assert.rejects(store.lookUpKey(digestOf('a'), NOON), StoreGone)
  await store.close()
  rmSync(folder, { recursive: true })
})
