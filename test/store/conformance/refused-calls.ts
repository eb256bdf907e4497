import assert from 'node:assert/strict'
import { SYSTEM } from '../../../src/kernel/actor.ts'
import type { CallRecord } from '../../../src/ledger/call.ts'
import type { CallFilter, RefusedCall } from '../../../src/ledger/request-log.ts'
import type { Store } from '../../../src/store/store.ts'
import {
  ALL_CALLS,
  addKey,
  closing,
  digestOf,
  idAt,
  NOON,
  type OpenStoreUnderTest,
  opening,
} from './fixtures.ts'
import { promisesOf } from './promise.ts'

const refused = (name: string, keyName: string, more: Partial<RefusedCall> = {}): RefusedCall => ({
  requestId: idAt(more.startedAtMs ?? NOON, name),
  digest: digestOf(keyName),
  startedAtMs: NOON,
  endedAtMs: NOON + 7,
  method: 'POST',
  path: '/v1/messages',
  surface: 'messages',
  modelAsked: 'claude-haiku-5-5',
  status: 402,
  code: 'budget_exceeded',
  isUnpriced: false,
  clientIp: '127.0.0.1',
  userAgent: null,
  sessionId: null,
  socketId: null,
  ...more,
})

const REFUSED: CallFilter = { ...ALL_CALLS, state: 'refused' }

/** The names of calls, without their times. */
const ids = (calls: readonly CallRecord[]): string[] =>
  calls.map(({ requestId }) => requestId.slice(requestId.lastIndexOf('req_')))
const find = async (store: Store, filter: Partial<CallFilter> = {}): Promise<string[]> =>
  ids((await store.listCalls({ ...REFUSED, ...filter }, null, 1_000)).calls)

export function refusedCallConformance(storeName: string, openStore: OpenStoreUnderTest): void {
  const test = promisesOf(storeName, openStore)

  test('of invented models, the latest 100 of an account and the latest 200 are named, and the others summed', async ({
    store,
  }) => {
    await addKey(store, 'a')
    for (const name of ['b', 'c']) {
      await store.createAccount({ id: `acct_${name}`, name, createdAtMs: NOON }, SYSTEM, null)
      await addKey(store, name, { accountId: `acct_${name}` })
    }
    const ask = (key: string, at: number) => {
      const about = { code: 'model_not_priced', modelAsked: `${key}${at}`, startedAtMs: NOON + at } as const
      return refused(`req_${key}${at}`, key, about)
    }
    const names = (key: string, from: number) => Array.from({ length: 101 }, (_, at) => ask(key, from + at))
    await store.storeRefused([ask('c', 0), ...names('a', 1_000), ...names('b', 2_000)])
    const rows = await store.listUnpricedModels(NOON)
    const others = rows.filter(({ model }) => model === 'other')
    const about = { model: 'other', surface: 'messages', passed: 0 }
    assert.deepEqual(others, [{ ...about, refused: 4, lastAtMs: NOON + 2_000 }])
    assert.equal(rows.length, 200)
    const left = ['c0', 'a1000', 'a1001', 'b2000']
    assert.ok(
      rows.every(({ model, refused: calls }) => !left.includes(model) && (model === 'other' || calls === 1)),
    )
  })

  test('a refused call is stored with its reason, at no cost, whatever text it contains, except U+0000', async ({
    store,
  }) => {
    await addKey(store, 'a')
    const odd = { path: '/v1/\u{1f511}\0', userAgent: '=cmd "x"\n\0\u0001', modelAsked: null }
    await store.storeRefused([refused('req_1', 'a', odd)])
    const call = await store.getCall(idAt(NOON, 'req_1'))
    assert.deepEqual(call, {
      ...{
        requestId: idAt(NOON, 'req_1'),
        accountId: 'default',
        keyId: 'key_a',
        personId: null,
        state: 'refused',
        objectId: null,
        parentId: null,
        children: null,
        childrenNanos: null,
        socketId: null,
        sessionId: null,
      },
      ...{ startedAtMs: NOON, endedAtMs: NOON + 7, method: 'POST', surface: 'messages', modelAsked: null },
      ...{ path: '/v1/\u{1f511}\ufffd', userAgent: '=cmd "x"\n\ufffd\u0001' },
      ...{ modelServed: null, status: 402, stopReason: null, code: 'budget_exceeded' },
      ...{ streamed: false, estimated: false, unpriced: false, overrun: false, pricedAsRequested: false },
      ...{ usage: null, tokens: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } },
      ...{ costNanos: 0n, listNanos: 0n, lostListNanos: 0n, balanceNanos: null },
      ...{ holdNanos: 0n, holdListNanos: 0n },
      ...{ upstreamMs: null, overheadMs: 7, priceVersion: null, rating: '{}', upstreamRequestId: null },
      ...{ clientIp: '127.0.0.1', bytesIn: 0, bytesOut: 0, credited: false },
    })
    assert.deepEqual((await store.listCalls(REFUSED, null, 10)).calls, [call])
  })

  test('a call with an unknown key leaves no record, one with a revoked or expired key does', async ({
    store,
  }) => {
    await addKey(store, 'a')
    await addKey(store, 'gone')
    await addKey(store, 'late', { expiresAtMs: NOON - 1 })
    await store.revokeKey('default', 'key_gone', NOON, SYSTEM)
    await store.storeRefused([
      refused('req_1', 'a'),
      refused('req_2', 'nobody'),
      refused('req_3', 'gone'),
      refused('req_4', 'late'),
    ])
    assert.deepEqual(await find(store), ['req_4', 'req_3', 'req_1'])
    assert.equal(await store.getCall(idAt(NOON, 'req_2')), null)
  })

  test('refused calls appear only in lists that ask for them, and in no sum', async ({ store }) => {
    await addKey(store, 'a')
    await store.admit(opening('req_1', 'a'))
    await store.settle(closing('req_1'))
    await store.storeRefused([refused('req_2', 'a')])
    assert.deepEqual(ids((await store.listCalls({ ...REFUSED, state: null }, null, 10)).calls), ['req_1'])
    assert.deepEqual(await find(store), ['req_2'])
    const { total } = await store.readUsage({
      ...{ accountId: 'default', keyId: null, startDay: '2026-11-01', endDay: '2026-11-30' },
      ...{ groupBy: [], after: null, limit: 10 },
    })
    assert.equal(total.requests, 1n)
  })

  test('a call reported twice is stored once', async ({ store }) => {
    await addKey(store, 'a')
    await store.storeRefused([refused('req_1', 'a'), refused('req_1', 'a', { code: 'other' })])
    await store.storeRefused([refused('req_1', 'a', { code: 'other' }), refused('req_2', 'a')])
    assert.deepEqual(await find(store), ['req_2', 'req_1'])
    assert.equal((await store.getCall(idAt(NOON, 'req_1')))?.code, 'budget_exceeded')
    await store.storeRefused([])
    // Two rows are counted, not three: a limit of one deletes one.
    assert.equal(await store.deleteRefused(0, 1, 10), 1)
  })

  test('refused calls filter by key, time, model and status', async ({ store, addAccount }) => {
    await addKey(store, 'a')
    await addKey(store, 'b')
    await addAccount('other')
    await addKey(store, 'c', { accountId: 'other' })
    await store.storeRefused([
      refused('req_1', 'a', { startedAtMs: NOON, status: 429 }),
      refused('req_2', 'b', { startedAtMs: NOON + 10, modelAsked: 'gpt-6' }),
      refused('req_3', 'a', { startedAtMs: NOON + 20, modelAsked: null }),
      refused('req_4', 'c', { startedAtMs: NOON + 30 }),
    ])
    assert.deepEqual(await find(store), ['req_3', 'req_2', 'req_1'])
    assert.deepEqual(await find(store, { keyId: 'key_a' }), ['req_3', 'req_1'])
    assert.deepEqual(await find(store, { keyId: 'key_c' }), [])
    assert.deepEqual(await find(store, { accountId: 'other' }), ['req_4'])
    assert.deepEqual(await find(store, { fromMs: NOON + 10 }), ['req_3', 'req_2'])
    assert.deepEqual(await find(store, { toMs: NOON + 10 }), ['req_1'])
    assert.deepEqual(await find(store, { model: 'gpt-6' }), ['req_2'])
    assert.deepEqual(await find(store, { status: 429 }), ['req_1'])
    assert.deepEqual(await find(store, { minCostNanos: 0n }), ['req_3', 'req_2', 'req_1'])
    assert.deepEqual(await find(store, { minCostNanos: 1n }), [])
    assert.deepEqual(await find(store, { flag: 'streamed' }), [])
  })

  test('pages of refused calls are contiguous', async ({ store }) => {
    await addKey(store, 'a')
    const all = Array.from({ length: 25 }, (_, i) => `req_${String(i).padStart(3, '0')}`)
    await store.storeRefused(all.map((id, i) => refused(id, 'a', { startedAtMs: NOON + (i >> 2) })))
    const found: string[] = []
    let after: string | null = null
    do {
      const page: Awaited<ReturnType<Store['listCalls']>> = await store.listCalls(REFUSED, after, 4)
      assert.ok(page.calls.length <= 4)
      found.push(...ids(page.calls))
      after = page.next
    } while (after !== null)
    assert.deepEqual(found, all.toReversed())
  })

  test('beyond the limit of each account, the oldest refused calls are deleted in steps', async ({
    store,
    addAccount,
  }) => {
    await addAccount('other')
    await addKey(store, 'a')
    await addKey(store, 'b', { accountId: 'other' })
    await store.storeRefused([
      ...[5, 3, 1, 4, 2].map((at) => refused(`req_a${at}`, 'a', { startedAtMs: NOON + at })),
      ...[1, 2].map((at) => refused(`req_b${at}`, 'b', { startedAtMs: NOON - at })),
    ])
    assert.equal(await store.deleteRefused(0, 5, 10), 0)
    assert.equal(await store.deleteRefused(0, 2, 1), 1)
    assert.deepEqual(await find(store), ['req_a5', 'req_a4', 'req_a3', 'req_a2'])
    assert.equal(await store.deleteRefused(0, 2, 10), 2)
    assert.deepEqual(await find(store), ['req_a5', 'req_a4'])
    assert.equal(await store.deleteRefused(0, 2, 10), 0)
    assert.deepEqual(await find(store, { accountId: 'other' }), ['req_b1', 'req_b2'])
    // The count decreases with the rows.
    await store.storeRefused([refused('req_a6', 'a', { startedAtMs: NOON + 6 })])
    assert.equal(await store.deleteRefused(0, 3, 10), 0)
  })

  test('expired refused calls of every account are deleted in steps', async ({ store, addAccount }) => {
    await addAccount('other')
    await addKey(store, 'a')
    await addKey(store, 'b', { accountId: 'other' })
    await store.storeRefused([
      ...[1, 2, 3, 4].map((at) => refused(`req_a${at}`, 'a', { startedAtMs: NOON + at })),
      refused('req_b1', 'b', { startedAtMs: NOON + 1 }),
      refused('req_b9', 'b', { startedAtMs: NOON + 9 }),
    ])
    assert.equal(await store.deleteRefused(NOON + 4, 100, 2), 2)
    assert.equal(await store.deleteRefused(NOON + 4, 100, 10), 2)
    assert.equal(await store.deleteRefused(NOON + 4, 100, 10), 0)
    assert.deepEqual(await find(store), ['req_a4'])
    assert.deepEqual(await find(store, { accountId: 'other' }), ['req_b9'])
  })
}
