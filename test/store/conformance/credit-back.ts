import assert from 'node:assert/strict'
import { SYSTEM } from '../../../src/kernel/actor.ts'
import type { Idempotency } from '../../../src/kernel/idempotency.ts'
import { limits } from '../../../src/kernel/limits.ts'
import type { CreditBack } from '../../../src/ledger/account.ts'
import type { Store } from '../../../src/store/store.ts'
import {
  addCredit,
  addKey,
  closing,
  creditBackOf,
  digestOf,
  doneValue,
  NOON,
  newKey,
  type OpenStoreUnderTest,
  opening,
  type StoreUnderTest,
} from './fixtures.ts'
import { promisesOf } from './promise.ts'

function back(requestIds: readonly string[], more: Partial<CreditBack> = {}): CreditBack {
  return { ...creditBackOf(requestIds), ...more }
}

function once(name: string, command: string, more: Partial<Idempotency> = {}): Idempotency {
  return { accountId: 'default', name, fingerprint: digestOf(command), atMs: NOON, ...more }
}

async function settle(store: Store, requestId: string, costNanos: bigint, keyName = 'a'): Promise<void> {
  await store.admit(opening(requestId, keyName))
  await store.settle(closing(requestId, { costNanos, listNanos: costNanos }))
}

async function assertDaysCredited({ rows }: StoreUnderTest): Promise<void> {
  const credits = await rows('credit_call')
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

export function creditBackConformance(storeName: string, openStore: OpenStoreUnderTest): void {
  const test = promisesOf(storeName, openStore)

  test('top-ups, corrections and credit-backs are listed with actor and balance, newest first', async (subject) => {
    const { store } = subject
    await subject.addAccount('other')
    await addKey(store, 'a')
    await settle(store, 'req_1', 800n)
    const actor = { kind: 'admin_key', id: 'adm_1', name: 'ops' } as const
    const move = (id: string, amountNanos: bigint, accountId = 'default') =>
      store.addCredit({ id, accountId, amountNanos, reason: 'x', actor, atMs: NOON }, null)
    await move('crd_1', 5_000n)
    await move('crd_2', -6_000n)
    await store.creditBack(back(['req_1'], { id: 'crd_3', actor }), null)
    await move('crd_4', 1n, 'other')
    const { rows, more } = await store.listCredits({ accountId: 'default', after: null, limit: 10 })
    assert.equal(more, false)
    assert.ok(rows.every((entry) => entry.accountId === 'default' && entry.actor.id === 'adm_1'))
    assert.deepEqual(
      rows.map(({ id, kind, amountNanos, balanceAfterNanos }) => [id, kind, amountNanos, balanceAfterNanos]),
      [
        ['crd_3', 'credit_back', 800n, -1_000n],
        ['crd_2', 'correction', -6_000n, -1_800n],
        ['crd_1', 'top_up', 5_000n, 4_200n],
      ],
    )
    const page = await store.listCredits({ accountId: null, after: 'crd_4', limit: 2 })
    assert.deepEqual([page.rows.map(({ id }) => id), page.more], [['crd_3', 'crd_2'], true])
    assert.equal((await store.getBalance('default')).creditEnforced, false)
    const events = (await subject.rows('event')).filter(({ type }) => type === 'credit.added')
    assert.equal(events.length, 4, 'each entry is an event')
  })

  test('crediting a call back returns its cost and leaves its bill unchanged', async (subject) => {
    const { store } = subject
    await addKey(store, 'a')
    await settle(store, 'req_1', 800n)
    const billed = await store.getCall('req_1')
    const month = await subject.rows('budget')
    const { entry, credited } = doneValue(await store.creditBack(back(['req_1']), null))
    assert.deepEqual([credited, entry.amountNanos, entry.balanceAfterNanos], [['req_1'], 800n, 0n])
    const balance = { creditedNanos: 800n, chargedNanos: 800n, heldNanos: 0n, creditEnforced: false }
    assert.deepEqual(await store.getBalance('default'), balance)
    assert.deepEqual(await store.getCall('req_1'), { ...billed, credited: true })
    assert.deepEqual(await subject.rows('budget'), month, 'recorded spend does not change')
    await assertDaysCredited(subject)
  })

  test('each day, model and key shows the amount credited for its calls', async (subject) => {
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
    const shown = (await subject.rows('rollup')).map((day) =>
      [day['day'], day['model'], day['key_id'], day['credited_nanos']].join(' '),
    )
    assert.deepEqual(shown.sort(), [
      '2026-11-15 claude-haiku-5-5 key_a 100',
      '2026-11-15 claude-haiku-5-5 key_b 20',
      '2026-11-16 gpt-6-luna key_a 3',
    ])
  })

  test('a call is credited once, by one command or many concurrent ones', async (subject) => {
    const { store } = subject
    await addKey(store, 'a')
    await settle(store, 'req_1', 800n)
    const results = await Promise.all(
      Array.from({ length: 5 }, () => store.creditBack(back(['req_1', 'req_1']), null)),
    )
    assert.deepEqual(results.map(({ kind }) => kind).sort(), ['done', ...Array(4).fill('nothing')])
    const again = await store.creditBack(back(['req_1']), null)
    assert.deepEqual(again, { kind: 'nothing', credited: [], alreadyCredited: ['req_1'], notCredited: [] })
    assert.equal((await subject.rows('credit')).length, 1)
    await assertDaysCredited(subject)
  })

  test('each call gets its own outcome, in request order', async (subject) => {
    const { store } = subject
    await subject.addAccount('other')
    await addKey(store, 'a')
    await store.createKey(newKey('stranger', { accountId: 'other' }), null, SYSTEM)
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
    const { entry, ...outcomes } = doneValue(
      await store.creditBack(back([...ids, 'req_paid', 'req_theirs']), null),
    )
    assert.equal(entry.amountNanos, 800n)
    assert.deepEqual(outcomes, {
      credited: ['req_paid'],
      alreadyCredited: ['req_before'],
      notCredited: [
        { requestId: 'req_none', why: 'not_found' },
        { requestId: 'req_free', why: 'nothing_to_credit' },
        { requestId: 'req_released', why: 'nothing_to_credit' },
        { requestId: 'req_interrupted', why: 'nothing_to_credit' },
        { requestId: 'req_open', why: 'in_flight' },
        { requestId: 'req_theirs', why: 'not_found' },
      ],
    })
    const marked = (await subject.rows('call')).filter((call) => call['credited'] === 1n)
    assert.deepEqual(marked.map((call) => call['id']).sort(), ['req_before', 'req_paid'])
    await assertDaysCredited(subject)
  })

  test('an interrupted or running call can be credited after it settles', async (subject) => {
    const { store } = subject
    await addKey(store, 'a')
    await store.admit(opening('req_1', 'a'))
    await store.interruptOpenCalls(NOON + 1_000)
    await store.admit(opening('req_2', 'a'))
    // A command that changed nothing does not use its name.
    const command = once('n', 'back')
    assert.equal((await store.creditBack(back(['req_1', 'req_2']), command)).kind, 'nothing')
    await store.settle(closing('req_1', { costNanos: 30n }))
    await store.settle(closing('req_2', { costNanos: 40n }))
    const { credited, entry } = doneValue(await store.creditBack(back(['req_1', 'req_2']), command))
    assert.deepEqual([credited, entry.amountNanos], [['req_1', 'req_2'], 70n])
    await assertDaysCredited(subject)
  })

  test('crediting back does not turn on enforcement, and adds to enforced credit', async ({ store }) => {
    await addKey(store, 'a')
    await settle(store, 'req_1', 800n)
    await store.creditBack(back(['req_1']), null)
    assert.equal((await store.getBalance('default')).creditEnforced, false)
    await addCredit(store, 1_000n)
    await settle(store, 'req_2', 1_000n)
    const refused = await store.admit(opening('req_3', 'a'))
    assert.equal(refused.kind, 'refused')
    await store.creditBack(back(['req_2']), null)
    assert.equal((await store.admit(opening('req_4', 'a'))).kind, 'admitted')
  })

  test('a credit-back runs once per name, and a repetition returns the same entry', async (subject) => {
    const { store } = subject
    await addKey(store, 'a')
    await settle(store, 'req_1', 800n)
    await settle(store, 'req_2', 50n)
    await settle(store, 'req_free', 0n)
    await store.creditBack(back(['req_2']), null)
    const ids = ['req_1', 'req_2', 'req_free', 'req_none']
    const value = doneValue(await store.creditBack(back(ids), once('n', 'back')))
    await addCredit(store, 5n)
    const repeated = await store.creditBack(back(ids), once('n', 'back', { atMs: NOON + 1 }))
    assert.deepEqual(repeated, { kind: 'repeated', value })
    assert.equal((await subject.rows('credit')).length, 3)
  })

  test('a name used by another command is a conflict, and nothing is credited', async (subject) => {
    const { store } = subject
    await addKey(store, 'a')
    await settle(store, 'req_1', 800n)
    const topUp = {
      id: 'crd_top',
      accountId: 'default',
      amountNanos: 5n,
      reason: 'x',
      actor: SYSTEM,
      atMs: NOON,
    }
    await store.addCredit(topUp, once('top-up', 'same'))
    await store.createKey(newKey('b'), once('key', 'same'), SYSTEM)
    for (const name of ['top-up', 'key']) {
      assert.deepEqual(await store.creditBack(back(['req_1']), once(name, 'same')), { kind: 'conflict' })
      assert.deepEqual(await store.creditBack(back(['req_1']), once(name, 'other')), { kind: 'conflict' })
    }
    assert.equal((await subject.rows('credit')).length, 1)
    await store.creditBack(back(['req_1']), once('back', 'same'))
    assert.deepEqual(await store.createKey(newKey('c'), once('back', 'same'), SYSTEM), { kind: 'conflict' })
  })

  test('if the ledger entry cannot be written, nothing is credited', async (subject) => {
    const { store } = subject
    await addKey(store, 'a')
    await settle(store, 'req_1', 800n)
    await settle(store, 'req_2', 50n)
    await store.creditBack(back(['req_1'], { id: 'crd_same' }), null)
    await assert.rejects(store.creditBack(back(['req_2'], { id: 'crd_same' }), once('n', 'back')))
    assert.deepEqual(await subject.rows('idempotency'), [])
    assert.equal((await store.getCall('req_2'))?.credited, false)
    await assertDaysCredited(subject)
  })

  test('the maximum number of calls per command is credited in one command', async (subject) => {
    const { store } = subject
    await addKey(store, 'a')
    const ids = Array.from({ length: limits.creditBackCallsMax }, (_, i) => `req_${i}`)
    await Promise.all(ids.map((id) => store.admit(opening(id, 'a'))))
    await Promise.all(ids.map((id) => store.settle(closing(id, { costNanos: 3n }))))
    const value = doneValue(await store.creditBack(back(ids), once('n', 'all')))
    assert.deepEqual(value.credited, ids)
    assert.equal(value.entry.amountNanos, 3n * BigInt(ids.length))
    assert.deepEqual(await store.creditBack(back(ids), once('n', 'all')), { kind: 'repeated', value })
    await assertDaysCredited(subject)
  })
}
