import assert from 'node:assert/strict'
import { SYSTEM } from '../../../src/kernel/actor.ts'
import type { CallOpening } from '../../../src/ledger/call.ts'
import type { Store } from '../../../src/store/store.ts'
import {
  addCredit,
  addKey,
  ask,
  capped,
  closing,
  costing,
  holding,
  NOON,
  type OpenStoreUnderTest,
  opening,
  type StoreUnderTest,
} from './fixtures.ts'
import { promisesOf } from './promise.ts'

export function capConformance(storeName: string, openStore: OpenStoreUnderTest): void {
  const promised = promisesOf(storeName, openStore)
  const test = (sentence: string, prove: (store: Store, subject: StoreUnderTest) => Promise<void>) =>
    promised(sentence, (subject) => prove(subject.store, subject))

  const resetsAtMs = Date.UTC(2026, 11, 1)

  test('a call waits, with figures, while holds use up the cap', async (store) => {
    await capped(store, 'a', 1_000n)
    await store.admit(opening('req_1', 'a', holding(400n)))
    await store.admit(opening('req_2', 'a', holding(600n)))
    assert.deepEqual(await store.admit(opening('req_3', 'a', holding(1n))), {
      kind: 'blocked',
      by: {
        limit: 'budget',
        budget: {
          ...{ scope: 'key', period: 'month' },
          ...{ spentNanos: 0n, heldNanos: 1_000n, capNanos: 1_000n, resetsAtMs },
        },
      },
      keyId: 'key_a',
      personId: null,
      budgetId: 'bud_a',
      accountId: 'default',
      balanceNanos: 0n,
    })
  })

  test('settling below the hold frees part of the cap', async (store) => {
    await capped(store, 'a', 1_000n)
    await store.admit(opening('req_1', 'a', holding(1_000n)))
    assert.equal(await ask(store, 'req_2', 'a', holding(1n)), 'held by budget')
    await store.settle(closing('req_1', costing(999n)))
    assert.equal(await ask(store, 'req_2', 'a', holding(1n)), 'admitted')
  })

  test('a spent cap refuses calls, with figures, whatever is in flight', async (store) => {
    await capped(store, 'a', 1_000n)
    await store.admit(opening('req_1', 'a', holding(900n)))
    await store.admit(opening('req_2', 'a', holding(500n)))
    await store.settle(closing('req_1', costing(1_000n)))
    assert.deepEqual(await store.admit(opening('req_3', 'a', holding(1n))), {
      kind: 'refused',
      refusal: {
        reason: 'budget_exceeded',
        budget: {
          ...{ scope: 'key', period: 'month' },
          ...{ spentNanos: 1_000n, heldNanos: 500n, capNanos: 1_000n, resetsAtMs },
        },
      },
      balanceNanos: -1_000n,
    })
  })

  test('a new month starts at 0, and calls in flight from the old month do not count in it', async (store, subject) => {
    await capped(store, 'a', 1_000n)
    await store.admit(opening('req_1', 'a', { ...holding(1_000n), atMs: resetsAtMs - 1 }))
    assert.equal(await ask(store, 'req_2', 'a', { ...holding(1n), atMs: resetsAtMs - 1 }), 'held by budget')
    assert.equal(await ask(store, 'req_3', 'a', { ...holding(1_000n), atMs: resetsAtMs }), 'admitted')
    await store.settle(closing('req_1', { ...costing(700n), atMs: resetsAtMs + 5 }))
    const rows = await subject.rows('budget')
    const months = rows.map((row) => [row['month'], row['spent_nanos'], row['held_nanos']])
    assert.deepEqual(months, [['2026-12', 0n, 1_000n]])
  })

  test('a changed or removed cap applies to the next admission', async (store) => {
    const id = await capped(store, 'a', 1_000n)
    const setCap = (monthlyBudgetNanos: bigint | null) =>
      store.updateKey('default', id, { monthlyBudgetNanos }, NOON, SYSTEM)
    await store.admit(opening('req_1', 'a', holding(600n)))
    await store.settle(closing('req_1', costing(600n)))
    await setCap(600n)
    assert.equal(await ask(store, 'req_2', 'a'), 'budget_exceeded')
    await setCap(601n)
    assert.equal(await ask(store, 'req_2', 'a', holding(5n)), 'admitted')
    assert.equal(await ask(store, 'req_3', 'a', holding(5n)), 'held by budget')
    await setCap(null)
    assert.equal(await ask(store, 'req_3', 'a', holding(5n)), 'admitted')
    assert.equal((await store.getKey('default', id, NOON))?.month.spentNanos, 600n)
  })

  const unbounded = { hold: { kind: 'unbounded' } } as const
  const usd = 1_000_000_000n

  test('an unbounded call holds the rest of its cap and leaves other credit free', async (store) => {
    await capped(store, 'a', 1_000n)
    await addCredit(store, 5_000n)
    assert.equal(await ask(store, 'req_1', 'a', unbounded), 'admitted')
    assert.equal((await store.getBalance('default')).heldNanos, 1_000n)
  })

  test('an unbounded call holds at most 100,000 USD of its cap and 25 USD of the account, and loses at most 25 USD', async (store) => {
    await capped(store, 'a', 300_000n * usd)
    assert.equal(await ask(store, 'req_1', 'a', unbounded), 'admitted')
    assert.equal((await store.getKey('default', 'key_a', NOON))?.month.heldNanos, 100_000n * usd)
    assert.equal((await store.getBalance('default')).heldNanos, 25n * usd)
    assert.equal(await store.interruptOpenCalls(NOON + 1), 1)
    assert.equal((await store.getCall('req_1'))?.lostListNanos, 25n * usd)
  })

  test('holds under the largest caps do not overflow, with calls in flight or after a crash', async (store) => {
    for (let i = 0; i < 12; i++) {
      await capped(store, `k${i}`, 1_000_000_000n * usd)
      assert.equal(await ask(store, `req_${i}`, `k${i}`, unbounded), 'admitted')
      assert.equal(await ask(store, `req_${i}b`, `k${i}`, unbounded), 'admitted')
    }
    assert.equal(await store.interruptOpenCalls(NOON + 1), 24)
    assert.equal((await store.getBalance('default')).heldNanos, 0n)
  })

  test('enforced credit acts as a cap over all keys', async (store) => {
    await addKey(store, 'a')
    await addKey(store, 'b')
    assert.equal(await ask(store, 'req_0', 'a', holding(9_000n)), 'admitted')
    await store.settle(closing('req_0', { state: 'released', ...costing(0n) }))
    await addCredit(store, 1_000n)
    assert.equal(await ask(store, 'req_1', 'a', holding(1_000n)), 'admitted')
    assert.equal(await ask(store, 'req_2', 'b', holding(1n)), 'held by credit')
    await store.settle(closing('req_1', costing(400n)))
    assert.equal(await ask(store, 'req_2', 'b', holding(600n)), 'admitted')
    await store.settle(closing('req_2', costing(700n)))
    assert.equal(await ask(store, 'req_3', 'a', holding(1n)), 'credit_exhausted')
    await addCredit(store, 101n)
    assert.equal(await ask(store, 'req_3', 'a', holding(1n)), 'admitted')
  })

  test('five hundred concurrent calls exceed the cap by at most one call', async (store) => {
    const id = await capped(store, 'a', 10_000n)
    const asked = Array.from({ length: 500 }, (_, i) => `req_${String(i).padStart(3, '0')}`)
    const costs = asked.map((_, i) => BigInt((i * 7_919) % 997))
    for (let round = 0, waiting = asked; waiting.length > 0 && round < 500; round++) {
      const admissions = await Promise.all(
        waiting.map((each) => store.admit(opening(each, 'a', holding(costs[asked.indexOf(each)] ?? 0n)))),
      )
      const admitted = waiting.filter((_, i) => admissions[i]?.kind === 'admitted')
      await Promise.all(
        admitted.map((each) => store.settle(closing(each, costing((costs[asked.indexOf(each)] ?? 0n) / 2n)))),
      )
      waiting = waiting.filter((_, i) => admissions[i]?.kind === 'blocked')
    }
    const spent = (await store.getKey('default', id, NOON))?.month.spentNanos ?? 0n
    assert.ok(spent >= 10_000n && spent < 10_000n + 997n, `${spent} spent of 10000`)
  })

  const named = (names: string[], more: Partial<CallOpening['models']> = {}): Partial<CallOpening> => ({
    models: { names, unknown: null, batchFile: null, ...more },
  })

  test('a changed allowlist applies to the next admission', async (store) => {
    const id = await addKey(store, 'a')
    assert.equal(await ask(store, 'req_1', 'a', named(['x'])), 'admitted')
    await store.updateKey('default', id, { allowedModels: ['y'] }, NOON, SYSTEM)
    assert.equal(await ask(store, 'req_2', 'a', named(['x'])), 'model_not_allowed')
    await store.updateKey('default', id, { allowedModels: null }, NOON, SYSTEM)
    assert.equal(await ask(store, 'req_2', 'a', named(['x'])), 'admitted')
  })

  test('a key with an allowlist may create a batch only from a file that it uploaded, with allowed models only', async (store) => {
    const allowedModels = ['gpt-6']
    const keyId = await addKey(store, 'a', { allowedModels })
    await addKey(store, 'b', { allowedModels })
    await addKey(store, 'c')
    const keep = (fileId: string, models: string[]) =>
      store.storeBatchFile({ accountId: 'default', keyId, fileId, models, bound: null, atMs: NOON })
    await keep('file_good', ['gpt-6'])
    await keep('file_bad', ['gpt-6', 'gpt-6-pro'])
    const from = (batchFile: string) => named([], { batchFile })
    assert.equal(await ask(store, 'req_1', 'a', from('file_good')), 'admitted')
    assert.equal(await ask(store, 'req_2', 'a', from('file_bad')), 'model_not_allowed')
    assert.equal(await ask(store, 'req_3', 'a', from('file_none')), 'batch_file_unknown')
    assert.equal(await ask(store, 'req_4', 'b', from('file_good')), 'batch_file_unknown')
    assert.equal(await ask(store, 'req_5', 'c', from('file_none')), 'admitted')
  })
}
