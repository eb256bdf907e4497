import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SYSTEM } from '../../src/kernel/vocabulary.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { test } from '../support/suite.ts'
import { closing, newKey, opening } from './conformance/fixtures.ts'

test('the thread of the store runs a batch with a failing command one by one, and records nothing twice', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-store-'))
  const store = await openSqliteStore(join(folder, 'tollgate.db'), (error) => {
    throw error
  })
  await store.createKey(newKey('free'), null, SYSTEM)
  // The first command goes at once, and the commands that come while it runs are one batch.
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
  const balance = { creditedNanos: 0n, chargedNanos: 800n, heldNanos: 1_000n, enforced: false }
  assert.deepEqual(await store.getBalance('default'), balance)
  await store.close()
  rmSync(folder, { recursive: true })
})
