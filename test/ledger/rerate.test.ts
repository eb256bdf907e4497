import assert from 'node:assert/strict'
import { type CurrentPrices, creditOf, type RerateCandidate, rerateCall } from '../../src/ledger/rerate.ts'
import { stopPostgres } from '../support/postgres.ts'
import { after, describe, test } from '../support/suite.ts'
import { BOTH } from './both-ledgers.ts'
import {
  audit,
  type RerateWriter,
  rateAgain,
  type TestLedger,
  V1,
  versionJson,
  withRerates,
} from './test-ledger.ts'

after(stopPostgres)

const pricesOf = (id: string, json: string): CurrentPrices => ({
  rateAgain,
  versionFor: () => ({ id, json }),
})
/** The first model at half its price, the second at double, the third with its first price. */
const V2 = pricesOf('v2', versionJson({ 'claude-haiku-5-5': 50, 'gpt-6-luna': 80, 'unheard-of': 10 }))
const V3 = pricesOf('v3', versionJson({ 'claude-haiku-5-5': 90, 'gpt-6-luna': 40 }))

async function withLedger(
  create: () => Promise<TestLedger>,
  work: (ledger: TestLedger, writer: RerateWriter) => Promise<void>,
): Promise<void> {
  await withRerates(create, async (ledger, writer) => {
    await work(ledger, writer)
    assert.equal((await audit(ledger)).difference, null, 'the sums add up after every test')
  })
}

async function entries(ledger: TestLedger): Promise<unknown[]> {
  const rows = await ledger.rows(
    "SELECT call_id, amount_nanos, once FROM credit_call WHERE once LIKE 'rerate:%' ORDER BY call_id, credit_id",
  )
  return rows.map((row) => [row['call_id'], row['amount_nanos'], row['once']])
}

async function credited(ledger: TestLedger): Promise<unknown> {
  return (await ledger.rows('SELECT credited_nanos FROM account'))[0]?.['credited_nanos']
}

function provePricingAgain(create: () => Promise<TestLedger>): void {
  test('each difference is recorded, and changes ledger, account and day', async () => {
    await withLedger(create, async (dir, writer) => {
      const before = await credited(dir)
      const billed = await dir.rows('SELECT * FROM call ORDER BY id')
      assert.deepEqual(await writer.book(await writer.changes(V2)), { calls: 6, nanos: 400_920n - 264n })
      assert.deepEqual(await entries(dir), [
        ['req_01', 400n, 'rerate:v2'],
        ['req_02', -224n, 'rerate:v2'],
        ['req_05', 120n, 'rerate:v2'],
        ['req_06', -40n, 'rerate:v2'],
        ['req_08', 400_000n, 'rerate:v2'],
        ['req_09', 400n, 'rerate:v2'],
      ])
      assert.equal(await credited(dir), (before as bigint) + 400_920n - 264n)
      const [entry, ...others] = await dir.rows("SELECT * FROM credit WHERE kind = 'correction'")
      assert.deepEqual(
        [entry?.['amount_nanos'], entry?.['actor_kind'], others],
        [400_920n - 264n, 'command_line', []],
        'all calls of an account are one entry of its ledger',
      )
      assert.deepEqual(await dir.rows('SELECT * FROM call ORDER BY id'), billed, 'no call was edited')
      const [day] = await dir.rows("SELECT credited_nanos FROM rollup WHERE day = '2026-10-31'")
      assert.equal(day?.['credited_nanos'], 400_000n)
    })
  })

  test('a recorded difference is not recorded again, by a second run or by one that read before the first', async () => {
    await withLedger(create, async (dir, writer) => {
      const stale = await writer.changes(V2)
      await writer.book(stale)
      const after = await credited(dir)
      assert.deepEqual(await writer.changes(V2), [])
      assert.deepEqual(await writer.book(stale), { calls: 0, nanos: 0n })
      assert.equal(await credited(dir), after)
    })
  })

  test('a call credited after it was read is not changed', async () => {
    await withLedger(create, async (dir, writer) => {
      const stale = await writer.changes(V2)
      await writer.book(await writer.changes(V3))
      const booked = await entries(dir)
      // These two calls cost the same under V3, or have no price in it.
      assert.deepEqual((await writer.book(stale)).calls, 2)
      assert.deepEqual(
        (await entries(dir)).filter((entry) => !booked.some((old) => String(old) === String(entry))),
        [
          ['req_02', -224n, 'rerate:v2'],
          ['req_06', -40n, 'rerate:v2'],
        ],
      )
    })
  })

  test('a second rerate starts from the amount paid after the first', async () => {
    await withLedger(create, async (dir, writer) => {
      await writer.book(await writer.changes(V2))
      await writer.book(await writer.changes(V3))
      assert.deepEqual(
        (await entries(dir)).filter((entry) => String(entry).startsWith('req_01')),
        [
          ['req_01', 400n, 'rerate:v2'],
          ['req_01', -320n, 'rerate:v3'],
        ],
      )
      // The first prices apply again: new entries undo all recorded differences.
      await writer.book(await writer.changes(pricesOf('v1', V1)))
      const paid = await dir.rows(
        "SELECT CAST(sum(amount_nanos) AS bigint) AS sum FROM credit_call WHERE call_id <> 'req_06'",
      )
      assert.equal(paid[0]?.['sum'], 0n)
    })
  })

  test('a rerate that exhausts the credit emits balance.exhausted once, with the balance', async () => {
    await withLedger(create, async (ledger, writer) => {
      const events = () =>
        ledger.rows("SELECT data, actor_kind FROM event WHERE type = 'balance.exhausted' ORDER BY id")
      // A hundred times the first price does not exhaust one dollar of credit.
      await writer.book(await writer.changes(pricesOf('v2', versionJson({ 'claude-haiku-5-5': 10_000 }))))
      assert.deepEqual(await events(), [])
      await writer.book(await writer.changes(pricesOf('v3', versionJson({ 'claude-haiku-5-5': 200_000 }))))
      await writer.book(await writer.changes(pricesOf('v4', versionJson({ 'claude-haiku-5-5': 300_000 }))))
      const [event, ...more] = await events()
      assert.deepEqual(more, [])
      assert.equal(event?.['actor_kind'], 'command_line')
      assert.match(String(event?.['data']), /"balance"/)
    })
  })

  test('a version cannot be applied twice', async () => {
    await withLedger(create, async (dir, writer) => {
      await writer.book(await writer.changes(V2))
      await writer.book(await writer.changes(V3))
      const [first] = await writer.read()
      assert.ok(first)
      assert.equal(rerateCall(first, V2), 'rerated_before')
      assert.equal((await entries(dir)).length, 11)
    })
  })

  test('settled calls are read in id order, after an id', async () => {
    await withLedger(create, async (_dir, writer) => {
      const ids = (calls: readonly RerateCandidate[]) => calls.map(({ id }) => id)
      const all = ['req_01', 'req_02', 'req_05', 'req_06', 'req_07', 'req_08', 'req_09']
      assert.deepEqual(ids(await writer.read()), all)
      assert.deepEqual(ids(await writer.read('req_06')), ['req_07', 'req_08', 'req_09'])
      assert.deepEqual(ids((await writer.read()).filter(({ unpriced }) => unpriced)), ['req_06'])
    })
  })

  test('a call keeps its price if it was credited, is unreadable, or has no new price', async () => {
    await withLedger(create, async (_dir, writer) => {
      const [call] = await writer.read()
      assert.ok(call)
      const because = (change: object, prices = V2) => rerateCall({ ...call, ...change }, prices)
      assert.equal(because({ credited: true }), 'credited_back')
      assert.equal(because({ usage: null }), 'no_usage')
      assert.equal(because({ rating: '?' }), 'unreadable')
      assert.equal(because({}, pricesOf('v4', versionJson({}))), 'no_price')
      assert.equal(because({}, pricesOf('v1', V1)), 'same_price')
    })
  })

  test('each call is rated with the version of its own time', async () => {
    await withLedger(create, async (_dir, writer) => {
      const november = Date.UTC(2026, 10, 1)
      const prices: CurrentPrices = {
        rateAgain,
        versionFor: (call) => (call.startedAtMs < november ? { id: 'v1', json: V1 } : V2.versionFor(call)),
      }
      assert.deepEqual(
        (await writer.changes(prices)).map(({ call, versionId }) => `${call.id} ${versionId}`),
        ['req_01 v2', 'req_02 v2', 'req_05 v2', 'req_06 v2', 'req_09 v2'],
      )
    })
  })

  test('a batch is not recorded at all if one of its calls has no rollup', async () => {
    await withLedger(create, async (dir, writer) => {
      const all = await writer.changes(V2)
      const strange = all.map((changed) => ({ ...changed, call: { ...changed.call, day: '1999-01-01' } }))
      await assert.rejects(
        writer.book([...all.slice(0, 3), ...strange.slice(3)]),
        /no rollup for (?:call req_06|a call)/,
      )
      assert.deepEqual(await entries(dir), [])
      assert.deepEqual(
        all.map(creditOf).reduce((sum, nanos) => sum + nanos, 0n),
        (await writer.book(all)).nanos,
      )
    })
  })
}

for (const [store, create] of BOTH) describe(`rerate on ${store}`, () => provePricingAgain(create))
