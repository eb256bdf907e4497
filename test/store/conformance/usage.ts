import assert from 'node:assert/strict'
import fc from 'fast-check'
import { SYSTEM } from '../../../src/kernel/actor.ts'
import { StoreRefused } from '../../../src/kernel/errors.ts'
import type { UsageBucket, UsageGroup, UsageQuery } from '../../../src/ledger/usage-report.ts'
import type { Store } from '../../../src/store/store.ts'
import { runs } from '../../support/scale.ts'
import { addKey, closing, creditBackOf, idAt, NOON, type OpenStoreUnderTest, opening } from './fixtures.ts'
import { promisesOf } from './promise.ts'
import { emptyBucket, expectedBuckets, GROUPINGS } from './usage-oracle.ts'

const DAY_MS = 24 * 60 * 60 * 1000

const ALL: UsageQuery = {
  accountId: 'default',
  keyId: null,
  startDay: '2026-01-01',
  endDay: '2026-12-31',
  groupBy: [],
  after: null,
  limit: 10_000,
}

let calls = 0

interface Use {
  readonly key: string
  readonly atMs?: number
  readonly model?: string | null
  readonly more?: Parameters<typeof closing>[1]
}

async function use(store: Store, { key, atMs = NOON, model = 'm', more = {} }: Use): Promise<string> {
  calls += 1
  const id = idAt(atMs, String(calls))
  await store.admit(opening(id, key, { atMs, modelAsked: model, hold: { kind: 'none' } }))
  await store.settle(closing(id, { atMs, modelServed: model, ...more }))
  return id
}

const groupOf = ({ day, hour, model, keyId, personId, ofAccountId }: UsageGroup): UsageGroup => ({
  ...{ day, hour, model, keyId, personId, ofAccountId },
})
const places = (buckets: readonly UsageBucket[]) =>
  buckets.map(({ day, hour, model, keyId }) =>
    [day, hour, model, keyId].filter((value) => value !== null).join(' '),
  )

/** All pages in order; `between` is called before each but the first. */
async function readPages(store: Store, query: UsageQuery, between = async () => {}): Promise<UsageBucket[]> {
  const buckets: UsageBucket[] = []
  let after: UsageGroup | null = query.after
  for (let page = 0; page < 200; page += 1) {
    const report = await store.readUsage({ ...query, after })
    assert.ok(report.buckets.length <= query.limit)
    buckets.push(...report.buckets)
    const last = report.buckets.at(-1)
    if (!report.more) return buckets
    assert.ok(last !== undefined, 'there is more, but no cursor')
    after = groupOf(last)
    await between()
  }
  return assert.fail('the pages do not end')
}

export function usageConformance(storeName: string, openStore: OpenStoreUnderTest): void {
  const test = promisesOf(storeName, openStore)

  test('a bucket has all sums and the current name of its key', async ({ store }) => {
    await addKey(store, 'a')
    const flags = { estimated: true, unpriced: true }
    await use(store, { key: 'a', more: { costNanos: 1n, listNanos: 3n, ...flags } })
    await use(store, { key: 'a', more: { costNanos: 10n, listNanos: 30n, estimated: true } })
    await store.updateKey('default', 'key_a', { name: 'renamed' }, NOON, SYSTEM)
    const { buckets } = await store.readUsage({ ...ALL, groupBy: ['day', 'model', 'key'] })
    assert.deepEqual(buckets, [
      {
        day: '2026-11-15',
        hour: null,
        model: 'm',
        keyId: 'key_a',
        keyName: 'renamed',
        ...{ personId: null, personEmail: null, ofAccountId: null, accountName: null, metadata: {} },
        requests: 2n,
        inputTokens: 20n,
        outputTokens: 10n,
        cacheReadTokens: 6n,
        cacheWriteTokens: 4n,
        costNanos: 11n,
        listNanos: 33n,
        creditedNanos: 0n,
        unpricedRequests: 1n,
        estimatedRequests: 2n,
      },
    ])
  })

  test('a range includes both its days, and a call counts on the day of its admission', async ({ store }) => {
    await addKey(store, 'a')
    const midnight = Date.UTC(2026, 10, 16)
    for (const atMs of [midnight - DAY_MS - 1, midnight - DAY_MS, midnight - 1, midnight]) {
      await use(store, { key: 'a', atMs, more: { atMs: atMs + DAY_MS } })
    }
    const requests = async (startDay: string, endDay: string) =>
      (await store.readUsage({ ...ALL, startDay, endDay })).total.requests
    assert.equal(await requests('2026-11-15', '2026-11-15'), 2n)
    assert.equal(await requests('2026-11-14', '2026-11-15'), 3n)
    assert.equal(await requests('2026-11-15', '2026-11-16'), 3n)
    assert.equal(await requests('2026-11-17', '2026-12-31'), 0n)
  })

  test('a call counts under the model served, else the model requested, else none', async ({ store }) => {
    await addKey(store, 'a')
    await use(store, { key: 'a', model: 'asked', more: { modelServed: 'served' } })
    await use(store, { key: 'a', model: 'asked', more: { modelServed: null } })
    await use(store, { key: 'a', model: null })
    const { buckets } = await store.readUsage({ ...ALL, groupBy: ['model'] })
    assert.deepEqual(
      buckets.map(({ model }) => model),
      ['', 'asked', 'served'],
    )
  })

  test('usage excludes calls in flight, released calls and interrupted calls', async ({ store }) => {
    await addKey(store, 'a')
    for (const id of ['req_open', 'req_released', 'req_late']) await store.admit(opening(id, 'a'))
    const released = { state: 'released', costNanos: 0n, listNanos: 0n } as const
    await store.settle(closing('req_released', released))
    await store.interruptOpenCalls(NOON)
    assert.equal((await store.readUsage(ALL)).total.requests, 0n)
    await store.settle(closing('req_late'))
    assert.equal((await store.readUsage(ALL)).total.costNanos, 800n)
  })

  test('usage of an account excludes other accounts and their keys', async (subject) => {
    const { store } = subject
    await subject.addAccount('other')
    await addKey(store, 'mine')
    await addKey(store, 'foreign', { accountId: 'other' })
    await use(store, { key: 'mine' })
    await use(store, { key: 'foreign' })
    await use(store, { key: 'foreign' })
    const requests = async (accountId: string, keyId: string | null) =>
      (await store.readUsage({ ...ALL, accountId, keyId })).total.requests
    assert.equal(await requests('default', null), 1n)
    assert.equal(await requests('other', null), 2n)
    assert.equal(await requests('other', 'key_foreign'), 2n)
    assert.equal(await requests('default', 'key_foreign'), 0n)
    assert.equal(await requests('nobody', null), 0n)
  })

  test('a page says whether more follow, and its total covers all pages', async ({ store }) => {
    await addKey(store, 'a')
    for (const model of ['x', 'y', 'z']) await use(store, { key: 'a', model })
    const page = async (limit: number, after: UsageGroup | null = null) => {
      const { buckets, more, total } = await store.readUsage({ ...ALL, groupBy: ['model'], limit, after })
      return [places(buckets).join(), more, total.requests]
    }
    assert.deepEqual(await page(2), ['x,y', true, 3n])
    assert.deepEqual(await page(3), ['x,y,z', false, 3n])
    assert.deepEqual(
      await page(2, { day: null, hour: null, model: 'y', keyId: null, personId: null, ofAccountId: null }),
      ['z', false, 3n],
    )
    assert.deepEqual(
      await page(2, { day: null, hour: null, model: 'xx', keyId: null, personId: null, ofAccountId: null }),
      ['y,z', false, 3n],
    )
    assert.deepEqual(
      await page(2, { day: null, hour: null, model: 'z', keyId: null, personId: null, ofAccountId: null }),
      ['', false, 3n],
    )
  })

  test('pages list each bucket once, even if calls settle between them', async (subject) => {
    const { store } = subject
    for (const name of ['a', 'b', 'c']) await addKey(store, name)
    const models = Array.from({ length: 9 }, (_, i) => `m${i * 2}`)
    const used = ['a', 'b', 'c'].flatMap((key) => models.map((model) => use(store, { key, model })))
    await Promise.all(used)
    for (const groupBy of GROUPINGS) {
      const before = places((await store.readUsage({ ...ALL, groupBy })).buckets)
      let added = 0
      const pages = await readPages(store, { ...ALL, groupBy, limit: 2 }, async () => {
        // Calls are added to buckets that were shown, to buckets that will be, and to buckets between them.
        added += 1
        await Promise.all(['m0', 'm16', `m${added}`].map((model) => use(store, { key: 'b', model })))
      })
      const seen = places(pages)
      assert.deepEqual(seen, [...new Set(seen)], 'no id is listed twice')
      for (const place of before) assert.ok(seen.includes(place), `${groupBy}: ${place}`)
    }
  })

  test('sums beyond the range of doubles are exact', async ({ store }) => {
    await addKey(store, 'a')
    const tokens = { input: Number.MAX_SAFE_INTEGER, output: 1, cacheRead: 0, cacheWrite: 0 }
    for (const model of ['x', 'y', 'y']) {
      await use(store, { key: 'a', model, more: { tokens, listNanos: 2n ** 60n + 1n } })
    }
    const { buckets, total } = await store.readUsage({ ...ALL, groupBy: ['model'] })
    assert.equal(buckets[1]?.listNanos, 2n ** 61n + 2n)
    assert.equal(total.listNanos, 3n * 2n ** 60n + 3n)
    assert.equal(total.inputTokens, 3n * BigInt(Number.MAX_SAFE_INTEGER))
  })

  test('a sum beyond 64 bits is exact or refused, never wrong', async ({ store }) => {
    await addKey(store, 'a')
    for (const model of ['x', 'y']) await use(store, { key: 'a', model, more: { listNanos: 2n ** 62n } })
    try {
      assert.equal((await store.readUsage(ALL)).total.listNanos, 2n ** 63n)
    } catch (error) {
      assert.ok(error instanceof StoreRefused, String(error))
    }
  })

  test('reports match the sum of the calls, for any calls, groupings and pages', async (subject) => {
    const { store } = subject
    const keys = ['a', 'b', 'c']
    for (const name of keys) await addKey(store, name)
    const models = ['', 'm', 'm\u0001', 'm\u0001n', 'mm', '😀', '\uffee', 'ä']
    const someCall = fc.record({
      key: fc.constantFrom(...keys),
      atMs: fc.integer({ min: -30, max: 30 }).map((times) => NOON + (times * DAY_MS) / 10),
      model: fc.option(fc.constantFrom(...models)),
      more: fc.record({
        costNanos: fc.bigInt({ min: 0n, max: 10n ** 12n }),
        listNanos: fc.bigInt({ min: 0n, max: 10n ** 12n }),
        estimated: fc.boolean(),
        unpriced: fc.boolean(),
      }),
    })
    const day = fc.integer({ min: 11, max: 19 }).map((date) => `2026-11-${date}`)
    const someQuery = fc.record({
      keyId: fc.option(fc.constantFrom('key_a', 'key_b', 'key_c', 'key_none')),
      startDay: day,
      endDay: day,
      groupBy: fc.constantFrom(...GROUPINGS),
      limit: fc.integer({ min: 1, max: 12 }),
    })
    await fc.assert(
      fc.asyncProperty(
        fc.array(someCall, { maxLength: 12 }),
        fc.array(someQuery, { maxLength: 6 }),
        async (uses, queries) => {
          const ids = await Promise.all(uses.map((each) => use(store, each)))
          await store.creditBack(creditBackOf(ids.slice(0, 3)), null)
          for (const partial of queries) {
            const query: UsageQuery = { ...ALL, ...partial }
            assert.deepEqual(await readPages(store, query), await expectedBuckets(subject, query))
            const { total } = await store.readUsage(query)
            const [whole] = await expectedBuckets(subject, { ...query, groupBy: [] })
            assert.deepEqual({ ...emptyBucket(null, null, null, null, null), ...total }, whole)
          }
        },
      ),
      { numRuns: runs(25) },
    )
  })
}
