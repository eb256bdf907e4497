import assert from 'node:assert/strict'
import { SYSTEM } from '../../../src/kernel/actor.ts'
import type { Store } from '../../../src/store/store.ts'
import { digestOf, EVERY_ADMIN, NOON, newKey, type OpenStoreUnderTest } from './fixtures.ts'
import { promisesOf } from './promise.ts'

const HOUR_MS = 3_600_000

async function addAdmin(store: Store, name: string, bootstrap = false): Promise<string> {
  const { id } = await store.createAdminKey(
    {
      ...{
        role: 'operator',
        accountId: null,
        id: `adm_${name}`,
        name,
        digest: digestOf(name),
        prefix: '',
        last4: 'last',
      },
      ...{ createdAtMs: NOON, bootstrap },
    },
    SYSTEM,
  )
  return id
}

const open = (store: Store, name: string, keyId: string, atMs = NOON, sessionsMax = 10) =>
  store.openSession({ digest: digestOf(name), keyId, atMs, lifeMs: HOUR_MS, sessionsMax })

export function sessionConformance(storeName: string, openStore: OpenStoreUnderTest): void {
  const test = promisesOf(storeName, openStore)

  test('a session is found by its digest until it expires', async ({ store }) => {
    const adminKeyId = await addAdmin(store, 'a')
    const caller = { kind: 'admin_key', keyId: adminKeyId, name: 'a', role: 'operator', accountId: null }
    const session = { caller, expiresAtMs: NOON + HOUR_MS }
    assert.deepEqual(await open(store, 's', adminKeyId), session)
    assert.deepEqual(await store.findSession(digestOf('s'), NOON + HOUR_MS - 1), session)
    assert.equal(await store.findSession(digestOf('s'), NOON + HOUR_MS), null)
    assert.equal(await store.findSession(digestOf('another'), NOON), null)
  })

  test('ending a session leaves the other sessions of its admin key', async ({ store }) => {
    const adminKeyId = await addAdmin(store, 'a')
    await open(store, 'one', adminKeyId)
    await open(store, 'two', adminKeyId)
    await store.endSession(digestOf('one'))
    await store.endSession(digestOf('one'))
    assert.equal(await store.findSession(digestOf('one'), NOON), null)
    assert.notEqual(await store.findSession(digestOf('two'), NOON), null)
  })

  test('a session ends with its admin key, and a revoked key cannot open one', async ({ store, rows }) => {
    const [a, b] = [await addAdmin(store, 'a'), await addAdmin(store, 'b')]
    await open(store, 'of a', a)
    await open(store, 'of b', b)
    await store.revokeAdminKey(EVERY_ADMIN, a, SYSTEM, NOON)
    assert.equal(await store.findSession(digestOf('of a'), NOON), null)
    assert.notEqual(await store.findSession(digestOf('of b'), NOON), null)
    assert.equal(await open(store, 'late', a), null)
    assert.equal(await open(store, 'of nothing', 'adm_none'), null)
    assert.equal((await rows('session')).length, 1)
  })

  test('a session of an API key ends when the key is revoked or expires', async ({ store }) => {
    await store.createKey({ ...newKey('a'), expiresAtMs: NOON + 100 }, null, SYSTEM)
    await store.createKey(newKey('b'), null, SYSTEM)
    for (const name of ['a', 'b']) {
      const session = await open(store, name, `key_${name}`)
      assert.equal(session?.caller.kind === 'api_key' ? session.caller.keyId : null, `key_${name}`)
    }
    assert.equal(await store.findSession(digestOf('a'), NOON + 100), null)
    await store.revokeKey('default', 'key_b', NOON, SYSTEM)
    assert.equal(await store.findSession(digestOf('b'), NOON), null)
    assert.equal(await open(store, 'late', 'key_b'), null)
  })

  test('reusing a former bootstrap key does not restore its sessions', async ({ store }) => {
    const first = await addAdmin(store, 'first', true)
    await open(store, 's', first)
    await addAdmin(store, 'second', true)
    assert.equal(await addAdmin(store, 'first', true), first)
    assert.equal(await store.findSession(digestOf('s'), NOON), null)
    assert.notEqual(await open(store, 'new', first), null)
  })

  test('expired sessions are deleted, and beyond the limit of an admin key, its oldest', async (subject) => {
    const { store, rows } = subject
    const [a, b] = [await addAdmin(store, 'a'), await addAdmin(store, 'b')]
    await open(store, 'old', b)
    for (const [i, name] of ['one', 'two', 'three'].entries()) await open(store, name, a, NOON + i, 2)
    assert.equal(await store.findSession(digestOf('one'), NOON), null)
    assert.notEqual(await store.findSession(digestOf('two'), NOON), null)
    assert.notEqual(await store.findSession(digestOf('three'), NOON), null)
    assert.equal((await rows('session')).length, 3)
    await open(store, 'new', b, NOON + HOUR_MS)
    assert.equal((await rows('session')).length, 3)
  })
}
