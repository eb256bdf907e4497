import assert from 'node:assert/strict'
import type { KeyPlace, KeySort, SortedKeys } from '../../../src/keys/key-store.ts'
import type { Store } from '../../../src/store/store.ts'
import { addKey, closing, NOON, type OpenStoreUnderTest, opening } from './fixtures.ts'
import { promisesOf } from './promise.ts'

const DAY_MS = 86_400_000
const ALL = { accountId: 'default', status: null, search: null, limit: 1_000, atMs: NOON, after: null }

async function namesBy(store: Store, sort: KeySort, more: object = {}): Promise<string[]> {
  return (await store.listSortedKeys({ ...ALL, sort, ...more })).rows.map(({ name }) => name)
}

/** The promises of every store about lists of keys that are not sorted by age. */
export function sortedKeyConformance(storeName: string, openStore: OpenStoreUnderTest): void {
  const promise = promisesOf(storeName, openStore)

  async function addAll(store: Store): Promise<void> {
    await addKey(store, 'revoked', { monthlyBudgetNanos: 1n })
    await store.revokeKey('default', 'key_revoked', NOON)
    await addKey(store, 'expired', { expiresAtMs: NOON })
    await addKey(store, 'Ends in a day', { expiresAtMs: NOON + DAY_MS })
    await addKey(store, 'ends in five', { expiresAtMs: NOON + 5 * DAY_MS })
    await addKey(store, 'ends later', { expiresAtMs: NOON + 50 * DAY_MS })
    // A call of the fixtures costs 800.
    for (const [name, cap] of [
      ['at-its-cap', 800n],
      ['at-89-percent', 900n],
      ['at-80-percent', 1_000n],
      ['at-40-percent', 2_000n],
      ['spends-without-cap', null],
    ] as const) {
      await addKey(store, name, { monthlyBudgetNanos: null })
      await store.admit(opening(`req_${name}`, name))
      await store.settle(closing(`req_${name}`))
      await store.updateKey('default', `key_${name}`, { monthlyBudgetNanos: cap }, NOON)
    }
  }

  promise('keys that need a look come first, and those that have ended last', async ({ store }) => {
    await addAll(store)
    const names = await namesBy(store, 'attention')
    assert.deepEqual(names.slice(0, 6), [
      ...['at-its-cap', 'at-89-percent', 'at-80-percent', 'Ends in a day', 'ends in five', 'at-40-percent'],
    ])
    assert.deepEqual(names.slice(6, 8).sort(), ['ends later', 'spends-without-cap'])
    assert.deepEqual(names.slice(8).sort(), ['expired', 'revoked'])
  })

  promise(
    'keys are sorted by name in any case, by what they spent and by their last use',
    async ({ store }) => {
      await addKey(store, 'beta')
      await addKey(store, 'Alpha')
      await addKey(store, 'ümlaut')
      await addKey(store, 'GAMMA')
      assert.deepEqual(await namesBy(store, 'name'), ['Alpha', 'beta', 'GAMMA', 'ümlaut'])
      await store.admit(opening('req_1', 'beta', { atMs: NOON + 2 }))
      await store.settle(closing('req_1'))
      await store.admit(opening('req_2', 'GAMMA', { atMs: NOON + 1 }))
      assert.deepEqual((await namesBy(store, 'spent')).slice(0, 1), ['beta'])
      assert.deepEqual((await namesBy(store, 'last_used')).slice(0, 2), ['beta', 'GAMMA'])
      assert.deepEqual(await namesBy(store, 'name', { search: 'AMM' }), ['GAMMA'])
      await store.revokeKey('default', 'key_GAMMA', NOON)
      assert.deepEqual(await namesBy(store, 'name', { status: 'usable' }), ['Alpha', 'beta', 'ümlaut'])
    },
  )

  promise('pages of a sorted list show every key once, in its order', async ({ store }) => {
    await addAll(store)
    for (const sort of ['name', 'spent', 'last_used', 'attention'] as const) {
      const whole = await namesBy(store, sort)
      assert.equal(whole.length, 10)
      const seen: string[] = []
      let after: KeyPlace | null = null
      do {
        const page: SortedKeys = await store.listSortedKeys({ ...ALL, sort, after, limit: 3 })
        seen.push(...page.rows.map(({ name }) => name))
        after = page.next
      } while (after !== null && seen.length < 20)
      assert.deepEqual(seen, whole, sort)
    }
  })
}
