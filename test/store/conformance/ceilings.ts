import assert from 'node:assert/strict'
import { SYSTEM } from '../../../src/kernel/actor.ts'
import type { CallOpening } from '../../../src/ledger/call.ts'
import type { Store } from '../../../src/store/store.ts'
import {
  addKey,
  ask,
  capped,
  closing,
  costing,
  holding,
  NOON,
  newKey,
  type OpenStoreUnderTest,
  opening,
  type StoreUnderTest,
} from './fixtures.ts'
import { promisesOf } from './promise.ts'

/** Removes the rate limit of key a and spends its whole budget. */
function spendInsteadOfRate(store: Store): Promise<unknown> {
  const edit = { requestsPerMinute: null, monthlyBudgetNanos: 0n }
  return store.updateKey('default', 'key_a', edit, NOON, SYSTEM)
}

export function ceilingConformance(storeName: string, openStore: OpenStoreUnderTest): void {
  const promised = promisesOf(storeName, openStore)
  const test = (sentence: string, prove: (store: Store, subject: StoreUnderTest) => Promise<void>) =>
    promised(sentence, (subject) => prove(subject.store, subject))

  const rotated = (name: string) => {
    const { id, digest, prefix, last4 } = newKey(name)
    return { id, digest, prefix, last4 }
  }

  test('a daily ceiling applies beside the monthly one and resets each day', async (store) => {
    await addKey(store, 'a', { monthlyBudgetNanos: 5_000n, dailyBudgetNanos: 1_000n })
    const day = 86_400_000
    const over = async (requestId: string, atMs: number) => {
      const admission = await store.admit(opening(requestId, 'a', { ...holding(1n), atMs }))
      return admission.kind === 'refused' && 'budget' in admission.refusal
        ? admission.refusal.budget
        : admission.kind
    }
    await store.admit(opening('req_1', 'a', holding(1_200n)))
    assert.equal(await ask(store, 'req_2', 'a', holding(1n)), 'held by budget')
    await store.settle(closing('req_1', costing(1_200n)))
    assert.deepEqual(await over('req_2', NOON + 1), {
      ...{ scope: 'key', period: 'day', spentNanos: 1_200n, heldNanos: 0n, capNanos: 1_000n },
      resetsAtMs: NOON + day / 2,
    })
    assert.equal(await over('req_3', NOON + day), 'admitted')
    // A call counts on the day of its admission, however late it ends.
    await store.settle(closing('req_3', { ...costing(1_000n), atMs: NOON + 2 * day }))
    assert.equal(await over('req_4', NOON + 2 * day), 'admitted')
    // If the clock steps back, the current day continues.
    await store.settle(closing('req_4', { ...costing(1_000n), atMs: NOON + 2 * day }))
    assert.partialDeepStrictEqual(await over('req_5', NOON + day), { period: 'day', spentNanos: 1_000n })
  })

  test('a rate limit admits its number of requests per clock minute, and is checked before the budget', async (store) => {
    await addKey(store, 'a', { monthlyBudgetNanos: 1_000n, requestsPerMinute: 3 })
    const rotation = { ...rotated('b'), createdAtMs: NOON, oldExpiresAtMs: null }
    await store.rotateKey('default', 'key_a', rotation, null, SYSTEM)
    let asked = 0
    const askAs = (key: string, more: Partial<CallOpening> = {}) =>
      ask(store, `req_${asked++}`, key, { ...holding(100n), ...more })
    // Free calls, calls that upstream began, waiting calls and refused calls do not count.
    assert.equal(await askAs('a', { hold: { kind: 'none' }, isRequest: false }), 'admitted')
    assert.equal(await askAs('a', { hasBegun: true, isRequest: false }), 'admitted')
    assert.equal(await askAs('a', { ...holding(900n) }), 'admitted')
    assert.equal(await askAs('b'), 'held by budget')
    await store.updateKey('default', 'key_b', { monthlyBudgetNanos: 5_000n }, NOON, SYSTEM)
    assert.equal(await askAs('b'), 'admitted')
    assert.equal(await askAs('a'), 'admitted')
    for (const key of ['a', 'b']) {
      const { refusal } = (await store.admit(opening(`req_${key}`, key, { atMs: NOON + 59_001 }))) as {
        refusal: unknown
      }
      assert.partialDeepStrictEqual(refusal, { code: 'rate_limit_exceeded', retryAfterSeconds: 1 })
    }
    // A call that waited is checked again when it is admitted.
    assert.equal(await askAs('b', { hasWaited: true }), 'over_limit')
    assert.equal(await askAs('a', { hold: { kind: 'none' }, isRequest: false }), 'admitted')
    // If the clock steps back a little, the current minute continues.
    assert.equal(await askAs('a', { atMs: NOON + 60_000 }), 'admitted')
    assert.equal(await askAs('a', { atMs: NOON + 59_999 }), 'admitted')
    assert.equal(await askAs('a', { atMs: NOON + 60_001 }), 'admitted')
    assert.equal(await askAs('a', { atMs: NOON + 59_999 }), 'over_limit')
    await spendInsteadOfRate(store)
    assert.equal(await askAs('a', { atMs: NOON + 60_002 }), 'budget_exceeded')
  })

  test('a rate limit set within a minute counts the earlier requests of that minute', async (store) => {
    await addKey(store, 'a')
    assert.equal(await ask(store, 'req_1', 'a'), 'admitted')
    assert.equal(await ask(store, 'req_2', 'a'), 'admitted')
    await store.updateKey('default', 'key_a', { requestsPerMinute: 3 }, NOON, SYSTEM)
    assert.equal(await ask(store, 'req_3', 'a'), 'admitted')
    assert.equal(await ask(store, 'req_4', 'a'), 'over_limit')
  })

  test('a call with a standing hold is checked and counted, but holds nothing more', async (store) => {
    await addKey(store, 'a', { monthlyBudgetNanos: 1_000n, requestsPerMinute: 1 })
    await store.admit(opening('req_hold', 'a', { ...holding(1_000n), isRequest: false }))
    const take = (requestId: string) => ask(store, requestId, 'a', { ...holding(1_000n), isCheckOnly: true })
    assert.deepEqual([await take('req_1'), await take('req_2')], ['admitted', 'over_limit'])
    assert.equal(await store.getCall('req_1'), null)
    assert.equal((await store.getKey('default', 'key_a', NOON))?.month.heldNanos, 1_000n)
    await spendInsteadOfRate(store)
    assert.equal(await take('req_3'), 'budget_exceeded')
  })

  test('an account ceiling applies to the sum of its keys', async (store, subject) => {
    await addKey(store, 'a')
    await addKey(store, 'b')
    await subject.exec("UPDATE account SET monthly_budget_nanos = 1000 WHERE id = 'default'")
    await store.admit(opening('req_1', 'a', holding(1_000n)))
    assert.equal(await ask(store, 'req_2', 'b', holding(1n)), 'held by budget')
    await store.settle(closing('req_1', costing(1_000n)))
    const refused = await store.admit(opening('req_2', 'b', holding(1n)))
    assert.ok(refused.kind === 'refused' && refused.refusal.reason === 'budget_exceeded')
    assert.deepEqual([refused.refusal.budget.scope, refused.refusal.budget.spentNanos], ['account', 1_000n])
  })

  test('the mode of a budget overrides that of the installation', async (store) => {
    await capped(store, 'a', 1_000n)
    const setMode = (budgetMode: 'exact' | 'settled') =>
      store.updateKey('default', 'key_a', { budgetMode }, NOON, SYSTEM)
    await store.admit(opening('req_1', 'a', holding(1_000n)))
    await setMode('settled')
    assert.equal(await ask(store, 'req_2', 'a', holding(1n)), 'admitted')
    await setMode('exact')
    assert.equal(await ask(store, 'req_3', 'a', { ...holding(1n), countsHolds: false }), 'held by budget')
  })
}
