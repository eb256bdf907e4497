import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { migrations } from '../../src/store/sqlite/migrations.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { digestOf, NOON } from './conformance/fixtures.ts'

const [accountsAndKeys = '', ledger = ''] = migrations

test('a key from before allowlists keeps its meaning: every model, no bodies kept, its month as it was', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-migrate-'))
  const file = join(folder, 'tollgate.db')
  const before = new DatabaseSync(file)
  before.exec(accountsAndKeys)
  before.exec(ledger)
  before.exec('PRAGMA user_version = 2')
  before
    .prepare(
      `INSERT INTO api_key (id, account_id, name, digest, prefix, last4, created_at_ms, expires_at_ms,
                            last_used_at_ms, monthly_budget_nanos)
       VALUES ('key_a', 'default', 'old', ?, 'svc_live_xxxxxxx', 'xxxx', 1, 2000000000000, 3, 4)`,
    )
    .run(digestOf('a'))
  before.exec("INSERT INTO key_month VALUES ('key_a', '2026-11', 5, 6, 7)")
  before.close()

  const store = await openSqliteStore(file, assert.fail)
  assert.deepEqual(await store.getKey('default', 'key_a', NOON), {
    id: 'key_a',
    accountId: 'default',
    name: 'old',
    prefix: 'svc_live_xxxxxxx',
    last4: 'xxxx',
    monthlyBudgetNanos: 4n,
    allowedModels: null,
    logRequests: false,
    createdAtMs: 1,
    expiresAtMs: 2_000_000_000_000,
    revokedAtMs: null,
    lastUsedAtMs: 3,
    rotatedFrom: null,
    month: { spentNanos: 5n, heldNanos: 6n, lostNanos: 7n },
  })
  assert.equal((await store.lookUpKey(digestOf('a'), NOON)).kind, 'api_key')
  await store.close()
  rmSync(folder, { recursive: true })
})

test('bodies that were logged before there was a limit count', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-migrate-'))
  const file = join(folder, 'tollgate.db')
  const body = { compressed: Buffer.alloc(1_000), contentType: null, lengthBytes: 1_000, truncated: false }
  const first = await openSqliteStore(file, assert.fail)
  for (const id of ['req_1', 'req_2'])
    await first.keepBodies({ requestId: id, atMs: NOON, request: body, response: null })
  await first.close()
  const before = new DatabaseSync(join(folder, 'bodies.db'))
  before.exec('DROP TRIGGER call_body_added; DROP TRIGGER call_body_deleted; DROP TABLE body_total')
  before.close()

  const store = await openSqliteStore(file, assert.fail)
  assert.equal(await store.trimBodies(2 * 1_256, 10), 0)
  assert.equal(await store.trimBodies(2 * 1_256 - 1, 10), 1)
  assert.equal(await store.getBodies('req_1'), null)
  await store.close()
  rmSync(folder, { recursive: true })
})
