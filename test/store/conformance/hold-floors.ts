import assert from 'node:assert/strict'
import type { CallOpening } from '../../../src/ledger/call.ts'
import { HOLD_FLOORS_MAX } from '../../../src/store/operations/settlement.ts'
import { addKey, closing, NOON, type OpenStoreUnderTest, opening, type StoreUnderTest } from './fixtures.ts'
import { promisesOf } from './promise.ts'

export function holdFloorConformance(storeName: string, openStore: OpenStoreUnderTest): void {
  const test = promisesOf(storeName, openStore)
  let calls = 0

  async function admit(
    { store }: StoreUnderTest,
    key: string,
    more: Partial<CallOpening> = {},
  ): Promise<string> {
    calls += 1
    const id = `req_${String(calls).padStart(6, '0')}`
    assert.equal((await store.admit(opening(id, key, more))).kind, 'admitted')
    return id
  }

  async function holdOf(subject: StoreUnderTest, id: string): Promise<readonly unknown[]> {
    const row = (await subject.rows('call')).find((call) => call['id'] === id)
    return [row?.['hold_nanos'], row?.['hold_list_nanos']]
  }

  /** The hold of the next such call, which is released. */
  async function nextHold(subject: StoreUnderTest, key: string, more: Partial<CallOpening> = {}) {
    const id = await admit(subject, key, more)
    await subject.store.settle(closing(id, { state: 'released', costNanos: 0n, listNanos: 0n }))
    return await holdOf(subject, id)
  }

  async function overrun(
    subject: StoreUnderTest,
    key: string,
    costNanos: bigint,
    more: Partial<CallOpening> = {},
  ): Promise<void> {
    const id = await admit(subject, key, more)
    await subject.store.settle(closing(id, { costNanos, listNanos: costNanos + 1_000n }))
    assert.equal((await subject.store.getCall(id))?.overrun, true)
  }

  const OWN = [1_000n, 1_250n]

  test('after an overrun, later holds are at least the largest cost', async (subject) => {
    await addKey(subject.store, 'a')
    const [first, second, third] = await Promise.all(['a', 'a', 'a'].map((key) => admit(subject, key)))
    await subject.store.settle(closing(first ?? '', { costNanos: 900n, listNanos: 1_100n }))
    assert.deepEqual(await nextHold(subject, 'a'), OWN)
    await subject.store.settle(closing(second ?? '', { costNanos: 5_000n, listNanos: 5_500n }))
    // The third call was admitted before the floor existed, and its cost is not the largest.
    await subject.store.settle(closing(third ?? '', { costNanos: 4_000n, listNanos: 7_000n }))
    assert.deepEqual(await nextHold(subject, 'a'), [5_000n, 7_000n])
    await overrun(subject, 'a', 6_000n)
    assert.deepEqual(await nextHold(subject, 'a'), [6_000n, 7_000n])
  })

  test('a hold floor applies to one key, endpoint and model', async (subject) => {
    await addKey(subject.store, 'a')
    await addKey(subject.store, 'b')
    await overrun(subject, 'a', 5_000n)
    await overrun(subject, 'a', 3_000n, {
      endpoint: '/v1/responses',
      path: '/v1/responses',
      modelAsked: null,
    })
    assert.deepEqual(await nextHold(subject, 'b'), OWN)
    assert.deepEqual(await nextHold(subject, 'a', { modelAsked: 'claude-opus-5' }), OWN)
    assert.deepEqual(await nextHold(subject, 'a', { modelAsked: null }), OWN)
    assert.deepEqual(await nextHold(subject, 'a', { endpoint: '/v1/complete' }), OWN)
    // The endpoint is the template, not the path.
    assert.deepEqual(await nextHold(subject, 'a', { path: '/v1/other' }), [5_000n, 6_000n])
    const elsewhere = { endpoint: '/v1/responses', modelAsked: null }
    assert.deepEqual(await nextHold(subject, 'a', elsewhere), [3_000n, 4_000n])
  })

  test('a hold floor expires at the end of the month', async (subject) => {
    await addKey(subject.store, 'a')
    const lastMs = Date.UTC(2026, 11, 1) - 1
    await overrun(subject, 'a', 5_000n)
    assert.deepEqual(await nextHold(subject, 'a', { atMs: lastMs }), [5_000n, 6_000n])
    const late = await admit(subject, 'a', { atMs: lastMs, modelAsked: 'late' })
    assert.deepEqual(await nextHold(subject, 'a', { atMs: lastMs + 1 }), OWN)
    // A call of the old month that ends in the new month raises no floor in the new month.
    await subject.store.settle(closing(late, { atMs: lastMs + 9_000, costNanos: 7_000n, listNanos: 7_000n }))
    assert.deepEqual(await nextHold(subject, 'a', { atMs: lastMs + 1, modelAsked: 'late' }), OWN)
  })

  test('a hold floor expires even if the month begins within a batch', async (subject) => {
    await addKey(subject.store, 'a')
    await overrun(subject, 'a', 5_000n)
    // The last two calls share a batch, in which the clock steps back.
    const admitted = [NOON, Date.UTC(2026, 11, 1), NOON].map((atMs) => admit(subject, 'a', { atMs }))
    const [, , last] = await Promise.all(admitted)
    assert.deepEqual(await holdOf(subject, last ?? ''), OWN)
  })

  test('a hold floor does not change larger bounds, free calls or unbounded calls', async (subject) => {
    await addKey(subject.store, 'a', { monthlyBudgetNanos: 20_000n })
    await overrun(subject, 'a', 5_000n)
    const large = { kind: 'bound', nanos: 5_001n, listNanos: 10n } as const
    assert.deepEqual(await nextHold(subject, 'a', { hold: large }), [5_001n, 6_000n])
    assert.deepEqual(await nextHold(subject, 'a', { hold: { kind: 'none' } }), [0n, 0n])
    assert.deepEqual(await nextHold(subject, 'a', { hold: { kind: 'unbounded' } }), [15_000n, 15_000n])
    assert.deepEqual(await nextHold(subject, 'a', { countsHolds: false }), [5_000n, 6_000n])
  })

  test('a hold floor limits concurrent calls under a cap', async (subject) => {
    await addKey(subject.store, 'a', { monthlyBudgetNanos: 20_000n })
    await overrun(subject, 'a', 5_000n)
    const asked = Array.from({ length: 8 }, (_, i) => subject.store.admit(opening(`req_burst_${i}`, 'a')))
    const kinds = (await Promise.all(asked)).map(({ kind }) => kind)
    assert.deepEqual(kinds.toSorted(), [
      ...['admitted', 'admitted', 'admitted', 'blocked', 'blocked', 'blocked', 'blocked', 'blocked'],
    ])
  })

  test('the late settlement of an interrupted call raises the hold floor', async (subject) => {
    await addKey(subject.store, 'a')
    const id = await admit(subject, 'a')
    await subject.store.interruptOpenCalls(NOON + 9_000)
    assert.deepEqual(await nextHold(subject, 'a'), OWN)
    await subject.store.settle(closing(id, { costNanos: 5_000n, listNanos: 5_000n }))
    assert.deepEqual(await nextHold(subject, 'a'), [5_000n, 5_000n])
  })

  test('a cost above the maximum hold raises the floor to that maximum', async (subject) => {
    await addKey(subject.store, 'a')
    await overrun(subject, 'a', 999_999_999_999_999n)
    assert.deepEqual(await nextHold(subject, 'a'), [100_000_000_000_000n, 100_000_000_000_000n])
  })

  test('beyond the maximum number of hold floors, further endpoints and models of a key share one', async (subject) => {
    await addKey(subject.store, 'a')
    await addKey(subject.store, 'b')
    const models = Array.from({ length: HOLD_FLOORS_MAX }, (_, i) => i)
    await Promise.all(
      models.map((i) => overrun(subject, 'a', BigInt(2_000 + i), { modelAsked: `model-${i}` })),
    )
    assert.deepEqual(await nextHold(subject, 'a', { modelAsked: 'new' }), OWN)
    await overrun(subject, 'a', 1_500n, { modelAsked: 'one-too-many' })
    await overrun(subject, 'a', 1_600n, { modelAsked: 'two-too-many' })
    assert.deepEqual(await nextHold(subject, 'a', { modelAsked: 'new' }), [1_600n, 2_600n])
    assert.deepEqual(await nextHold(subject, 'a', { modelAsked: 'model-1' }), [2_001n, 3_001n])
    await overrun(subject, 'a', 2_900n, { modelAsked: 'model-1' })
    assert.deepEqual(await nextHold(subject, 'a', { modelAsked: 'model-1' }), [2_900n, 3_900n])
    assert.deepEqual(await nextHold(subject, 'a', { modelAsked: 'one-too-many' }), [1_600n, 2_600n])
    assert.deepEqual(await nextHold(subject, 'b', { modelAsked: 'one-too-many' }), OWN)
    assert.equal((await subject.rows('hold_floor')).length, HOLD_FLOORS_MAX + 1)
  })
}
