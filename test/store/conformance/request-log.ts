import assert from 'node:assert/strict'
import fc from 'fast-check'
import { SYSTEM } from '../../../src/kernel/actor.ts'
import { firstUlid } from '../../../src/kernel/ids.ts'
import { CALL_FLAGS } from '../../../src/kernel/vocabulary.ts'
import type { CallRecord } from '../../../src/ledger/call.ts'
import type { CallFilter } from '../../../src/ledger/request-log.ts'
import { LOG_SCAN_RECORDS_MAX } from '../../../src/store/operations/request-log.ts'
import type { Store } from '../../../src/store/store.ts'
import { runs } from '../../support/scale.ts'
import { ALL_CALLS, addKey, closing, idAt, NOON, type OpenStoreUnderTest, opening } from './fixtures.ts'
import { promisesOf } from './promise.ts'
import { addMixedCalls, matches, SOCKET } from './request-log-calls.ts'

const ids = (calls: readonly CallRecord[]): string[] => calls.map((call) => call.requestId)
const find = async (store: Store, filter: Partial<CallFilter>, limit = 1_000) =>
  ids((await store.listCalls({ ...ALL_CALLS, ...filter }, null, limit)).calls)

async function pages(store: Store, filter: CallFilter, limit: number): Promise<string[][]> {
  const found: string[][] = []
  let after: string | null = null
  for (let look = 0; look < 1_000; look += 1) {
    const page: Awaited<ReturnType<Store['listCalls']>> = await store.listCalls(filter, after, limit)
    found.push(ids(page.calls))
    if (page.next === null) return found
    after = page.next
  }
  throw new Error('the log has no end')
}

async function admitAt(store: Store, instants: readonly number[], key = 'a', prefix = ''): Promise<void> {
  for (let i = 0; i < instants.length; i += 5_000) {
    const part = instants.slice(i, i + 5_000)
    await Promise.all(
      part.map((atMs, at) =>
        store.admit(opening(idAt(atMs, `${prefix}${i + at}`), key, { atMs, hold: { kind: 'none' } })),
      ),
    )
  }
}

export function requestLogConformance(storeName: string, openStore: OpenStoreUnderTest): void {
  const test = promisesOf(storeName, openStore)

  test('calls of all accounts are listed in pages, with time filters', async ({ store }) => {
    await store.createAccount({ id: 'acct_b', name: 'b', createdAtMs: NOON }, SYSTEM, null)
    await addKey(store, 'a')
    await addKey(store, 'b', { accountId: 'acct_b' })
    const at = [0, 1, 2, 3, 4].map((i) => NOON + i * 1_000)
    const idsAt = at.map((ms) => `req_${firstUlid(ms)}`)
    for (const [i, atMs] of at.entries())
      await store.admit(opening(idsAt[i] ?? '', i % 2 === 0 ? 'a' : 'b', { atMs, hold: { kind: 'none' } }))
    const all = { ...ALL_CALLS, accountId: null }
    assert.deepEqual((await pages(store, all, 2)).flat(), idsAt.toReversed())
    const range = { ...all, fromMs: NOON + 1_000, toMs: NOON + 4_000 }
    assert.deepEqual((await pages(store, range, 1)).flat(), idsAt.slice(1, 4).toReversed())
  })

  test('a call in the log equals the record read alone', async ({ store }) => {
    await addKey(store, 'a')
    await store.admit(opening('req_1', 'a', { userAgent: '=cmd "x"\n\0', path: '/v1/\u{1f511}' }))
    await store.admit(opening('req_2', 'a'))
    await store.settle(closing('req_2', { costNanos: 9_007_199_254_740_993n, listNanos: 2n ** 62n }))
    const { calls } = await store.listCalls(ALL_CALLS, null, 10)
    assert.deepEqual(calls, [await store.getCall('req_2'), await store.getCall('req_1')])
  })

  test('a page continues where the previous one ended, and a full last page has no next', async ({
    store,
  }) => {
    await addKey(store, 'a')
    await admitAt(store, [NOON, NOON, NOON, NOON + 1, NOON + 1, NOON + 2])
    const all = (await find(store, {})).join()
    for (const keyId of [null, 'key_a']) {
      for (const limit of [1, 2, 3, 4, 6, 7]) {
        const found = await pages(store, { ...ALL_CALLS, keyId }, limit)
        assert.equal(found.flat().join(), all)
        assert.equal(found.length, Math.ceil(6 / limit), `in pages of ${limit}`)
      }
    }
  })

  test('calls that arrive between pages do not shift them', async ({ store }) => {
    await addKey(store, 'a')
    await admitAt(
      store,
      Array.from({ length: 20 }, (_, i) => NOON + (i >> 2)),
    )
    const before = await find(store, {})
    const seen: string[] = []
    let after: string | null = null
    for (let page = 0; page < 4; page += 1) {
      const found: Awaited<ReturnType<Store['listCalls']>> = await store.listCalls(ALL_CALLS, after, 5)
      seen.push(...ids(found.calls))
      after = found.next
      await admitAt(store, [NOON + 10 + page, NOON + 10], 'a', `later${page}`)
    }
    assert.deepEqual(seen, before)
    assert.equal(after, null)
  })

  test('a cursor need not match a call', async ({ store }) => {
    await addKey(store, 'a')
    await admitAt(store, [NOON, NOON + 2, NOON + 2])
    const after = async (id: string) => ids((await store.listCalls(ALL_CALLS, id, 10)).calls)
    assert.deepEqual(await after(idAt(NOON + 1, 'none')), [idAt(NOON, '0')])
    assert.deepEqual(await after(idAt(NOON + 2, '11')), [
      idAt(NOON + 2, '2'),
      idAt(NOON + 2, '1'),
      idAt(NOON, '0'),
    ])
    assert.deepEqual(await after(idAt(NOON, '0')), [])
    assert.deepEqual(await after('req_0'), [])
  })

  test('a model filter treats every character literally', async ({ store }) => {
    await addKey(store, 'a')
    const models = ['%', '_', "' OR 1=1 --", '*', '', '\0', 'a\nb', '=1+1', '\u{1f511}', 'plain']
    for (const [i, modelAsked] of models.entries()) {
      await store.admit(opening(`req_${i}`, 'a', { modelAsked, hold: { kind: 'none' } }))
    }
    for (const [i, model] of models.entries()) assert.deepEqual(await find(store, { model }), [`req_${i}`])
    assert.deepEqual(await find(store, { model: 'PLAIN' }), [])
  })

  test('every filter, alone and combined, returns exactly the matching calls', async (subject) => {
    const { store } = subject
    const calls = await addMixedCalls(subject)
    const or = <T>(...values: readonly T[]) => fc.constantFrom(null, null, ...values)
    const instants = [...new Set(calls.map((call) => call.startedAtMs))]
    const filters = fc.record<CallFilter>({
      accountId: fc.constantFrom('default', 'default', 'default', 'other'),
      keyId: or('key_a', 'key_b', 'key_c'),
      fromMs: or(...instants),
      toMs: or(...instants),
      model: or('m-asked', 'm-served', 'm-other'),
      status: or(200, 429),
      state: or('in_flight', 'settled', 'released', 'interrupted'),
      minCostNanos: or(0n, 1n, 1_000n, 1_001n),
      flag: or(...CALL_FLAGS),
      socketId: or(SOCKET),
      sessionId: or('session'),
    })
    await fc.assert(
      fc.asyncProperty(filters, fc.integer({ min: 1, max: 40 }), async (filter, limit) => {
        const expected = ids(calls.filter((call) => matches(call, filter)))
        assert.deepEqual((await pages(store, filter, limit)).flat(), expected)
      }),
      { numRuns: runs(400) },
    )
    for (const flag of CALL_FLAGS) assert.ok((await find(store, { flag })).length > 0, `none is ${flag}`)
  })

  test('a query scans a limited number of records and returns a cursor to continue', async ({ store }) => {
    const looked = LOG_SCAN_RECORDS_MAX
    await addKey(store, 'a')
    await admitAt(
      store,
      Array.from({ length: looked + 3 }, (_, i) => NOON + (i < 3 ? -1 : i >> 3)),
    )
    const all = (await pages(store, ALL_CALLS, 1_000)).flat()
    const [first = ''] = all.slice(-1)
    await Promise.all(
      all.map((id) =>
        store.settle(closing(id, { costNanos: 5n, modelServed: id === first ? 'rare' : null })),
      ),
    )
    for (const keyId of [null, 'key_a']) {
      const rare: CallFilter = { ...ALL_CALLS, keyId, model: 'rare' }
      const empty = await store.listCalls(rare, null, 10)
      assert.deepEqual(empty.calls, [])
      const [last = ''] = all.slice(looked - 1)
      assert.equal(empty.next, last)
      const rest = await store.listCalls(rare, empty.next, 10)
      assert.deepEqual([ids(rest.calls), rest.next], [[first], null])
    }
    // If no record follows the scanned ones, the list ends.
    const justAsMany = { ...ALL_CALLS, model: 'rare', fromMs: NOON }
    assert.deepEqual(await store.listCalls(justAsMany, null, 10), { calls: [], next: null })
  })
}
