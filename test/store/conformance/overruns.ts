import assert from 'node:assert/strict'
import type { CallOpening } from '../../../src/ledger/call.ts'
import { addKey, closing, NOON, type OpenStoreUnderTest, opening, type StoreUnderTest } from './fixtures.ts'
import { promisesOf } from './promise.ts'

/** The surcharge on the holds of a budget, after a cost has exceeded its bound. */
export function overrunConformance(storeName: string, openStore: OpenStoreUnderTest): void {
  const test = promisesOf(storeName, openStore)
  let calls = 0

  async function admit({ store }: StoreUnderTest, key: string, more: Partial<CallOpening> = {}) {
    calls += 1
    const id = `req_${String(calls).padStart(6, '0')}`
    assert.equal((await store.admit(opening(id, key, more))).kind, 'admitted')
    return id
  }

  /** The hold of the next such call, which is released. */
  async function nextHold(subject: StoreUnderTest, key: string, more: Partial<CallOpening> = {}) {
    const id = await admit(subject, key, more)
    const call = await subject.store.getCall(id)
    await subject.store.settle(closing(id, { state: 'released', costNanos: 0n, listNanos: 0n }))
    return [call?.holdNanos, call?.holdListNanos]
  }

  async function settleAt(subject: StoreUnderTest, id: string, costNanos: bigint) {
    await subject.store.settle(closing(id, { costNanos, listNanos: costNanos }))
  }

  const OWN = [1_000n, 1_250n]

  test('after an overrun, the holds of the budget are larger by the largest difference', async (subject) => {
    await addKey(subject.store, 'a')
    await addKey(subject.store, 'b')
    const [first, second, third] = [
      await admit(subject, 'a'),
      await admit(subject, 'a'),
      await admit(subject, 'a'),
    ]
    await settleAt(subject, first, 1_000n)
    assert.deepEqual(await nextHold(subject, 'a'), OWN)
    await settleAt(subject, second, 1_500n)
    await settleAt(subject, third, 1_300n)
    assert.deepEqual(await nextHold(subject, 'a'), [1_500n, 1_750n])
    assert.deepEqual(await nextHold(subject, 'b'), OWN)
    // The difference is that from the bound, not from the larger hold.
    await settleAt(subject, await admit(subject, 'a'), 1_501n)
    assert.deepEqual(await nextHold(subject, 'a', { modelAsked: 'other' }), [1_501n, 1_751n])
  })

  test('an overrun counts until the month of its admission ends', async (subject) => {
    await addKey(subject.store, 'a')
    const nextMonth = { atMs: Date.UTC(2026, 11, 1) }
    await settleAt(subject, await admit(subject, 'a'), 1_500n)
    const late = await admit(subject, 'a')
    assert.deepEqual(await nextHold(subject, 'a', nextMonth), OWN)
    await settleAt(subject, late, 9_000n)
    assert.deepEqual(await nextHold(subject, 'a', nextMonth), OWN)
  })

  test('the surcharge is limited, and free and unbounded calls neither cause nor get one', async (subject) => {
    await addKey(subject.store, 'a')
    const none = { hold: { kind: 'none' } } as const
    const unbounded = { hold: { kind: 'unbounded' }, unboundedNanos: 400n } as const
    await settleAt(subject, await admit(subject, 'a', none), 9_000n)
    await settleAt(subject, await admit(subject, 'a', unbounded), 9_000n)
    assert.deepEqual(await nextHold(subject, 'a'), OWN)
    await settleAt(subject, await admit(subject, 'a'), 9_000n)
    assert.deepEqual(await nextHold(subject, 'a', { unboundedNanos: 400n }), [1_400n, 1_650n])
    assert.deepEqual(await nextHold(subject, 'a', none), [0n, 0n])
    assert.deepEqual(await nextHold(subject, 'a', unbounded), [400n, 400n])
  })

  test('what a batch needs under a cap ignores the surcharge', async (subject) => {
    await addKey(subject.store, 'a', { monthlyBudgetNanos: 20_000n })
    await settleAt(subject, await admit(subject, 'a'), 9_000n)
    const batch = {
      hold: { kind: 'bound', nanos: 10_000n, listNanos: 10_000n, neededNanos: 10_900n },
    } as const
    assert.deepEqual(await nextHold(subject, 'a', { ...batch, atMs: NOON }), [18_000n, 18_000n])
  })
}
