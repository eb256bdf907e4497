import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { StoreUnavailable } from '../../src/kernel/errors.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { test } from '../support/suite.ts'
import { addKey, opening } from './conformance/fixtures.ts'

/** If each call waited for the lock, this test would take hours. */
const CALLS = 2_000

test('while another process locks the file, one wait decides for all calls, and later calls fail at once', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-locked-'))
  const file = join(folder, 'tollgate.db')
  const store = await openSqliteStore(file, assert.fail)
  const other = new DatabaseSync(file)
  try {
    await addKey(store, 'a')
    other.exec('BEGIN IMMEDIATE')
    const admit = (n: number) => store.admit(opening(`req_${n}`, 'a'))
    const first = await Promise.allSettled(Array.from({ length: CALLS }, (_, n) => admit(n)))
    for (const outcome of first)
      assert.ok(outcome.status === 'rejected' && outcome.reason instanceof StoreUnavailable)
    for (let n = 0; n < CALLS; n++) await assert.rejects(admit(n), StoreUnavailable)
    other.exec('COMMIT')
    assert.equal((await admit(0)).kind, 'admitted')
  } finally {
    other.close()
    await store.close()
    rmSync(folder, { recursive: true })
  }
})
