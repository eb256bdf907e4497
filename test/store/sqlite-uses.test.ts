import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { StoreGone } from '../../src/kernel/errors.ts'
import { migrate } from '../../src/store/sqlite/migrate.ts'
import type { Command } from '../../src/store/sqlite/operations.ts'
import { prepareOperations } from '../../src/store/sqlite/prepare-operations.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { closing, digestOf, NOON, newKey, opening } from './conformance/fixtures.ts'

const SQLITE_IOERR = 10

const look = (name: string, atMs: number): Command => ['lookUpKey', digestOf(name), atMs]

function prepareBooks() {
  const db = new DatabaseSync(':memory:', { readBigInts: true })
  migrate(db)
  const operations = prepareOperations(db)
  operations.run(['createKey', newKey('a'), null])
  operations.run(['createKey', newKey('b'), null])
  const select = db.prepare('SELECT last_used_at_ms FROM api_key ORDER BY id')
  return { db, operations, lastUses: () => select.all().map((row) => row['last_used_at_ms']) }
}

test('to recognise keys writes nothing; the latest use of each goes with what is committed next', () => {
  const { db, operations, lastUses } = prepareBooks()
  const looks = [look('a', NOON + 5), look('b', NOON + 1), look('a', NOON + 2), look('nobody', NOON)]
  assert.equal(operations.onlyLook(looks), true)
  assert.equal(operations.onlyLook([...looks, ['admit', opening('req_1', 'a')]]), false)
  assert.equal(operations.hasUnwritten(), false)
  for (const each of looks) operations.run(each)
  assert.deepEqual(lastUses(), [null, null])
  assert.equal(operations.hasUnwritten(), true)

  db.exec('BEGIN')
  operations.run(['admit', opening('req_1', 'a')])
  operations.beforeCommit()
  db.exec('COMMIT')
  operations.committed()
  assert.deepEqual(lastUses(), [BigInt(NOON + 5), BigInt(NOON + 1)])
  assert.equal(operations.hasUnwritten(), false)
  db.close()
})

test('a use is not lost with a batch that is rolled back', () => {
  const { db, operations, lastUses } = prepareBooks()
  operations.run(look('a', NOON))
  db.exec('BEGIN')
  assert.throws(() => operations.run(['settle', closing('req_nowhere')]))
  operations.rolledBack()
  db.exec('ROLLBACK')
  operations.beforeCommit()
  assert.deepEqual(lastUses(), [BigInt(NOON), null])
  db.close()
})

test('uses do not wait for ever for something else to be written', () => {
  const { db, operations } = prepareBooks()
  let looks = 0
  while (looks < 10_000 && operations.onlyLook([look('a', NOON)])) {
    operations.run(look('a', NOON))
    looks += 1
  }
  assert.equal(looks, 200)
  operations.beforeCommit()
  operations.committed()
  assert.equal(operations.onlyLook([look('a', NOON)]), true)
  db.close()
})

test('a store that is closed has written the uses it knew of', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-uses-'))
  const file = join(folder, 'tollgate.db')
  const store = await openSqliteStore(file, assert.fail)
  await store.createKey(newKey('a'), null)
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
  await store.createKey(newKey('a'), null)
  Atomics.store(new Int32Array(diskFault), 0, SQLITE_IOERR)
  assert.equal((await store.lookUpKey(digestOf('a'), NOON)).kind, 'api_key')
  assert.match((await fatal.promise).message, /disk fault 10/)
  await assert.rejects(store.lookUpKey(digestOf('a'), NOON), StoreGone)
  await store.close()
  rmSync(folder, { recursive: true })
})
