import assert from 'node:assert/strict'
import { SYSTEM } from '../../../src/kernel/actor.ts'
import { CREDITED_MAX } from '../../../src/ledger/account.ts'
import type { CallClosing } from '../../../src/ledger/call.ts'
import { NOTHING_USED } from '../../../src/ledger/call-columns.ts'
import { assertConserved } from './conservation.ts'
import {
  addKey,
  ask,
  capped,
  closing,
  NOON,
  type OpenStoreUnderTest,
  opening,
  type StoreUnderTest,
} from './fixtures.ts'
import { promisesOf } from './promise.ts'

export function ledgerConformance(storeName: string, openStore: OpenStoreUnderTest): void {
  const promised = promisesOf(storeName, openStore)
  const test = (sentence: string, prove: (subject: StoreUnderTest) => Promise<void>) =>
    promised(sentence, async (subject) => {
      await addKey(subject.store, 'a')
      await addKey(subject.store, 'b')
      await prove(subject)
    })

  const month = async (subject: StoreUnderTest, keyId: string) =>
    (await subject.rows('budget')).find((row) => row['id'] === keyId.replace('key_', 'bud_'))

  test('a key was last used by its last call, open, closed or refused', async ({ store }) => {
    const usedAt = async (name: string) => (await store.getKey('default', `key_${name}`, NOON))?.lastUsedAtMs
    await store.admit(opening('req_1', 'a'))
    assert.equal(await usedAt('a'), NOON)
    await store.settle(closing('req_1'))
    await store.admit(opening('req_2', 'a', { atMs: NOON + 7 }))
    assert.equal(await usedAt('a'), NOON + 7)
    await store.settle(closing('req_2'))
    assert.equal(await usedAt('a'), NOON + 7)
    assert.equal(await usedAt('b'), null)
    const { atMs: startedAtMs, ...call } = opening('req_3', 'b')
    const refusal = { endedAtMs: NOON, status: 402, code: 'budget_exceeded', isUnpriced: false }
    await store.storeRefused([{ ...call, ...refusal, startedAtMs }])
    assert.equal(await usedAt('b'), NOON)
  })

  test('one call pays for a container for 20 minutes, however often it is billed', async ({ store }) => {
    const charge = (callId: string, atMs: number, ...ids: readonly string[]) =>
      store.chargeContainers({ callId, scope: '', ids }, atMs)
    assert.equal(await charge('req_1', NOON, 'c2', 'c1'), 2)
    assert.equal(await charge('req_2', NOON + 19 * 60_000, 'c1', 'c3'), 1)
    assert.equal(await charge('req_1', NOON, 'c2', 'c1'), 2)
    assert.equal(await charge('req_3', NOON + 20 * 60_000, 'c1'), 1)
    const own = { callId: 'req_4', scope: 'acct_b', ids: ['c1'] }
    assert.equal(await store.chargeContainers(own, NOON + 20 * 60_000), 1, 'another credential')
  })

  test('the cached share is of three complete calls of a model, of the latest 20 of the key', async ({
    store,
  }) => {
    let calls = 0
    const call = async (cached: number, keyName = 'a', more: Partial<CallClosing> = {}, modelAsked = 'm') => {
      const id = `req_${String(++calls).padStart(2, '0')}`
      await store.admit(opening(id, keyName, { modelAsked }))
      const part = { model: null, quantities: { cache_read_tokens: cached }, promptTokens: 100 }
      await store.settle(closing(id, { usage: JSON.stringify({ parts: [part] }), ...more }))
    }
    await call(10)
    for (const cached of [95, 80]) await call(cached)
    await call(0, 'a', { state: 'released', costNanos: 0n, listNanos: 0n })
    await call(0, 'a', { estimated: true })
    await call(0, 'b')
    await call(0, 'a', {}, 'other')
    assert.equal(await store.readCachedShare('key_a', 'm'), 0.1)
    await call(90)
    assert.equal(await store.readCachedShare('key_a', 'm'), 0.8)
    for (let other = 0; other < 18; other++) await call(0, 'a', {}, 'other')
    assert.equal(await store.readCachedShare('key_a', 'm'), 0, 'fewer than three are among the latest 20')
  })

  test('each account has a maximum credit, even with concurrent top-ups, and the sum of accounts has none', async ({
    store,
  }) => {
    const account = { id: 'acct_b', name: 'b', createdAtMs: NOON }
    await store.createAccount(account, SYSTEM, null)
    const half = (id: string, accountId: string) =>
      store.addCredit(
        { id, accountId, amountNanos: CREDITED_MAX / 2n, reason: 'r', actor: SYSTEM, atMs: NOON },
        null,
      )
    const kinds = await Promise.all(
      ['crd_1', 'crd_2', 'crd_3'].map(async (id) => (await half(id, 'default')).kind),
    )
    assert.deepEqual(kinds.sort(), ['done', 'done', 'too_much'])
    for (const id of ['crd_4', 'crd_5']) await half(id, 'acct_b')
    const { total } = await store.listAccounts({
      status: null,
      search: null,
      after: null,
      limit: 1,
      atMs: NOON,
    })
    assert.equal(total.balanceNanos, 2n * CREDITED_MAX)
  })

  test('a broken call is charged its cost, and the rest of its hold is lost', async (subject) => {
    for (const [id, more, lost] of [
      ['req_1', { losesRest: true }, 250n],
      ['req_2', {}, 0n],
      ['req_3', { losesRest: true, costNanos: 1_600n, listNanos: 2_000n }, 0n],
      ['req_4', { losesRest: true, state: 'released', costNanos: 0n, listNanos: 0n }, 0n],
    ] as const) {
      await subject.store.admit(opening(id, 'a'))
      await subject.store.settle(closing(id, more))
      assert.equal((await subject.store.getCall(id))?.lostListNanos, lost, id)
    }
    assert.equal((await month(subject, 'key_a'))?.['lost_nanos'], 250n)
    assert.equal((await month(subject, 'key_a'))?.['spent_nanos'], 3_200n)
    assert.equal((await month(subject, 'key_a'))?.['held_nanos'], 0n)
  })

  test('a used request id cannot open a second call', async (subject) => {
    await subject.store.admit(opening('req_1', 'a'))
    await assert.rejects(subject.store.admit(opening('req_1', 'a')))
    // Only that call fails: another call in the same batch is admitted.
    const [bad, good] = await Promise.allSettled([
      subject.store.admit(opening('req_1', 'a')),
      subject.store.admit(opening('req_2', 'a')),
    ])
    assert.equal(bad.status, 'rejected')
    assert.equal(good.status, 'fulfilled')
    assert.equal((await subject.store.getBalance('default')).heldNanos, 2_000n)
  })

  test('a settlement that is sent again because its answer was lost is applied once', async (subject) => {
    const { store } = subject
    const sent = async (times: number) =>
      await Promise.all(Array.from({ length: times }, () => store.settle(closing('req_1'))))
    await store.admit(opening('req_1', 'a'))
    // In the same batch, in a later one, and at the next start, without the answer of the admission.
    const answers = [...(await sent(2)), ...(await sent(1))]
    const owner = { accountId: 'default', budgetId: 'bud_a' }
    answers.push(await store.settle(closing('req_1', { owner, costNanos: 9n })))
    assert.equal(answers.filter(({ applied }) => applied).length, 1)
    assert.equal((await month(subject, 'key_a'))?.['spent_nanos'], 800n)
    assert.equal((await subject.rows('rollup'))[0]?.['requests'], 1n)
    // The call is closed, so it cannot be interrupted either.
    await store.settle(closing('req_1', { ...NOTHING_USED, state: 'interrupted' }))
    assert.equal((await store.getCall('req_1'))?.state, 'settled')
    await assertConserved(subject)
  })

  test('amounts beyond the range of doubles are exact', async (subject) => {
    const odd = 9_007_199_254_740_993n
    await subject.store.admit(opening('req_1', 'a', { hold: { kind: 'bound', nanos: odd, listNanos: odd } }))
    const settled = await subject.store.settle(closing('req_1', { costNanos: odd, listNanos: odd }))
    assert.equal(settled.balanceNanos, -odd)
    assert.equal((await subject.store.getCall('req_1'))?.costNanos, odd)
  })

  const unbounded = { hold: { kind: 'unbounded' } } as const
  const usd = 1_000_000_000n

  test('an unbounded call holds at most 100,000 USD of its cap and 25 USD of the account, and loses at most 25 USD', async ({
    store,
  }) => {
    await capped(store, 'c', 300_000n * usd)
    assert.equal(await ask(store, 'req_1', 'c', unbounded), 'admitted')
    assert.equal((await store.getKey('default', 'key_c', NOON))?.month.heldNanos, 100_000n * usd)
    assert.equal((await store.getBalance('default')).heldNanos, 25n * usd)
    assert.equal(await store.interruptOpenCalls(NOON + 1), 1)
    assert.equal((await store.getCall('req_1'))?.lostListNanos, 25n * usd)
  })

  test('holds under the largest caps do not overflow, with calls in flight or after a crash', async ({
    store,
  }) => {
    for (let i = 0; i < 12; i++) {
      await capped(store, `k${i}`, 1_000_000_000n * usd)
      assert.equal(await ask(store, `req_${i}`, `k${i}`, unbounded), 'admitted')
      assert.equal(await ask(store, `req_${i}b`, `k${i}`, unbounded), 'admitted')
    }
    assert.equal(await store.interruptOpenCalls(NOON + 1), 24)
    assert.equal((await store.getBalance('default')).heldNanos, 0n)
  })
}
