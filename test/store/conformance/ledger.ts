import assert from 'node:assert/strict'
import { SYSTEM } from '../../../src/kernel/actor.ts'
import { CREDITED_MAX } from '../../../src/ledger/account.ts'
import type { CallClosing } from '../../../src/ledger/call.ts'
import {
  addCredit,
  addKey,
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

  test('admission places a hold on the key’s month and the account', async (subject) => {
    const admission = await subject.store.admit(opening('req_1', 'a'))
    assert.deepEqual(admission, {
      kind: 'admitted',
      keyId: 'key_a',
      budgetId: 'bud_a',
      accountId: 'default',
      logRequests: false,
      balanceNanos: 0n,
      hasOthers: false,
      terms: null,
    })
    assert.equal((await month(subject, 'key_a'))?.['held_nanos'], 1_000n)
    assert.equal((await subject.store.getBalance('default')).heldNanos, 1_000n)
    assert.equal((await subject.store.getCall('req_1'))?.state, 'in_flight')
  })

  test('a call without a hold changes no sum but leaves its record', async (subject) => {
    await subject.store.admit(opening('req_1', 'a', { hold: { kind: 'none' } }))
    assert.equal((await month(subject, 'key_a'))?.['month'], '')
    assert.equal((await subject.store.getCall('req_1'))?.state, 'in_flight')
  })

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
      store.chargeContainers(callId, ids, atMs)
    assert.equal(await charge('req_1', NOON, 'c2', 'c1'), 2)
    assert.equal(await charge('req_2', NOON + 19 * 60_000, 'c1', 'c3'), 1)
    assert.equal(await charge('req_1', NOON, 'c2', 'c1'), 2)
    assert.equal(await charge('req_3', NOON + 20 * 60_000, 'c1'), 1)
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

  test('settling charges the cost, frees the hold and adds to the day', async (subject) => {
    await subject.store.admit(opening('req_1', 'a'))
    const settled = await subject.store.settle(closing('req_1'))
    assert.deepEqual(settled, { balanceNanos: -800n, applied: true })
    assert.equal((await month(subject, 'key_a'))?.['held_nanos'], 0n)
    assert.equal((await month(subject, 'key_a'))?.['spent_nanos'], 800n)
    const [rollup] = await subject.rows('rollup')
    assert.equal(rollup?.['day'], '2026-11-15')
    assert.equal(rollup?.['requests'], 1n)
    assert.equal(rollup?.['cost_nanos'], 800n)
    assert.equal(rollup?.['list_nanos'], 1_000n)
    const call = await subject.store.getCall('req_1')
    assert.equal(call?.state, 'settled')
    assert.equal(call?.costNanos, 800n)
    assert.equal(call?.overrun, false)
  })

  test('settling a call again changes nothing and returns the same balance', async (subject) => {
    await subject.store.admit(opening('req_1', 'a'))
    await subject.store.settle(closing('req_1'))
    const again = await subject.store.settle(closing('req_1', { costNanos: 999_999n, listNanos: 999_999n }))
    assert.deepEqual(again, { balanceNanos: -800n, applied: false })
    assert.equal((await subject.store.getCall('req_1'))?.costNanos, 800n)
  })

  test('a released call costs nothing and does not count in the day', async (subject) => {
    await subject.store.admit(opening('req_1', 'a'))
    await subject.store.settle(closing('req_1', { state: 'released', costNanos: 0n, listNanos: 0n }))
    assert.equal((await month(subject, 'key_a'))?.['held_nanos'], 0n)
    assert.deepEqual(await subject.rows('rollup'), [])
    assert.equal((await subject.store.getCall('req_1'))?.state, 'released')
  })

  test('a cost above the hold is charged in full and flagged', async (subject) => {
    await subject.store.admit(opening('req_1', 'a'))
    await subject.store.settle(closing('req_1', { costNanos: 5_000n, listNanos: 5_000n }))
    assert.equal((await subject.store.getCall('req_1'))?.overrun, true)
    assert.equal((await month(subject, 'key_a'))?.['spent_nanos'], 5_000n)
  })

  test('a call counts in the month and day of its admission', async (subject) => {
    const lastMoment = Date.UTC(2026, 11, 1) - 1
    await subject.store.admit(opening('req_1', 'a', { atMs: lastMoment }))
    await subject.store.settle(closing('req_1', { atMs: lastMoment + 5_000 }))
    assert.equal((await month(subject, 'key_a'))?.['month'], '2026-11')
    assert.equal((await subject.rows('rollup'))[0]?.['day'], '2026-11-30')
  })

  test('an unknown, revoked or expired key is refused and nothing is held', async (subject) => {
    await addKey(subject.store, 'expired', { expiresAtMs: NOON })
    await subject.store.revokeKey('default', 'key_b', NOON, SYSTEM)
    const reasons = []
    for (const name of ['nobody', 'b', 'expired']) {
      const admission = await subject.store.admit(opening(`req_${name}`, name))
      reasons.push(admission.kind === 'refused' && admission.refusal.reason)
    }
    assert.deepEqual(reasons, ['unknown_key', 'revoked_key', 'expired_key'])
    assert.deepEqual(await subject.rows('call'), [])
  })

  test('an unratable call is refused always, never, or only once credit is enforced', async (subject) => {
    const unratable = (refuse: 'always' | 'limited' | 'never') =>
      ({ unratable: { reason: 'model_not_priced', refuse } }) as const
    const kindOf = async (id: string, refuse: 'always' | 'limited' | 'never') =>
      (await subject.store.admit(opening(id, 'a', unratable(refuse)))).kind
    assert.equal(await kindOf('req_1', 'always'), 'refused')
    assert.equal(await kindOf('req_2', 'limited'), 'admitted')
    assert.equal(await kindOf('req_3', 'never'), 'admitted')
    await addCredit(subject.store, 5_000n)
    assert.equal(await kindOf('req_4', 'limited'), 'refused')
    assert.equal(await kindOf('req_5', 'never'), 'admitted')
  })

  test('adding credit raises the balance and does not turn on enforcement', async (subject) => {
    assert.equal((await subject.store.getBalance('default')).creditEnforced, false)
    const credit = {
      ...{ id: 'crd_1', accountId: 'default', amountNanos: 10_000n, reason: 'top-up' },
      ...{ actor: SYSTEM, atMs: NOON },
    }
    assert.deepEqual(await subject.store.addCredit(credit, null), {
      kind: 'done',
      value: { ...credit, kind: 'top_up', balanceAfterNanos: 10_000n },
    })
    const balance = { creditedNanos: 10_000n, chargedNanos: 0n, heldNanos: 0n, creditEnforced: false }
    assert.deepEqual(await subject.store.getBalance('default'), balance)
    await subject.store.admit(opening('req_1', 'a'))
    assert.equal((await subject.store.settle(closing('req_1'))).balanceNanos, 9_200n)
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

  test('open calls of a dead process are interrupted: free, not in the day, with their possible loss', async (subject) => {
    await subject.store.admit(opening('req_1', 'a'))
    await subject.store.admit(opening('req_2', 'b'))
    await subject.store.settle(closing('req_2'))
    assert.equal(await subject.store.interruptOpenCalls(NOON + 9_000), 1)
    const call = await subject.store.getCall('req_1')
    assert.equal(call?.state, 'interrupted')
    assert.equal(call?.costNanos, 0n)
    assert.equal(call?.lostListNanos, 1_250n)
    assert.equal((await month(subject, 'key_a'))?.['held_nanos'], 0n)
    assert.equal((await month(subject, 'key_a'))?.['lost_nanos'], 1_250n)
    assert.equal((await subject.rows('rollup')).length, 1)
    assert.equal(await subject.store.interruptOpenCalls(NOON + 9_001), 0)
  })

  test('the late settlement of an interrupted call is charged once and removes its loss', async (subject) => {
    await subject.store.admit(opening('req_1', 'a'))
    await subject.store.interruptOpenCalls(NOON + 9_000)
    assert.equal((await subject.store.settle(closing('req_1'))).applied, true)
    assert.equal((await subject.store.settle(closing('req_1'))).applied, false)
    assert.equal((await subject.store.getCall('req_1'))?.state, 'settled')
    assert.equal((await month(subject, 'key_a'))?.['spent_nanos'], 800n)
    assert.equal((await month(subject, 'key_a'))?.['lost_nanos'], 0n)
  })

  const LOST = { state: 'interrupted', status: null, usage: null, costNanos: 0n, listNanos: 0n } as const

  test('a call without any reply is interrupted: free, not in the day, with its possible loss', async (subject) => {
    await addCredit(subject.store, 10_000n)
    await subject.store.admit(opening('req_1', 'a'))
    const closed = await subject.store.settle(closing('req_1', LOST))
    assert.deepEqual(closed, { balanceNanos: 10_000n, applied: true })
    const call = await subject.store.getCall('req_1')
    assert.equal(call?.state, 'interrupted')
    assert.equal(call?.endedAtMs, NOON + 500)
    assert.deepEqual([call?.costNanos, call?.listNanos, call?.lostListNanos], [0n, 0n, 1_250n])
    assert.equal(call?.overrun, false)
    assert.equal((await month(subject, 'key_a'))?.['held_nanos'], 0n)
    assert.equal((await month(subject, 'key_a'))?.['spent_nanos'], 0n)
    assert.equal((await month(subject, 'key_a'))?.['lost_nanos'], 1_250n)
    assert.equal((await subject.store.getBalance('default')).heldNanos, 0n)
    assert.deepEqual(await subject.rows('rollup'), [])
    assert.equal(await subject.store.interruptOpenCalls(NOON + 9_000), 0)
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

  test('interrupting a call again does not lose its hold twice', async (subject) => {
    await addCredit(subject.store, 10_000n)
    for (const id of ['req_1', 'req_2']) await subject.store.admit(opening(id, 'a'))
    await subject.store.settle(closing('req_1', LOST))
    await subject.store.interruptOpenCalls(NOON + 9_000)
    await subject.store.admit(opening('req_3', 'a'))
    await subject.store.settle(closing('req_3', { costNanos: 700n, listNanos: 700n }))
    assert.deepEqual(await subject.store.settle(closing('req_1', LOST)), {
      balanceNanos: 10_000n,
      applied: false,
    })
    assert.deepEqual(await subject.store.settle(closing('req_2', LOST)), {
      balanceNanos: 10_000n,
      applied: false,
    })
    assert.equal((await month(subject, 'key_a'))?.['lost_nanos'], 2_500n)
    const again = closing('req_1', { costNanos: 300n, listNanos: 400n })
    assert.deepEqual(await subject.store.settle(again), { balanceNanos: 9_000n, applied: true })
    assert.equal((await subject.store.getCall('req_1'))?.state, 'settled')
    assert.equal((await subject.store.getCall('req_1'))?.lostListNanos, 0n)
    assert.equal((await month(subject, 'key_a'))?.['lost_nanos'], 1_250n)
    assert.deepEqual(await subject.store.settle(closing('req_1', LOST)), {
      balanceNanos: 9_000n,
      applied: false,
    })
  })

  test('of concurrent closings, the one with a cost counts', async (subject) => {
    for (const id of ['req_0', 'req_1']) await subject.store.admit(opening(id, 'a'))
    // The other two closings share a batch while the first is being written.
    await Promise.all([
      subject.store.settle(closing('req_0')),
      subject.store.settle(closing('req_1', LOST)),
      subject.store.settle(closing('req_1')),
    ])
    assert.equal((await subject.store.getCall('req_1'))?.state, 'settled')
    assert.equal((await month(subject, 'key_a'))?.['spent_nanos'], 1_600n)
    assert.equal((await month(subject, 'key_a'))?.['lost_nanos'], 0n)
  })

  test('of two concurrent costs, the first counts', async (subject) => {
    for (const id of ['req_0', 'req_1']) await subject.store.admit(opening(id, 'a'))
    const [, first, second] = await Promise.all([
      subject.store.settle(closing('req_0')),
      subject.store.settle(closing('req_1', { costNanos: 700n })),
      subject.store.settle(closing('req_1', { costNanos: 600n })),
    ])
    assert.deepEqual([first?.applied, second?.applied], [true, false])
    assert.equal((await subject.store.getCall('req_1'))?.costNanos, 700n)
  })

  test('interrupting a call without a hold loses nothing', async (subject) => {
    await subject.store.admit(opening('req_1', 'a', { hold: { kind: 'none' } }))
    assert.equal((await subject.store.settle(closing('req_1', LOST))).applied, true)
    assert.equal((await subject.store.getCall('req_1'))?.lostListNanos, 0n)
    assert.equal((await month(subject, 'key_a'))?.['month'], '')
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

  test('amounts beyond the range of doubles are exact', async (subject) => {
    const odd = 9_007_199_254_740_993n
    await subject.store.admit(opening('req_1', 'a', { hold: { kind: 'bound', nanos: odd, listNanos: odd } }))
    const settled = await subject.store.settle(closing('req_1', { costNanos: odd, listNanos: odd }))
    assert.equal(settled.balanceNanos, -odd)
    assert.equal((await subject.store.getCall('req_1'))?.costNanos, odd)
  })
}
