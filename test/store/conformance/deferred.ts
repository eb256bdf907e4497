import assert from 'node:assert/strict'
import { SYSTEM } from '../../../src/kernel/actor.ts'
import { NOTHING_USED } from '../../../src/ledger/call-columns.ts'
import type { Deferral } from '../../../src/ledger/deferred.ts'
import type { Store } from '../../../src/store/store.ts'
import { ALL_CALLS, addKey, closing, digestOf, NOON, type OpenStoreUnderTest, opening } from './fixtures.ts'
import { promisesOf } from './promise.ts'

const deferral = (requestId: string, more: Partial<Deferral> = {}): Deferral => ({
  ...{ requestId, surface: 'chat', scope: '', objectId: `resp_${requestId}`, kind: 'response' },
  ...{ dueInMs: 2_000, atMs: NOON + 100 },
  ...{ status: 200, streamed: false, upstreamMs: 90, overheadMs: 2, upstreamRequestId: 'req_up' },
  ...{ bytesIn: 10, bytesOut: 20 },
  ...more,
})

const nameOf = ({ surface, scope, objectId }: Deferral) => ({ surface, scope, objectId })

async function deferred(
  store: Store,
  requestId: string,
  more: Partial<Deferral> = {},
  key = 'a',
): Promise<Deferral> {
  await store.admit(opening(requestId, key, { surface: 'chat' }))
  const made = deferral(requestId, more)
  assert.equal(await store.deferCall(made), 'deferred')
  return made
}

const MOST = { max: 100, perKeyMax: 100, perAccountMax: 100 }

const claim = async (store: Store, atMs: number, most = MOST) =>
  (await store.claimDeferred(['messages', 'chat'], most, atMs)).map(({ objectId }) => objectId)

export function deferredConformance(storeName: string, openStore: OpenStoreUnderTest): void {
  const test = promisesOf(storeName, openStore)

  test('a deferred call keeps its hold until it settles, once', async ({ store }) => {
    await addKey(store, 'a')
    const made = await deferred(store, 'req_1')
    const record = await store.getCall('req_1')
    assert.deepEqual(
      [record?.state, record?.objectId, record?.status, record?.costNanos, record?.requestId],
      ['deferred', 'resp_req_1', 200, null, 'req_1'],
    )
    assert.equal((await store.getKey('default', 'key_a', NOON))?.month.heldNanos, 1_000n)
    assert.equal((await store.findDeferred(nameOf(made)))?.call.requestId, 'req_1')

    assert.equal((await store.settle(closing('req_1'))).applied, true)
    assert.equal((await store.settle(closing('req_1', { costNanos: 9n }))).applied, false)
    const month = (await store.getKey('default', 'key_a', NOON))?.month
    assert.deepEqual([month?.heldNanos, month?.spentNanos], [0n, 800n])
    assert.equal((await store.getCall('req_1'))?.state, 'settled')
    assert.equal(await store.findDeferred(nameOf(made)), null)
  })

  test('a closed call cannot be deferred', async ({ store }) => {
    await addKey(store, 'a')
    await store.admit(opening('req_1', 'a'))
    await store.settle(closing('req_1'))
    assert.equal(await store.deferCall(deferral('req_1')), 'closed')
    assert.equal(await store.countDeferred(), 0)
  })

  test('deferring a call again takes the earlier due time and the later figures', async ({ store }) => {
    await addKey(store, 'a')
    const made = await deferred(store, 'req_1', { dueInMs: 30_000 })
    assert.deepEqual(await claim(store, NOON + 3_000), [])
    assert.equal(await store.deferCall({ ...made, dueInMs: 2_000, bytesOut: 70 }), 'deferred')
    assert.equal((await store.getCall('req_1'))?.bytesOut, 70)
    // The statement that its stream has named it may be the slower one.
    assert.equal(await store.deferCall({ ...made, bytesOut: 70 }), 'deferred')
    assert.deepEqual(await claim(store, NOON + 3_000), [made.objectId])
  })

  test('a call interrupted with its node can still be deferred, and settles once', async ({ store }) => {
    await addKey(store, 'a')
    await store.admit(opening('req_1', 'a', { surface: 'chat' }))
    await store.interruptOpenCalls(NOON + 50)
    const made = deferral('req_1')
    assert.equal(await store.deferCall(made), 'deferred')
    assert.deepEqual(await claim(store, NOON + 4_000), [made.objectId])
    assert.equal((await store.findDeferred(nameOf(made)))?.call.requestId, 'req_1')
    assert.equal((await store.settle(closing('req_1'))).applied, true)
    const month = (await store.getKey('default', 'key_a', NOON))?.month
    assert.deepEqual([month?.heldNanos, month?.spentNanos, month?.lostNanos], [0n, 800n, 0n])
    assert.equal(await store.findDeferred(nameOf(made)), null)
    assert.deepEqual(await claim(store, NOON + 4_000), [])
  })

  test('an object that was given up is not polled', async ({ store }) => {
    await addKey(store, 'a')
    const made = await deferred(store, 'req_1')
    await store.settle({ ...NOTHING_USED, requestId: 'req_1', state: 'interrupted', atMs: NOON + 500 })
    assert.deepEqual(await claim(store, NOON + 4_000), [])
    assert.equal(await store.findDeferred(nameOf(made)), null)
    assert.equal(await store.makeDeferredDue('chat', made.objectId, digestOf('a')), false)
  })

  test('when a process ends, its open calls are interrupted and its deferred calls remain', async ({
    store,
  }) => {
    await addKey(store, 'a')
    await deferred(store, 'req_1')
    await store.admit(opening('req_2', 'a'))
    assert.equal(await store.interruptOpenCalls(NOON + 1_000), 1)
    assert.equal((await store.getCall('req_1'))?.state, 'deferred')
    assert.equal((await store.getCall('req_2'))?.state, 'interrupted')
    assert.equal((await store.settle(closing('req_1'))).applied, true)
  })

  test('a due object is claimed once until its poll or claim ends', async ({ store }) => {
    await addKey(store, 'a')
    const first = await deferred(store, 'req_1', { dueInMs: 3_000 })
    await deferred(store, 'req_2', { dueInMs: 2_000 })
    await deferred(store, 'req_3', { dueInMs: 90_000 })
    assert.deepEqual(await claim(store, NOON + 1_000), [])
    assert.deepEqual(await store.claimDeferred(['messages'], MOST, NOON + 4_000), [])
    const claims = await Promise.all([claim(store, NOON + 4_000), claim(store, NOON + 4_000)])
    assert.deepEqual(claims.flat(), ['resp_req_2', 'resp_req_1'])
    assert.equal(await store.claimDeferredObject(nameOf(first), NOON + 4_000), false)
    await store.postponeDeferred(nameOf(first), 10_000, NOON + 5_000)
    assert.equal(await store.claimDeferredObject(nameOf(first), NOON + 5_000), true)
    await store.postponeDeferred(nameOf(first), 10_000, NOON + 5_000)
    assert.deepEqual(await claim(store, NOON + 14_000), [])
    assert.deepEqual(await claim(store, NOON + 16_000), ['resp_req_1'])
    // Claims of a node that died before its polls expire.
    assert.deepEqual(await claim(store, NOON + 120_000), ['resp_req_2', 'resp_req_1', 'resp_req_3'])
  })

  test('objects are claimed in turn by key, up to a maximum per key', async ({ store }) => {
    await addKey(store, 'a')
    await addKey(store, 'b')
    for (let i = 1; i <= 4; i++) await deferred(store, `req_${i}`, { dueInMs: 1_000 + i })
    await deferred(store, 'req_b1', { dueInMs: 2_000 }, 'b')
    await deferred(store, 'req_b2', { dueInMs: 2_001 }, 'b')
    const most = { max: 3, perKeyMax: 3, perAccountMax: 9 }
    const after = NOON + 9_000
    assert.deepEqual(await claim(store, after, most), ['resp_req_1', 'resp_req_b1', 'resp_req_2'])
    assert.deepEqual(await claim(store, after, most), ['resp_req_b2', 'resp_req_3'])
    assert.deepEqual(await claim(store, after, most), [])
    // An object moves to the front of its key's polls and is claimed when another poll has ended.
    assert.equal(await store.makeDeferredDue('chat', 'resp_req_4', digestOf('a')), true)
    await store.postponeDeferred({ surface: 'chat', scope: '', objectId: 'resp_req_1' }, 0, after)
    assert.deepEqual(await claim(store, after, most), ['resp_req_4'])
  })

  test('an account claims at most its share of polls, in turn by key', async ({ store }) => {
    const createdAtMs = NOON
    await store.createAccount({ id: 'acct_b', name: 'b', createdAtMs }, SYSTEM, null)
    for (const name of ['a', 'c']) await addKey(store, name)
    await addKey(store, 'b', { accountId: 'acct_b' })
    for (let i = 1; i <= 5; i++) await deferred(store, `req_a${i}`, { dueInMs: i })
    await deferred(store, 'req_c1', { dueInMs: 500 }, 'c')
    await deferred(store, 'req_b1', { dueInMs: 900 }, 'b')
    const most = { max: 4, perKeyMax: 4, perAccountMax: 2 }
    const after = NOON + 9_000
    assert.deepEqual(await claim(store, after, most), ['resp_req_a1', 'resp_req_c1', 'resp_req_b1'])
    await deferred(store, 'req_b2', { dueInMs: 901 }, 'b')
    assert.deepEqual(await claim(store, after, most), ['resp_req_b2'], 'running polls count')
    await store.postponeDeferred({ surface: 'chat', scope: '', objectId: 'resp_req_c1' }, 90_000, after)
    assert.deepEqual(await claim(store, after, most), ['resp_req_a2'])
  })

  test('of concurrent calls for one upstream object, only one is deferred', async ({ store }) => {
    await addKey(store, 'a')
    for (let round = 0; round < 10; round++) {
      const ids = [1, 2, 3, 4].map((call) => `req_${round}_${call}`)
      for (const id of ids) await store.admit(opening(id, 'a', { surface: 'chat' }))
      const objectId = `resp_${round}`
      const kept = await Promise.all(ids.map((id) => store.deferCall(deferral(id, { objectId }))))
      assert.deepEqual(kept.sort(), ['deferred', 'paid_by_other', 'paid_by_other', 'paid_by_other'])
    }
  })

  test('an object that upstream names again belongs to the call that created it', async ({ store }) => {
    await addKey(store, 'a')
    await deferred(store, 'req_1', { objectId: 'resp_1' })
    await store.admit(opening('req_2', 'a'))
    assert.equal(await store.deferCall(deferral('req_2', { objectId: 'resp_1' })), 'paid_by_other')
    assert.equal((await store.getCall('req_2'))?.state, 'in_flight')
    assert.equal(await store.deferCall(deferral('req_1', { objectId: 'resp_1' })), 'deferred')
    assert.equal(
      (await store.findDeferred({ surface: 'chat', scope: '', objectId: 'resp_1' }))?.call.requestId,
      'req_1',
    )
    // The object remains known after it has settled.
    await store.settle(closing('req_1'))
    assert.equal(await store.countDeferred(), 0)
    assert.equal(await store.deferCall(deferral('req_2', { objectId: 'resp_1' })), 'paid_by_other')
    assert.equal(await store.deferCall(deferral('req_2', { objectId: 'resp_2' })), 'deferred')
  })

  test('an object was deleted if a DELETE of it may have succeeded', async ({ store }) => {
    await addKey(store, 'a')
    const object = (objectId: string) => ({ surface: 'chat', scope: '', objectId }) as const
    for (const objectId of ['sent', 'done', 'failed', 'unsent'])
      await store.admit(opening(`req_${objectId}`, 'a', { surface: 'chat', method: 'DELETE', objectId }))
    await store.settle(closing('req_done', { status: 200 }))
    await store.settle(closing('req_failed', { status: 404 }))
    await store.settle(closing('req_unsent', { ...NOTHING_USED, state: 'released' }))
    const asked = ['sent', 'done', 'failed', 'unsent', 'other']
    const deleted = await Promise.all(asked.map((objectId) => store.wasDeleted(object(objectId))))
    assert.deepEqual(deleted, [true, true, false, false, false])
    assert.equal(await store.wasDeleted({ ...object('done'), scope: 'acct_other' }), false)
    assert.equal(await store.wasDeleted({ ...object('done'), surface: 'messages' }), false)
  })

  test('while a Chat batch is open, a file that was not uploaded here may hold its results', async ({
    store,
  }) => {
    await addKey(store, 'a')
    const mayBe = (fileId: string) => store.mayBeBatchResults('chat', fileId, digestOf('a'))
    await deferred(store, 'req_1')
    assert.equal(await mayBe('file-1'), false)
    await deferred(store, 'req_2', { kind: 'batch', objectId: 'batch_1' })
    assert.equal(await mayBe('file-1'), true)
    assert.equal(await store.mayBeBatchResults('messages', 'file-1', digestOf('a')), false)
    const uploaded = { accountId: 'default', keyId: 'key_a', fileId: 'file-1', atMs: NOON }
    await store.storeBatchFile({ ...uploaded, models: null, bound: null })
    assert.deepEqual([await mayBe('file-1'), await mayBe('file-2')], [false, true])
    await store.settle(closing('req_2', { ...NOTHING_USED }))
    assert.equal(await mayBe('file-2'), false)
  })

  test('an object is not polled after its call has settled', async ({ store }) => {
    await addKey(store, 'a')
    await deferred(store, 'req_1')
    await deferred(store, 'req_2')
    assert.equal(await store.countDeferred(), 2)
    await store.settle(closing('req_1'))
    assert.deepEqual(await claim(store, NOON + 9_000), ['resp_req_2'])
    assert.equal(await store.countDeferred(), 1)
    assert.equal(await store.makeDeferredDue('chat', 'resp_req_1', digestOf('a')), false)
  })

  test('the models of a batch settle as separate records, each once even if opened twice', async ({
    store,
    rows,
  }) => {
    await addKey(store, 'a')
    await deferred(store, 'req_1', { kind: 'batch', objectId: 'batch_1' })
    const made = await store.getCall('req_1')
    assert.deepEqual([made?.children, made?.childrenNanos], [0, 0n])
    const children = [
      {
        requestId: 'req_1a',
        parentId: 'req_1',
        model: 'claude-haiku-5-5',
        rating: '{}',
        requests: 40,
        costNanos: 30n,
        listNanos: 40n,
      },
      {
        requestId: 'req_1b',
        parentId: 'req_1',
        model: 'gpt-6-luna',
        rating: '{}',
        requests: 2,
        costNanos: 5n,
        listNanos: 6n,
      },
    ]
    for (const times of [1, 2]) {
      await store.openChildren(children)
      const one = await store.settle(closing('req_1a', { costNanos: 30n, listNanos: 40n }))
      assert.equal(one.applied, times === 1)
    }
    await store.interruptOpenCalls(NOON + 1_000)
    await store.settle(
      closing('req_1b', { modelServed: 'gpt-6-luna', costNanos: 5n, listNanos: 6n, unpriced: true }),
    )
    await store.settle(closing('req_1', { ...NOTHING_USED }))
    const [haiku, luna, none] = (await rows('rollup'))
      .map(({ model, requests, unpriced_requests, cost_nanos }) => [
        ...[model, Number(requests), Number(unpriced_requests), cost_nanos],
      ])
      .sort((a, b) => Number(b[1]) - Number(a[1]))
    assert.deepEqual(
      [haiku, luna],
      [
        ['claude-haiku-5-5', 40, 0, 30n],
        ['gpt-6-luna', 2, 2, 5n],
      ],
    )
    assert.equal(none, undefined)
    const child = await store.getCall('req_1b')
    // Each part takes its cost from the batch's hold as its own hold, so no part exceeds its hold.
    const holds = await Promise.all(['req_1', 'req_1a', 'req_1b'].map((id) => store.getCall(id)))
    assert.deepEqual(
      holds.map((call) => [call?.holdNanos, call?.overrun]),
      [
        [965n, false],
        [30n, false],
        [5n, false],
      ],
    )
    assert.deepEqual([child?.parentId, child?.state, child?.keyId], ['req_1', 'settled', 'key_a'])
    assert.deepEqual([holds[0]?.children, holds[0]?.childrenNanos], [2, 35n])
    assert.deepEqual([child?.children, child?.childrenNanos], [null, null])
    const month = (await store.getKey('default', 'key_a', NOON))?.month
    assert.deepEqual([month?.heldNanos, month?.spentNanos], [0n, 35n])
  })

  test('models of an interrupted batch hold nothing', async ({ store }) => {
    await addKey(store, 'a')
    await store.admit(opening('req_1', 'a', { surface: 'chat' }))
    await store.interruptOpenCalls(NOON + 50)
    assert.equal(await store.deferCall(deferral('req_1', { kind: 'batch', objectId: 'batch_1' })), 'deferred')
    const figures = { requests: 40, costNanos: 30n, listNanos: 40n }
    const child = { requestId: 'req_1a', parentId: 'req_1', model: 'claude-haiku-5-5', rating: '{}' }
    await store.openChildren([{ ...child, ...figures }])
    assert.equal((await store.getCall('req_1a'))?.holdNanos, 0n)
    await store.settle(closing('req_1a', { costNanos: 30n, listNanos: 40n }))
    const month = (await store.getKey('default', 'key_a', NOON))?.month
    assert.deepEqual([month?.heldNanos, month?.spentNanos], [0n, 30n])
  })

  test('opened models of a batch are found before they settle, and hold nothing after an interruption', async ({
    store,
  }) => {
    await addKey(store, 'a')
    await deferred(store, 'req_1', { kind: 'batch', objectId: 'batch_1' })
    await deferred(store, 'req_2', { kind: 'batch', objectId: 'batch_2' })
    const rest = { model: 'claude-haiku-5-5', rating: '{}', requests: 1, costNanos: 30n, listNanos: 40n }
    const children = ['req_1a', 'req_1b'].map((requestId) => ({ ...rest, requestId, parentId: 'req_1' }))
    await store.openChildren([...children, { ...rest, requestId: 'req_2a', parentId: 'req_2' }])
    const open = async () => {
      const batch = await store.getCall('req_1')
      const children = batch === null ? [] : await store.listOpenChildren(batch)
      return children.map(({ requestId }) => requestId)
    }
    assert.deepEqual(await open(), ['req_1a', 'req_1b'])
    await store.settle(closing('req_1b', { costNanos: 30n, listNanos: 40n }))
    assert.deepEqual(await open(), ['req_1a'])
    for (const requestId of [...(await open()), 'req_1'])
      await store.settle({ ...NOTHING_USED, requestId, state: 'interrupted', atMs: NOON + 500 })
    assert.deepEqual(await open(), [])
    const month = (await store.getKey('default', 'key_a', NOON))?.month
    // The whole hold of the other batch, with its part.
    assert.deepEqual([month?.heldNanos, month?.spentNanos], [1_000n, 30n])
    const lost = await Promise.all(['req_1', 'req_1a'].map((id) => store.getCall(id)))
    assert.equal(
      month?.lostNanos,
      lost.reduce((sum, call) => sum + (call?.lostListNanos ?? 0n), 0n),
    )
  })

  test('the log distinguishes calls in flight from deferred calls', async ({ store }) => {
    await addKey(store, 'a')
    await deferred(store, 'req_1')
    await store.admit(opening('req_2', 'a'))
    const ids = async (state: 'deferred' | 'in_flight') => {
      const { calls } = await store.listCalls({ ...ALL_CALLS, state }, null, 10)
      return calls.map(({ requestId }) => requestId)
    }
    assert.deepEqual(await ids('deferred'), ['req_1'])
    assert.deepEqual(await ids('in_flight'), ['req_2'])
  })
}
