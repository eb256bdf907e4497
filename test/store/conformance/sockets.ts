import assert from 'node:assert/strict'
import { SYSTEM } from '../../../src/kernel/actor.ts'
import { NOTHING_USED } from '../../../src/ledger/call-columns.ts'
import type { CallFilter, RefusedCall } from '../../../src/ledger/request-log.ts'
import type { Store } from '../../../src/store/store.ts'
import { addKey, closing, digestOf, NOON, type OpenStoreUnderTest, opening } from './fixtures.ts'
import { promisesOf } from './promise.ts'

const ALL: CallFilter = {
  ...{ accountId: 'default', keyId: null, fromMs: null, toMs: null, model: null, status: null },
  ...{ state: null, minCostNanos: null, flag: null },
}

const find = async (store: Store, filter: Partial<CallFilter>) =>
  (await store.listCalls({ ...ALL, ...filter }, null, 100)).calls.map(({ requestId }) => requestId)

/** A handshake that upstream has answered, and its turns, of which the last is running. */
async function addSocket(store: Store, key: string, socketId: string, turns: readonly string[]) {
  const handshake = { socketId, modelAsked: null, hold: { kind: 'none' } } as const
  await store.admit(opening(socketId, key, handshake))
  await store.settle(closing(socketId, { ...NOTHING_USED, status: 101 }))
  for (const [i, turn] of turns.entries()) {
    await store.admit(opening(turn, key, { socketId, atMs: NOON + 1 + i }))
    if (i < turns.length - 1) await store.settle(closing(turn))
  }
}

export function socketConformance(storeName: string, openStore: OpenStoreUnderTest): void {
  const test = promisesOf(storeName, openStore)

  test('the log of a socket lists its turns and its handshake, of one account and key', async ({
    store,
    addAccount,
  }) => {
    await addAccount('other')
    await addKey(store, 'a')
    await addKey(store, 'b')
    await addKey(store, 'c', { accountId: 'other' })
    await addSocket(store, 'a', 'req_1', ['req_2', 'req_3', 'req_4'])
    await addSocket(store, 'b', 'req_5', ['req_6'])
    await addSocket(store, 'c', 'req_7', ['req_8'])
    await store.admit(opening('req_9', 'a', { atMs: NOON + 9 }))
    assert.deepEqual(await find(store, { socketId: 'req_1' }), ['req_4', 'req_3', 'req_2', 'req_1'])
    assert.deepEqual(await find(store, { socketId: 'req_5' }), ['req_6', 'req_5'])
    assert.deepEqual(await find(store, { socketId: 'req_5', keyId: 'key_b' }), ['req_6', 'req_5'])
    for (const none of [{ keyId: 'key_a' }, { accountId: 'other' }, { model: 'another' }])
      assert.deepEqual(await find(store, { socketId: 'req_5', ...none }), [])
    for (const none of ['req_2', 'req_7', 'req_9', ''])
      assert.deepEqual(await find(store, { socketId: none }), [])
    assert.deepEqual(await find(store, { socketId: 'req_1', state: 'in_flight' }), ['req_4'])
    assert.deepEqual(await find(store, { socketId: 'req_1', fromMs: NOON + 2 }), ['req_4', 'req_3'])
    const found: string[] = []
    for (let after: string | null = null, more = true; more; more = after !== null) {
      const page = await store.listCalls({ ...ALL, socketId: 'req_1' }, after, 1)
      found.push(...page.calls.map(({ requestId }) => requestId))
      after = page.next
    }
    assert.deepEqual(found, ['req_4', 'req_3', 'req_2', 'req_1'])
    for (const id of ['req_1', 'req_2', 'req_4']) assert.equal((await store.getCall(id))?.socketId, 'req_1')
    assert.equal((await store.getCall('req_9'))?.socketId, null)
  })

  test('a turn counts in usage like any call, and a handshake in no sum', async ({ store, rows }) => {
    await addKey(store, 'a')
    await addSocket(store, 'a', 'req_1', ['req_2', 'req_3', 'req_4'])
    await store.settle(closing('req_4'))
    const { total } = await store.readUsage({
      ...{ accountId: 'default', keyId: null, startDay: '2026-11-01', endDay: '2026-11-30' },
      ...{ groupBy: [], after: null, limit: 10 },
    })
    assert.deepEqual([total.requests, total.costNanos], [3n, 2_400n])
    const overview = await store.readOverview({ accountId: 'default', atMs: NOON, listedMax: 5 })
    assert.equal(overview.requests, 3n)
    assert.deepEqual(
      (await rows('rollup')).map(({ model, requests }) => [model, Number(requests)]),
      [['claude-haiku-5-5', 3]],
    )
  })

  test('a handshake whose process died counts in no sum', async ({ store, rows }) => {
    await addKey(store, 'a')
    await store.admit(opening('req_1', 'a', { socketId: 'req_1', hold: { kind: 'none' } }))
    await store.interruptOpenCalls(NOON + 1_000)
    assert.equal((await store.settle(closing('req_1', { ...NOTHING_USED }))).applied, true)
    assert.deepEqual(await rows('rollup'), [])
    assert.equal((await store.getCall('req_1'))?.state, 'settled')
  })

  test('a standing hold is in the log only if a turn used it, or its process died', async ({ store }) => {
    await addKey(store, 'a')
    for (const id of ['req_1', 'req_2', 'req_3'])
      await store.admit(opening(id, 'a', { isStanding: true, isRequest: false }))
    assert.equal((await store.getKey('default', 'key_a', NOON))?.month.heldNanos, 3_000n)
    assert.deepEqual(await find(store, {}), [])
    await store.settle(closing('req_1', { ...NOTHING_USED, state: 'released' }))
    await store.settle(closing('req_2'))
    await store.interruptOpenCalls(NOON + 1_000)
    assert.deepEqual(await find(store, {}), ['req_3', 'req_2'])
    assert.equal(await store.getCall('req_1'), null)
  })

  test('a turn that upstream began is charged to its key, even if the key has been revoked', async ({
    store,
  }) => {
    await addKey(store, 'revoked')
    await addKey(store, 'expired', { expiresAtMs: NOON + 1 })
    await store.revokeKey('default', 'key_revoked', NOON, SYSTEM)
    for (const [at, key] of ['revoked', 'expired'].entries()) {
      const turn = { socketId: 'req_0', atMs: NOON + 2, hold: { kind: 'none' } } as const
      const refusal = { reason: `${key}_key` }
      const refused = await store.admit(opening(`req_1${at}`, key, turn))
      assert.deepEqual(refused, { kind: 'refused', refusal, balanceNanos: null })
      const admitted = await store.admit(opening(`req_2${at}`, key, { ...turn, hasBegun: true }))
      assert.equal(admitted.kind, 'admitted')
      await store.settle(closing(`req_2${at}`))
      assert.equal((await store.getKey('default', `key_${key}`, NOON + 2))?.month.spentNanos, 800n)
    }
    const unknown = await store.admit(opening('req_3', 'nobody', { hasBegun: true }))
    assert.equal(unknown.kind, 'refused')
  })

  test('a refused turn is found by its socket', async ({ store }) => {
    await addKey(store, 'a')
    await addSocket(store, 'a', 'req_1', ['req_2'])
    const refused: Omit<RefusedCall, 'requestId' | 'socketId'> = {
      ...{ digest: digestOf('a'), startedAtMs: NOON, endedAtMs: NOON, method: 'GET', path: '/v1/responses' },
      ...{ surface: 'chat', modelAsked: null, status: 402, code: 'budget_exceeded', clientIp: '::1' },
      userAgent: null,
      sessionId: null,
      isUnpriced: false,
    }
    await store.storeRefused([
      { ...refused, requestId: 'req_3', socketId: 'req_1' },
      { ...refused, requestId: 'req_4', socketId: null },
    ])
    const { calls } = await store.listCalls({ ...ALL, state: 'refused', socketId: 'req_1' }, null, 10)
    assert.deepEqual(calls, [await store.getCall('req_3')])
    assert.equal(calls[0]?.socketId, 'req_1')
    assert.deepEqual(await find(store, { state: 'refused', socketId: 'req_4' }), [])
  })
}
