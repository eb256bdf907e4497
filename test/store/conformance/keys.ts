import assert from 'node:assert/strict'
import { SYSTEM } from '../../../src/kernel/actor.ts'
import { type KeyRecord, type KeySuccessor, NO_LIMITS } from '../../../src/keys/key-store.ts'
import type { Store } from '../../../src/store/store.ts'
import {
  addCredit,
  addKey,
  closing,
  digestOf,
  doneValue,
  EVERY_ADMIN,
  NOON,
  newKey,
  type OpenStoreUnderTest,
  opening,
} from './fixtures.ts'
import { promisesOf } from './promise.ts'

const NO_MONTH = { spentNanos: 0n, heldNanos: 0n, lostNanos: 0n, daySpentNanos: 0n }
const DECEMBER = Date.UTC(2026, 11, 3)

const LIMITS = {
  monthlyBudgetNanos: 9_007_199_254_740_993n,
  dailyBudgetNanos: 9_007_199_254_740_995n,
  requestsPerMinute: 1_000_000,
  budgetMode: 'settled' as const,
  metadata: { team: 'web', 'odd "name"': '💶 ümlaut', '': '' },
  allowedModels: ['claude-haiku-5-5', 'odd "name", ümlaut'],
  logRequests: true,
  expiresAtMs: NOON + 60_000,
}

async function get(store: Store, id: string, atMs = NOON): Promise<KeyRecord> {
  const key = await store.getKey('default', id, atMs)
  assert.ok(key !== null, `there is no ${id}`)
  return key
}

function successor(name: string, more: Partial<KeySuccessor> = {}): KeySuccessor {
  const { id, digest, prefix } = newKey(name)
  return { id, digest, prefix, last4: 'next', createdAtMs: NOON, oldExpiresAtMs: null, ...more }
}

const reasonOf = async (store: Store, name: string, atMs: number): Promise<string> => {
  const recognition = await store.lookUpKey(digestOf(name), atMs)
  return recognition.kind === 'refused' ? recognition.reason : recognition.kind
}

/** Spends 800 and holds 1,000 in November. */
async function useKey(store: Store, name: string): Promise<void> {
  await store.admit(opening(`req_1_${name}`, name))
  await store.settle(closing(`req_1_${name}`))
  await store.admit(opening(`req_2_${name}`, name))
}

export function keyConformance(storeName: string, openStore: OpenStoreUnderTest): void {
  const test = promisesOf(storeName, openStore)

  test('a key is stored exactly as created', async ({ store }) => {
    const created = doneValue(await store.createKey(newKey('a', LIMITS), null, SYSTEM))
    assert.deepEqual(created, {
      id: 'key_a',
      accountId: 'default',
      budgetId: 'bud_a',
      personId: null,
      deviceUntilMs: null,
      name: 'a',
      prefix: 'svc_live_xxxxxxx',
      last4: 'xxxx',
      ...LIMITS,
      createdAtMs: NOON - 1_000,
      revokedAtMs: null,
      lastUsedAtMs: null,
      rotatedFrom: null,
      month: NO_MONTH,
    })
    assert.deepEqual(await get(store, 'key_a'), created)
  })

  test('a key without limits has none, and a cap of 0 is a limit', async ({ store }) => {
    await addKey(store, 'a')
    await addKey(store, 'b', { monthlyBudgetNanos: 0n })
    assert.partialDeepStrictEqual(await get(store, 'key_a'), NO_LIMITS)
    assert.equal((await get(store, 'key_b')).monthlyBudgetNanos, 0n)
  })

  test('creating a key that exists is refused', async ({ store }) => {
    await addKey(store, 'a')
    await assert.rejects(store.createKey(newKey('a', { digest: digestOf('b') }), null, SYSTEM))
    await assert.rejects(store.createKey(newKey('a', { id: 'key_b' }), null, SYSTEM))
    assert.equal(await store.getKey('default', 'key_b', NOON), null)
  })

  test('ids of another account are not found', async (subject) => {
    const { store } = subject
    await subject.addAccount('other')
    await addKey(store, 'a')
    const before = await get(store, 'key_a')
    assert.equal(await store.getKey('other', 'key_a', NOON), null)
    assert.deepEqual(await store.updateKey('other', 'key_a', { name: 'x' }, NOON, SYSTEM), { kind: 'none' })
    assert.equal(await store.revokeKey('other', 'key_a', NOON, SYSTEM), null)
    assert.deepEqual(await store.rotateKey('other', 'key_a', successor('b'), null, SYSTEM), { kind: 'none' })
    assert.deepEqual(await get(store, 'key_a'), before)
    assert.equal(await store.getKey('other', 'key_b', NOON), null)
  })

  test('an unknown id is not found', async ({ store }) => {
    assert.equal(await store.getKey('default', 'key_x', NOON), null)
    assert.equal(await store.revokeKey('default', 'key_x', NOON, SYSTEM), null)
    assert.deepEqual(await store.updateKey('default', 'key_x', {}, NOON, SYSTEM), { kind: 'none' })
    assert.deepEqual(await store.rotateKey('default', 'key_x', successor('b'), null, SYSTEM), {
      kind: 'none',
    })
  })

  test('an update changes only the fields it names', async ({ store }) => {
    await addKey(store, 'a', LIMITS)
    let expected = await get(store, 'key_a')
    for (const changes of [
      { name: 'renamed' },
      { monthlyBudgetNanos: 5n },
      { dailyBudgetNanos: 0n, budgetMode: null },
      { metadata: { team: 'data' } },
      { allowedModels: ['gpt-5.5'] },
      { logRequests: false },
      { expiresAtMs: NOON + 1 },
      { monthlyBudgetNanos: null, allowedModels: null, expiresAtMs: null },
      {},
    ]) {
      expected = { ...expected, ...changes }
      assert.deepEqual(await store.updateKey('default', 'key_a', changes, NOON, SYSTEM), {
        kind: 'changed',
        key: expected,
      })
      assert.deepEqual(await get(store, 'key_a'), expected)
    }
  })

  test('the sockets of a key may stay open while it is usable and its account is active', async (subject) => {
    const { store } = subject
    await subject.addAccount('acme')
    await addKey(store, 'a', { accountId: 'acme', expiresAtMs: NOON + 9 })
    const mayCall = (atMs = NOON) => store.mayCall('key_a', atMs)
    assert.deepEqual([await mayCall(), await mayCall(NOON + 9)], [true, false])
    assert.equal(await store.mayCall('key_b', NOON), false)
    for (const status of ['suspended', 'active'] as const) {
      await store.updateAccount('acme', { status }, SYSTEM, NOON)
      assert.equal(await mayCall(), status === 'active')
    }
    await store.revokeKey('acme', 'key_a', NOON, SYSTEM)
    assert.equal(await mayCall(), false)
  })

  test('a lookup tells API keys, admin keys and unknown keys apart', async (subject) => {
    const { store } = subject
    await addKey(store, 'a')
    const admin = { ...newKey('admin'), id: 'adm_1', role: 'viewer', bootstrap: false } as const
    await store.createAdminKey(admin, SYSTEM)
    assert.deepEqual(await store.lookUpKey(digestOf('a'), NOON), {
      kind: 'api_key',
      keyId: 'key_a',
      personId: null,
      name: 'a',
      accountId: 'default',
      funds: { keyCeilings: [], accountCeilings: [], creditEnforced: false, balanceNanos: 0n },
      ...{ isSuspended: false, hasOthers: false, upstreams: { messages: null, chat: null } },
    })
    assert.deepEqual(await store.lookUpKey(digestOf('admin'), NOON), {
      kind: 'admin_key',
      keyId: 'adm_1',
      name: 'admin',
      role: 'viewer',
      accountId: 'default',
    })
    assert.equal(await reasonOf(store, 'nobody', NOON), 'unknown_key')
    await store.revokeAdminKey(EVERY_ADMIN, 'adm_1', SYSTEM, NOON)
    assert.equal(await reasonOf(store, 'admin', NOON), 'revoked_key')
  })

  test('a lookup of a key returns its ceilings and credit in the given month', async ({ store }) => {
    await addKey(store, 'a', { monthlyBudgetNanos: 5_000n })
    await useKey(store, 'a')
    const meansAt = async (atMs: number) => {
      const caller = await store.lookUpKey(digestOf('a'), atMs)
      return caller.kind === 'api_key' ? caller.funds : caller
    }
    const of = { scope: 'key', period: 'month', capNanos: 5_000n, resetsAtMs: Date.UTC(2026, 11, 1) }
    const used = {
      keyCeilings: [{ ...of, spentNanos: 800n, heldNanos: 1_000n }],
      accountCeilings: [],
      ...{ creditEnforced: false, balanceNanos: -800n },
    }
    assert.deepEqual(await meansAt(NOON), used)
    await addCredit(store, 10_000n)
    const funded = { creditEnforced: true, balanceNanos: 9_200n }
    assert.deepEqual(await meansAt(NOON), { ...used, ...funded })
    const fresh = { ...of, spentNanos: 0n, heldNanos: 0n, resetsAtMs: Date.UTC(2027, 0, 1) }
    assert.deepEqual(await meansAt(DECEMBER), { ...used, ...funded, keyCeilings: [fresh] })
  })

  test('the last use of an admin key is exact to a minute', async ({ store }) => {
    await store.createAdminKey({ ...newKey('a'), id: 'adm_a', role: 'viewer', bootstrap: false }, SYSTEM)
    const usedAt = async (atMs: number) => {
      await store.lookUpKey(digestOf('a'), atMs)
      const { rows } = await store.listAdminKeys({ scope: EVERY_ADMIN, after: null, limit: 1 })
      return rows[0]?.lastUsedAtMs
    }
    assert.equal(await usedAt(NOON), NOON)
    assert.equal(await usedAt(NOON + 59_999), NOON)
    assert.equal(await usedAt(NOON + 60_000), NOON + 60_000)
    assert.equal(await usedAt(NOON), NOON + 60_000, 'the clock was set back')
  })

  test('a new bootstrap admin key replaces the former one, and the same key is kept', async (subject) => {
    const { store } = subject
    const operator = { role: 'operator', accountId: null, bootstrap: true } as const
    const bootstrap = (name: string) => ({ ...newKey(name), id: `adm_${name}`, ...operator })
    await store.createAdminKey(bootstrap('one'), SYSTEM)
    const again = await store.createAdminKey({ ...bootstrap('one'), id: 'adm_other' }, SYSTEM)
    assert.equal(again.id, 'adm_one')
    await store.createAdminKey(bootstrap('two'), SYSTEM)
    assert.equal(await reasonOf(store, 'one', NOON), 'revoked_key')
    assert.equal(await reasonOf(store, 'two', NOON), 'admin_key')
    await store.createAdminKey(bootstrap('one'), SYSTEM)
    assert.equal(await reasonOf(store, 'one', NOON), 'admin_key')
    assert.deepEqual(
      (await store.listAdminKeys({ scope: EVERY_ADMIN, after: null, limit: 9 })).rows.map((key) => [
        key.id,
        key.revokedAtMs === null,
      ]),
      [
        ['adm_two', false],
        ['adm_one', true],
      ],
    )
  })

  test('the models of an uploaded batch file are stored for its key', async (subject) => {
    const { store } = subject
    await addKey(store, 'a')
    const file = { accountId: 'default', keyId: 'key_a', fileId: 'file_1', bound: null, atMs: NOON }
    await store.storeBatchFile({ ...file, models: ['one'] })
    await store.storeBatchFile({ ...file, models: ['one', 'two "quoted"'] })
    await store.storeBatchFile({ ...file, fileId: 'file_2', models: [] })
    assert.deepEqual(
      (await subject.rows('batch_file')).map((row) => [row['file_id'], row['key_id'], row['models']]),
      [
        ['file_1', 'key_a', '["one","two \\"quoted\\""]'],
        ['file_2', 'key_a', '[]'],
      ],
    )
  })
}
