import assert from 'node:assert/strict'
import type { Idempotency } from '../../../src/kernel/idempotency.ts'
import { limits } from '../../../src/kernel/limits.ts'
import type { CreditBack } from '../../../src/ledger/ledger-store.ts'
import type { Store } from '../../../src/store/store.ts'
import {
  addCredit,
  addKey,
  closing,
  digestOf,
  doneValue,
  NOON,
  newKey,
  type OpenStoreUnderTest,
  opening,
  type StoreUnderTest,
} from './fixtures.ts'
import { promisesOf } from './promise.ts'

function back(ids: readonly string[], more: Partial<CreditBack> = {}): CreditBack {
  const calls = ids.map((requestId) => ({ requestId, creditId: `crd_back_${requestId}` }))
  return { accountId: 'default', calls, reason: 'stolen', atMs: NOON + 9_000, ...more }
}

function once(name: string, command: string, more: Partial<Idempotency> = {}): Idempotency {
  return { accountId: 'default', name, fingerprint: digestOf(command), atMs: NOON, ...more }
}

/** A call that has ended and cost so much. */
async function settle(store: Store, requestId: string, costNanos: bigint, keyName = 'a'): Promise<void> {
  await store.admit(opening(requestId, keyName))
  await store.settle(closing(requestId, { costNanos, listNanos: costNanos }))
}

const credited = (requestId: string, amountNanos: bigint) => ({
  kind: 'credited',
  requestId,
  creditId: `crd_back_${requestId}`,
  amountNanos,
})

/** The credited amount of every day is the sum of what the journal gave back for the day's calls. */
async function assertDaysCredited({ rows }: StoreUnderTest): Promise<void> {
  const credits = await rows('credit')
  const calls = await rows('call')
  for (const day of await rows('rollup')) {
    const ids = calls
      .filter((call) => call['day'] === day['day'] && call['key_id'] === day['key_id'])
      .filter((call) => (call['model_served'] ?? call['model_asked'] ?? '') === day['model'])
      .map((call) => call['id'])
    const due = credits
      .filter((credit) => ids.includes(credit['call_id']))
      .reduce((sum, credit) => sum + BigInt(String(credit['amount_nanos'])), 0n)
    assert.equal(day['credited_nanos'], due, `credited on ${day['day']}`)
  }
}

/** The promises of every store about calls that are credited back. Each store's test file calls this in one line. */
export function creditBackConformance(storeName: string, openStore: OpenStoreUnderTest): void {
  const promise = promisesOf(storeName, openStore)

  promise('what a call cost is given back as an entry, and the bill stays as it was', async (subject) => {
    const { store } = subject
    await addKey(store, 'a')
    await settle(store, 'req_1', 800n)
    const billed = await store.getCall('req_1')
    const month = await subject.rows('budget')

    const { calls, balance } = doneValue(await store.creditBack(back(['req_1']), null))
    assert.deepEqual(calls, [credited('req_1', 800n)])
    assert.deepEqual(balance, { creditedNanos: 800n, chargedNanos: 800n, heldNanos: 0n, enforced: false })
    assert.deepEqual(await store.getBalance('default'), balance)
    assert.deepEqual(
      (await subject.rows('credit')).map((row) => ({ ...row })),
      [
        {
          id: 'crd_back_req_1',
          account_id: 'default',
          kind: 'credit_back',
          amount_nanos: 800n,
          reason: 'stolen',
          call_id: 'req_1',
          once: 'credit_back',
          at_ms: BigInt(NOON + 9_000),
        },
      ],
    )
    assert.deepEqual(await store.getCall('req_1'), { ...billed, credited: true })
    assert.deepEqual(await subject.rows('budget'), month, 'what was spent was spent')
    await assertDaysCredited(subject)
  })

  promise('the day, model and key of each call shows what was given back for it', async (subject) => {
    const { store } = subject
    await addKey(store, 'a')
    await addKey(store, 'b')
    await settle(store, 'req_1', 100n)
    await settle(store, 'req_2', 20n, 'b')
    await store.admit(opening('req_3', 'a', { atMs: NOON + 86_400_000, modelAsked: 'gpt-6-luna' }))
    await store.settle(closing('req_3', { costNanos: 3n, modelServed: null }))
    await settle(store, 'req_4', 4_000n)
    doneValue(await store.creditBack(back(['req_3', 'req_2', 'req_1']), null))
    await assertDaysCredited(subject)
    const days = await subject.rows('rollup')
    const shown = days.map((day) =>
      [day['day'], day['model'], day['key_id'], day['credited_nanos']].join(' '),
    )
    assert.deepEqual(shown.sort(), [
      '2026-11-15 claude-haiku-5-5 key_a 100',
      '2026-11-15 claude-haiku-5-5 key_b 20',
      '2026-11-16 gpt-6-luna key_a 3',
    ])
  })

  promise('a call is credited once, by one command or by many at once', async (subject) => {
    const { store } = subject
    await addKey(store, 'a')
    await settle(store, 'req_1', 800n)
    const commands = Array.from({ length: 5 }, (_, i) => {
      const calls = [{ requestId: 'req_1', creditId: `crd_back_${i}` }]
      return store.creditBack(back([], { calls }), null)
    })
    const outcomes = (await Promise.all(commands)).map((result) => doneValue(result).calls[0]?.kind)
    assert.deepEqual(outcomes.sort(), [...Array(4).fill('already_credited'), 'credited'])
    assert.equal((await subject.rows('credit')).length, 1)

    await settle(store, 'req_2', 7n)
    const twice = doneValue(await store.creditBack(back(['req_2', 'req_2']), null))
    assert.deepEqual(twice.calls, [credited('req_2', 7n), { kind: 'already_credited', requestId: 'req_2' }])
    await assertDaysCredited(subject)
  })

  promise('each call has its own outcome, in the order asked', async (subject) => {
    const { store } = subject
    await subject.addAccount('other')
    await addKey(store, 'a')
    await store.createKey(newKey('stranger', { accountId: 'other' }), null)
    await settle(store, 'req_paid', 800n)
    await settle(store, 'req_before', 5n)
    await settle(store, 'req_free', 0n)
    await settle(store, 'req_theirs', 900n, 'stranger')
    await store.admit(opening('req_released', 'a'))
    await store.settle(closing('req_released', { state: 'released', costNanos: 0n, listNanos: 0n }))
    await store.admit(opening('req_interrupted', 'a'))
    await store.interruptOpenCalls(NOON + 1_000)
    await store.admit(opening('req_open', 'a'))
    await store.creditBack(back(['req_before']), null)

    const ids = ['req_none', 'req_before', 'req_free', 'req_released', 'req_interrupted', 'req_open']
    const { calls } = doneValue(await store.creditBack(back([...ids, 'req_paid', 'req_theirs']), null))
    assert.deepEqual(calls, [
      { kind: 'not_found', requestId: 'req_none' },
      { kind: 'already_credited', requestId: 'req_before' },
      { kind: 'nothing_to_credit', requestId: 'req_free' },
      { kind: 'nothing_to_credit', requestId: 'req_released' },
      { kind: 'nothing_to_credit', requestId: 'req_interrupted' },
      { kind: 'in_flight', requestId: 'req_open' },
      credited('req_paid', 800n),
      { kind: 'not_found', requestId: 'req_theirs' },
    ])
    assert.equal((await subject.rows('credit')).length, 2)
    const marked = (await subject.rows('call')).filter((call) => call['credited'] === 1n)
    assert.deepEqual(marked.map((call) => call['id']).sort(), ['req_before', 'req_paid'])
    await assertDaysCredited(subject)
  })

  promise('a call that was in flight or interrupted can be credited once it is settled', async (subject) => {
    const { store } = subject
    await addKey(store, 'a')
    await store.admit(opening('req_1', 'a'))
    await store.interruptOpenCalls(NOON + 1_000)
    await store.admit(opening('req_2', 'a'))
    await store.creditBack(back(['req_1', 'req_2']), null)
    await store.settle(closing('req_1', { costNanos: 30n }))
    await store.settle(closing('req_2', { costNanos: 40n }))
    const { calls } = doneValue(await store.creditBack(back(['req_1', 'req_2']), null))
    assert.deepEqual(calls, [credited('req_1', 30n), credited('req_2', 40n)])
    await assertDaysCredited(subject)
  })

  promise('giving back does not make credit count, and adds to it where it does', async ({ store }) => {
    await addKey(store, 'a')
    await settle(store, 'req_1', 800n)
    await store.creditBack(back(['req_1']), null)
    assert.equal((await store.getBalance('default')).enforced, false)
    await addCredit(store, 1_000n)
    await settle(store, 'req_2', 1_000n)
    const refused = await store.admit(opening('req_3', 'a'))
    assert.equal(refused.kind, 'refused')
    await store.creditBack(back(['req_2']), null)
    assert.equal((await store.admit(opening('req_4', 'a'))).kind, 'admitted')
  })

  promise('a command is done once per name, and repeated it says what it said at first', async (subject) => {
    const { store } = subject
    await addKey(store, 'a')
    await settle(store, 'req_1', 800n)
    await settle(store, 'req_2', 50n)
    await settle(store, 'req_free', 0n)
    await store.creditBack(back(['req_2']), null)
    await store.admit(opening('req_open', 'a'))
    const command = back(['req_1', 'req_2', 'req_free', 'req_open', 'req_none'])
    const first = await store.creditBack(command, once('n', 'back'))
    assert.equal(first.kind, 'done')
    await store.settle(closing('req_open', { costNanos: 9n }))
    await addCredit(store, 5n)

    // A repetition comes with new ids for entries, and writes no entries.
    const again = { ...command, calls: command.calls.map((call) => ({ ...call, creditId: 'crd_other' })) }
    const repeated = await store.creditBack(again, once('n', 'back', { atMs: NOON + 1 }))
    assert.equal(repeated.kind, 'repeated')
    assert.deepEqual(
      repeated.kind === 'repeated' && repeated.value.calls,
      first.kind === 'done' && first.value.calls,
    )
    assert.deepEqual(
      repeated.kind === 'repeated' && repeated.value.balance,
      await store.getBalance('default'),
      'the balance is that of now',
    )
    assert.equal((await subject.rows('credit')).length, 3)
  })

  promise(
    'a name that stands for something else is a conflict, and nothing is given back',
    async (subject) => {
      const { store } = subject
      await addKey(store, 'a')
      await settle(store, 'req_1', 800n)
      const topUp = { id: 'crd_top', accountId: 'default', amountNanos: 5n, reason: 'x', atMs: NOON }
      await store.addCredit(topUp, once('top-up', 'same'))
      await store.createKey(newKey('b'), once('key', 'same'))
      for (const name of ['top-up', 'key']) {
        assert.deepEqual(await store.creditBack(back(['req_1']), once(name, 'same')), { kind: 'conflict' })
        assert.deepEqual(await store.creditBack(back(['req_1']), once(name, 'other')), { kind: 'conflict' })
      }
      assert.equal((await subject.rows('credit')).length, 1)
      await store.creditBack(back(['req_1']), once('back', 'same'))
      const later = { ...topUp, id: 'crd_later' }
      assert.deepEqual(await store.addCredit(later, once('back', 'same')), { kind: 'conflict' })
      assert.deepEqual(await store.createKey(newKey('c'), once('back', 'same')), { kind: 'conflict' })
      for (const ids of [[], ['req_1', 'req_2']]) {
        assert.deepEqual(await store.creditBack(back(ids), once('back', 'same')), { kind: 'conflict' })
      }
    },
  )

  promise('if one entry cannot be written, none is', async (subject) => {
    const { store } = subject
    await addKey(store, 'a')
    await settle(store, 'req_1', 800n)
    await settle(store, 'req_2', 50n)
    const calls = ['req_1', 'req_2'].map((requestId) => ({ requestId, creditId: 'crd_same' }))
    await assert.rejects(store.creditBack(back([], { calls }), once('n', 'back')))
    assert.deepEqual(await subject.rows('credit'), [])
    assert.deepEqual(await subject.rows('idempotency'), [])
    assert.equal((await store.getCall('req_1'))?.credited, false)
    await assertDaysCredited(subject)
  })

  promise('as many calls as one command may name are given back together', async (subject) => {
    const { store } = subject
    await addKey(store, 'a')
    const ids = Array.from({ length: limits.creditBackCallsMax }, (_, i) => `req_${i}`)
    await Promise.all(ids.map((id) => store.admit(opening(id, 'a'))))
    await Promise.all(ids.map((id) => store.settle(closing(id, { costNanos: 3n }))))
    const first = await store.creditBack(back(ids), once('n', 'all'))
    const { calls, balance } = doneValue(first)
    assert.deepEqual(
      calls,
      ids.map((id) => credited(id, 3n)),
    )
    assert.equal(balance.creditedNanos, 3n * BigInt(ids.length))
    const again = await store.creditBack(back(ids), once('n', 'all'))
    assert.deepEqual(again, { kind: 'repeated', value: { calls, balance } })
    await assertDaysCredited(subject)
  })
}
