import assert from 'node:assert/strict'
import type { DeviceDecision, NewDevice } from '../../../src/keys/device-store.ts'
import type { Store } from '../../../src/store/store.ts'
import { ask, digestOf, holding, NOON, newKey, type OpenStoreUnderTest } from './fixtures.ts'
import { ADMIN, addPerson, DAY_MS, madeKey, personOf, rotate, typesOf } from './person-fixtures.ts'
import { promisesOf } from './promise.ts'

const HOUR_MS = 3_600_000
const LIFE = { usableMs: HOUR_MS, refreshableMs: 30 * DAY_MS }

export function deviceConformance(storeName: string, openStore: OpenStoreUnderTest): void {
  const test = promisesOf(storeName, openStore)

  const begin = (store: Store, name: string, atMs = NOON) =>
    store.createDeviceCode({
      ...{ digest: digestOf(`code ${name}`), userCode: `CODE ${name}`, client: `agent ${name}` },
      ...{ lifeMs: 600_000, atMs },
    })

  const decide = (store: Store, name: string, more: Partial<DeviceDecision> = {}) =>
    store.decideDevice({
      ...{ userCode: `CODE ${name}`, personId: 'per_ada', status: 'approved', atMs: NOON },
      ...more,
    })

  const redeem = (store: Store, name: string, atMs = NOON) => {
    const { id, prefix, last4, digest } = newKey(name)
    const device: NewDevice = { ...LIFE, id, prefix, last4, digest, atMs }
    return store.redeemDeviceCode(digestOf(`code ${name}`), device)
  }

  const kindOf = async (store: Store, name: string, atMs = NOON) => (await redeem(store, name, atMs)).kind

  async function signIn(store: Store, name: string, personId = 'per_ada'): Promise<void> {
    await begin(store, name)
    assert.equal(await decide(store, name, { personId }), `agent ${name}`)
    assert.equal(await kindOf(store, name), 'signed_in')
  }

  const refresh = (store: Store, name: string, atMs: number) =>
    store.refreshDevice(digestOf(name), { ...LIFE, atMs })

  test('an approved code becomes a key of the person, once', async ({ store }) => {
    await addPerson(store, 'ada')
    await store.updatePerson('default', 'per_ada', { monthlyBudgetNanos: 1_000n }, ADMIN, NOON)
    const other = await madeKey(store, 'other', 'per_ada')
    assert.equal(await begin(store, 'a'), true)
    assert.equal(await kindOf(store, 'a'), 'pending')
    assert.equal(await kindOf(store, 'a', NOON + 3_999), 'too_fast')
    assert.equal(await kindOf(store, 'a', NOON + 8_000), 'pending')
    assert.equal(await decide(store, 'a'), 'agent a')
    assert.deepEqual(await redeem(store, 'a'), { kind: 'signed_in', email: 'ada@example.com' })
    const key = (await store.getKey('default', 'key_a', NOON)) ?? assert.fail()
    assert.partialDeepStrictEqual(key, {
      ...{ personId: 'per_ada', budgetId: other.budgetId, name: 'agent a', expiresAtMs: NOON + HOUR_MS },
      deviceUntilMs: NOON + 30 * DAY_MS,
    })
    assert.equal(await ask(store, 'req_1', 'a', holding(1_000n)), 'admitted')
    assert.equal(await ask(store, 'req_2', 'other', holding(1n)), 'held by budget')
    assert.equal(await kindOf(store, 'a'), 'expired', 'used')
    assert.equal((await rotate(store, 'key_a', 'x', null)).kind, 'device')
    assert.deepEqual((await typesOf(store)).slice(-2), ['key.created', 'key.created'])
  })

  test('a code is decided once, ends after ten minutes, and no two are alike', async ({ store }) => {
    await addPerson(store, 'ada')
    await addPerson(store, 'eve')
    await begin(store, 'a')
    const alike = { digest: digestOf('x'), userCode: 'CODE a', client: '', lifeMs: 1, atMs: NOON }
    assert.equal(await store.createDeviceCode(alike), false)
    assert.equal(await decide(store, 'a', { status: 'denied' }), 'agent a')
    assert.equal(await decide(store, 'a', { personId: 'per_eve' }), null)
    assert.equal(await kindOf(store, 'a'), 'denied')
    assert.equal(await kindOf(store, 'a'), 'expired')
    await begin(store, 'late')
    assert.equal(await decide(store, 'late', { atMs: NOON + 600_000 }), null)
    assert.equal(await kindOf(store, 'late', NOON + 600_000), 'expired')
    assert.equal(await kindOf(store, 'unknown'), 'expired')
  })

  test('of two nodes that redeem a code at once, one gets the key', async ({ store }) => {
    await addPerson(store, 'ada')
    await begin(store, 'a')
    await decide(store, 'a')
    const { prefix, last4 } = newKey('a')
    const kinds = await Promise.all(
      ['k1', 'k2', 'k3'].map(async (name) => {
        const device = { ...LIFE, id: `key_${name}`, prefix, last4, digest: digestOf(name), atMs: NOON }
        return (await store.redeemDeviceCode(digestOf('code a'), device)).kind
      }),
    )
    assert.deepEqual(kinds.sort(), ['expired', 'expired', 'signed_in'])
    assert.equal((await personOf(store, 'ada')).keys, 1)
  })

  test('a person has ten devices, which do not count as keys: one more revokes the oldest', async (subject) => {
    const { store } = subject
    await store.updateMemberLimits('default', { keysMax: 1 }, ADMIN, NOON)
    await addPerson(store, 'ada')
    for (let n = 0; n < 10; n += 1) await signIn(store, `d${n}`)
    await madeKey(store, 'own', 'per_ada')
    await signIn(store, 'd_eleventh')
    assert.equal(await ask(store, 'req_0', 'd0'), 'revoked_key')
    for (const name of ['d1', 'd9', 'd_eleventh', 'own'])
      assert.equal(await ask(store, `req_${name}`, name), 'admitted')
  })

  test('a refresh makes an expired device usable again, until 30 days after the last one', async (subject) => {
    const { store } = subject
    await addPerson(store, 'ada')
    await signIn(store, 'a')
    const later = NOON + 29 * DAY_MS
    assert.equal(await ask(store, 'req_1', 'a', { atMs: later }), 'expired_key')
    assert.equal((await refresh(store, 'a', later))?.email, 'ada@example.com')
    assert.equal(await ask(store, 'req_2', 'a', { atMs: later + HOUR_MS - 1 }), 'admitted')
    assert.equal(await refresh(store, 'a', later + 30 * DAY_MS), null)
    await madeKey(store, 'own', 'per_ada')
    assert.equal(await refresh(store, 'own', NOON), null, 'an ordinary key stays as it is')
  })

  test('a revoked device stays revoked, even if it had expired', async ({ store }) => {
    await addPerson(store, 'ada')
    const names = ['by_itself', 'by_admin', 'by_block']
    for (const name of names) await signIn(store, name)
    const later = NOON + 2 * HOUR_MS
    const usable = {
      accountId: null,
      status: 'usable',
      search: null,
      after: null,
      limit: 9,
      atMs: later,
    } as const
    assert.equal((await store.listKeys(usable)).rows.length, 3)
    await store.revokeDevice(digestOf('by_itself'), later)
    await store.revokeKey('default', 'key_by_admin', later, ADMIN)
    await begin(store, 'approved')
    await decide(store, 'approved')
    await store.blockPerson('default', 'per_ada', ADMIN, later)
    await store.unblockPerson('default', 'per_ada', ADMIN, later)
    for (const name of names) assert.equal(await refresh(store, name, later), null, name)
    assert.equal(await kindOf(store, 'approved'), 'expired', 'approved before the block')
    await madeKey(store, 'own', 'per_ada')
    await store.revokeDevice(digestOf('own'), later)
    assert.equal(await ask(store, 'req_1', 'own'), 'admitted', 'not a device')
  })

  test('devices that sign in while the person is blocked do not survive', async ({ store }) => {
    await addPerson(store, 'ada')
    const names = Array.from({ length: 8 }, (_, n) => `d${n}`)
    for (const name of names) {
      await begin(store, name)
      await decide(store, name)
    }
    const work = names.map((name) => () => redeem(store, name))
    const block = () => store.blockPerson('default', 'per_ada', ADMIN, NOON)
    await Promise.all([...work.slice(0, 4), block, ...work.slice(4)].map((each) => each()))
    for (const name of names) {
      assert.equal(await refresh(store, name, NOON), null)
      assert.notEqual(await ask(store, `req_${name}`, name), 'admitted')
    }
  })

  test('expired codes are deleted, and the expiry of a device is no event', async ({ store }) => {
    await addPerson(store, 'ada')
    await signIn(store, 'a')
    for (let n = 0; n < 12; n += 1) await begin(store, `old${n}`, NOON - 600_000)
    await begin(store, 'new')
    await begin(store, 'newer')
    for (let n = 0; n < 12; n += 1) assert.equal(await begin(store, `old${n}`), true)
    await store.sweepEvents(NOON, null, 20)
    await store.sweepEvents(NOON + 2 * HOUR_MS, null, 20)
    assert.equal((await typesOf(store)).filter((type) => type.startsWith('key.expir')).length, 0)
  })
}
