import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { LoggedBody } from '../../../src/ledger/request-log.ts'
import type { Store } from '../../../src/store/store.ts'
import { runs } from '../../support/scale.ts'
import { NOON, type OpenStoreUnderTest } from './fixtures.ts'
import { promisesOf } from './promise.ts'

const ROW_BYTES = 256

const body = (bytes: number): LoggedBody => ({
  ...{ contentType: 'application/json', compressed: Buffer.alloc(bytes, 7), lengthBytes: bytes },
  truncated: false,
})

const keep = (
  store: Store,
  requestId: string,
  atMs: number,
  request: number | null,
  response: number | null,
) =>
  store.storeBodies({
    ...{ requestId, atMs },
    request: request === null ? null : body(request),
    response: response === null ? null : body(response),
  })

async function keptOf(store: Store, requestIds: readonly string[]): Promise<string[]> {
  const found = await Promise.all(requestIds.map((id) => store.getBodies(id)))
  return requestIds.filter((_, i) => found[i] !== null)
}

export function bodyLimitConformance(storeName: string, openStore: OpenStoreUnderTest): void {
  const test = promisesOf(storeName, openStore)

  test('when logged bodies exceed their limit, the oldest are deleted first, and no more than necessary', async ({
    store,
  }) => {
    const all = ['req_old', 'req_mid', 'req_new']
    await keep(store, 'req_mid', NOON + 1, 1_000, null)
    await keep(store, 'req_new', NOON + 2, null, 1_000)
    await keep(store, 'req_old', NOON, 500, 500)
    const one = 1_000 + ROW_BYTES
    assert.equal(await store.trimBodies(3 * one, 10), 0)
    assert.equal(await store.trimBodies(3 * one - 1, 10), 1)
    assert.deepEqual(await keptOf(store, all), ['req_mid', 'req_new'])
    assert.equal(await store.trimBodies(2 * one, 10), 0)
    assert.equal(await store.trimBodies(0, 1), 1)
    assert.deepEqual(await keptOf(store, all), ['req_new'])
    assert.equal(await store.trimBodies(0, 10), 1)
    assert.equal(await store.trimBodies(0, 10), 0)
  })

  test('deleted and expired bodies do not count towards the limit', async ({ store }) => {
    await keep(store, 'req_1', NOON, 100, null)
    await keep(store, 'req_1', NOON, 5_000, null)
    await keep(store, 'req_2', NOON + 1, 100, null)
    assert.equal(await store.trimBodies(2 * (100 + ROW_BYTES), 10), 0)
    assert.equal(await store.deleteBodies(NOON + 1, 10), 1)
    assert.equal(await store.trimBodies(100 + ROW_BYTES, 10), 0)
    assert.ok(await store.getBodies('req_2'))
  })

  test('whatever is stored and trimmed, the remaining bodies fit the limit and are the newest', async ({
    store,
  }) => {
    const step = fc.record({
      bytes: fc.nat(3_000),
      drop: fc.boolean(),
      limit: fc.integer({ min: 1, max: 3 }),
    })
    let made = 0
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), fc.nat(10_000), async (steps, bytesMax) => {
        const round: { id: string; bytes: number }[] = []
        for (const { bytes, drop, limit } of steps) {
          made += 1
          const id = `req_${made}`
          await keep(store, id, NOON + made, bytes, null)
          round.push({ id, bytes: bytes + ROW_BYTES })
          if (drop) await store.trimBodies(bytesMax, limit)
        }
        while ((await store.trimBodies(bytesMax, 5)) > 0);
        const left = await keptOf(
          store,
          round.map(({ id }) => id),
        )
        const sum = round.filter(({ id }) => left.includes(id)).reduce((all, { bytes }) => all + bytes, 0)
        assert.ok(sum <= bytesMax, `${sum} are kept of ${bytesMax}`)
        assert.deepEqual(
          left,
          round.slice(round.length - left.length).map(({ id }) => id),
        )
        while ((await store.trimBodies(0, 200)) > 0);
      }),
      { numRuns: runs(15) },
    )
  })
}
