import assert from 'node:assert/strict'
import type { PersonToCheck } from '../../../src/keys/person-store.ts'
import type { Store } from '../../../src/store/store.ts'
import { ask, NOON, type OpenStoreUnderTest } from './fixtures.ts'
import { addPerson, createKey, DAY_MS, personOf } from './person-fixtures.ts'
import { promisesOf } from './promise.ts'

const TOKEN = Buffer.from('sealed')
const HOUR_MS = 3_600_000

export function personCheckConformance(storeName: string, openStore: OpenStoreUnderTest): void {
  const test = promisesOf(storeName, openStore)

  /** Claims the person who is due, whom the provider then confirms. */
  const due = async (store: Store, node: string, atMs: number) => {
    const claimed = await store.claimDueCheck(node, atMs)
    if (claimed.kind !== 'person') return claimed.kind
    await store.confirmPerson(claimed.person, 'member', null, atMs)
    return claimed.person.id
  }

  test('each person with a key is due once a day, at a time of its own, and one node claims', async (subject) => {
    const { store } = subject
    const names = ['R00000', 'G00000', 'Z00000', 'keyless', 'tokenless']
    for (const name of names)
      await addPerson(store, name, { refreshToken: name === 'tokenless' ? null : TOKEN })
    for (const name of names.filter((each) => each !== 'keyless')) await createKey(store, name, `per_${name}`)
    assert.equal(await due(store, 'a', NOON), 'nobody')
    const evening = NOON + DAY_MS / 4
    assert.equal(await due(store, 'a', evening), 'per_R00000')
    assert.equal(await due(store, 'a', evening), 'nobody')
    const tomorrow = NOON + DAY_MS
    assert.equal(await due(store, 'a', tomorrow), 'per_Z00000')
    assert.equal(await due(store, 'b', tomorrow), 'nobody', 'the lease of another node')
    assert.equal(await due(store, 'b', tomorrow + 60_001), 'per_G00000', 'a node that stopped')
    assert.equal(await due(store, 'b', tomorrow + 60_001), 'nobody')
    assert.equal(await due(store, 'b', evening + DAY_MS), 'per_R00000')
  })

  test('whoever the provider did not answer for is due again in an hour, also if the node has stopped', async ({
    store,
  }) => {
    await addPerson(store, 'G00000', { refreshToken: TOKEN })
    await createKey(store, 'G00000', 'per_G00000')
    const tomorrow = NOON + DAY_MS
    const claimed = await store.claimDueCheck('a', tomorrow)
    assert.equal(claimed.kind, 'person')
    assert.equal(await due(store, 'a', tomorrow + HOUR_MS - 1), 'nobody')
    assert.equal(await due(store, 'b', tomorrow + HOUR_MS), 'per_G00000')
    assert.equal(await due(store, 'b', tomorrow + 2 * HOUR_MS), 'nobody')
  })

  async function claim(store: Store, sinceMs: number, atMs = NOON + 1_000): Promise<PersonToCheck | null> {
    return await store.claimCheck('per_ada', sinceMs, atMs)
  }

  test('a check is claimed once, and a new refresh token takes the place of the one that was asked with', async (subject) => {
    const { store } = subject
    await addPerson(store, 'ada', { refreshToken: TOKEN })
    assert.equal(await claim(store, NOON - 1), null, 'asked since')
    const claimed = (await claim(store, NOON)) ?? assert.fail()
    assert.deepEqual(
      { ...claimed, refreshToken: Buffer.from(claimed.refreshToken) },
      {
        ...{ id: 'per_ada', accountId: 'default', email: 'ada@example.com', role: 'member' },
        ...{ issuer: 'https://login.example', subject: 'sub ada', refreshToken: TOKEN },
      },
    )
    assert.equal(await claim(store, NOON), null)
    await store.confirmPerson(claimed, 'member', Buffer.from('next'), NOON)
    await store.confirmPerson(claimed, 'member', Buffer.from('too late'), NOON)
    const again = await claim(store, NOON + 1_000)
    assert.equal(String(again && Buffer.from(again.refreshToken)), 'next')
  })

  test('a checked role is stored by the system, but not over a sign-in since', async ({ store }) => {
    await addPerson(store, 'ada', { refreshToken: TOKEN })
    const asked = (await claim(store, NOON)) ?? assert.fail()
    await store.confirmPerson(asked, 'viewer', null, NOON)
    assert.equal((await personOf(store, 'ada')).role, 'viewer')
    await addPerson(store, 'ada', { refreshToken: Buffer.from('of a new sign-in') })
    await store.confirmPerson(asked, 'viewer', null, NOON)
    assert.equal((await personOf(store, 'ada')).role, 'member')
  })

  test('who left is blocked, but not whoever has signed in since the provider was asked', async ({
    store,
  }) => {
    await addPerson(store, 'ada', { refreshToken: TOKEN })
    await createKey(store, 'ada', 'per_ada')
    const asked = (await claim(store, NOON)) ?? assert.fail()
    await addPerson(store, 'ada', { refreshToken: Buffer.from('of a new sign-in') })
    assert.equal(await store.blockLeaver(asked, NOON), false)
    assert.equal(await ask(store, 'req_1', 'ada'), 'admitted')
    const now = (await claim(store, NOON + DAY_MS)) ?? assert.fail()
    assert.equal(await store.blockLeaver(now, NOON), true)
    assert.equal((await personOf(store, 'ada')).status, 'blocked')
    assert.equal(await ask(store, 'req_2', 'ada'), 'revoked_key')
    await store.confirmPerson(now, 'member', TOKEN, NOON)
    assert.equal(await claim(store, NOON + 9 * DAY_MS), null)
  })
}
