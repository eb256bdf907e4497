import assert from 'node:assert/strict'
import type { CreditBackOutcome } from '../../src/ledger/ledger-store.ts'
import {
  type ChangedCall,
  type CurrentPrices,
  type Rerated,
  type RerateSelection,
  type RerateWriter,
  rerateCall,
} from '../../src/ledger/rerate.ts'
import { doneValue, NOON } from '../store/conformance/fixtures.ts'
import { stopPostgres } from '../support/postgres.ts'
import { after, describe, test } from '../support/suite.ts'
import { audit, type Books, fillBooks, rateAgain, versionJson, withStore } from './books.ts'
import { BOTH } from './both-books.ts'

after(stopPostgres)

/** Calls that are credited back and priced again, in either order, and the audit's findings. */

const ALL: RerateSelection = { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER, model: null, unpricedOnly: false }
const pricesOf = (id: string, rate: number): CurrentPrices => ({
  rateAgain,
  versionAt: () => ({ id, json: versionJson({ 'claude-haiku-5-5': rate }) }),
})
/** Other prices; calls were billed at 100. */
const HALF = pricesOf('half', 50)
const DOUBLE = pricesOf('double', 200)
const FREE = pricesOf('free', 0)

async function withBooks(
  create: () => Promise<Books>,
  work: (books: Books, writer: RerateWriter) => Promise<void>,
): Promise<void> {
  const books = await create()
  try {
    await fillBooks(books)
    const writer = await books.openWriter()
    try {
      await work(books, writer)
    } finally {
      await writer.close()
    }
  } finally {
    await books.remove()
  }
}

async function creditBack(dir: Books, id: string, creditId = `crd_${id}`): Promise<CreditBackOutcome> {
  let outcome: CreditBackOutcome | undefined
  await withStore(dir, async (store) => {
    const calls = [{ requestId: id, creditId }]
    const command = { accountId: 'default', calls, reason: 'stolen', atMs: NOON }
    outcome = doneValue(await store.creditBack(command, null)).calls[0]
  })
  assert.ok(outcome)
  return outcome
}

async function rerated(writer: RerateWriter, id: string, prices: CurrentPrices): Promise<Rerated[]> {
  const calls = await writer.read(ALL, '')
  return calls.filter((call) => call.id === id).map((call) => rerateCall(call, prices))
}

async function changed(writer: RerateWriter, id: string, prices: CurrentPrices): Promise<ChangedCall[]> {
  return (await rerated(writer, id, prices)).filter((each) => each.kind === 'changed')
}

async function paidFor(books: Books, id: string): Promise<unknown> {
  const [row] = await books.rows(
    `SELECT cost_nanos - (SELECT CAST(coalesce(sum(amount_nanos), 0) AS bigint) FROM credit WHERE call_id = call.id)
       AS paid
     FROM call WHERE id = '${id}'`,
  )
  return row?.['paid']
}

const IN_DAY = 'account_id default, day 2026-11-15, model claude-haiku-5-5, key_id key_a'
const RETURNS_ALL = 'a credit-back returns all that was paid for the call'
const IS_FLAGGED = 'credited says whether it was credited back'

/** Tamperings with books in which req_01 was credited back, each with the difference that the audit must name. */
const TAMPERINGS: readonly (readonly [sql: string, what: string, where: string])[] = [
  ["UPDATE credit SET amount_nanos = 799 WHERE id = 'crd_req_01'", RETURNS_ALL, 'credit crd_req_01'],
  ["UPDATE credit SET amount_nanos = 0 WHERE id = 'crd_req_01'", RETURNS_ALL, 'credit crd_req_01'],
  [
    "UPDATE credit SET once = 'again' WHERE id = 'crd_req_01'",
    'a call is credited back once',
    'credit crd_req_01',
  ],
  [
    `INSERT INTO credit SELECT 'crd_zz', account_id, kind, amount_nanos, reason, call_id, 'again', at_ms
     FROM credit WHERE id = 'crd_req_01'`,
    RETURNS_ALL,
    'credit crd_req_01',
  ],
  ["UPDATE call SET credited = false WHERE id = 'req_01'", IS_FLAGGED, 'call req_01'],
  ["DELETE FROM credit WHERE id = 'crd_req_01'", IS_FLAGGED, 'call req_01'],
  ["UPDATE rollup SET credited_nanos = 0 WHERE key_id = 'key_a'", 'rollup.credited_nanos', IN_DAY],
  ['UPDATE account SET credited_nanos = credited_nanos - 800', 'account.credited_nanos', 'id default'],
]

function proveCreditsBack(create: () => Promise<Books>): void {
  test('books with calls that were credited back have no difference', async () => {
    await withBooks(create, async (dir) => {
      for (const id of ['req_01', 'req_02', 'req_05', 'req_08']) {
        assert.equal((await creditBack(dir, id)).kind, 'credited')
        assert.equal(await paidFor(dir, id), 0n)
        assert.equal((await audit(dir)).difference, null)
      }
    })
  })

  test('after a rerate only what was paid in all is given back', async () => {
    for (const [prices, paid] of [
      [HALF, 400n],
      [DOUBLE, 1_600n],
    ] as const) {
      await withBooks(create, async (dir, writer) => {
        await writer.book(await changed(writer, 'req_01', prices))
        const outcome = await creditBack(dir, 'req_01')
        assert.equal(outcome.kind === 'credited' && outcome.amountNanos, paid)
        assert.equal(await paidFor(dir, 'req_01'), 0n)
        assert.equal((await audit(dir)).difference, null)
      })
    }
  })

  test('of a call that a rerate has made free there is nothing to give back', async () => {
    await withBooks(create, async (dir, writer) => {
      await writer.book(await changed(writer, 'req_01', FREE))
      assert.equal((await creditBack(dir, 'req_01')).kind, 'nothing_to_credit')
      assert.equal((await audit(dir)).difference, null)
    })
  })

  test('a call that was credited back is not priced again', async () => {
    await withBooks(create, async (dir, writer) => {
      await creditBack(dir, 'req_01')
      for (const prices of [HALF, DOUBLE]) {
        assert.deepEqual(await rerated(writer, 'req_01', prices), [
          { kind: 'kept', because: 'credited_back' },
        ])
      }
      assert.equal(await paidFor(dir, 'req_01'), 0n)
    })
  })

  test('a rerate that read a call before it was credited back books nothing', async () => {
    await withBooks(create, async (dir, writer) => {
      const stale = [...(await changed(writer, 'req_01', HALF)), ...(await changed(writer, 'req_09', DOUBLE))]
      await creditBack(dir, 'req_01')
      await creditBack(dir, 'req_09')
      assert.deepEqual(await writer.book(stale), { calls: 0, nanos: 0n })
      assert.equal((await audit(dir)).difference, null)
    })
  })

  test('a rerate books nothing either where the credits come to what they were when it read the call', async () => {
    await withBooks(create, async (dir, writer) => {
      await writer.book(await changed(writer, 'req_01', FREE))
      const stale = await changed(writer, 'req_01', DOUBLE)
      await writer.book(await changed(writer, 'req_01', HALF))
      await creditBack(dir, 'req_01')
      assert.deepEqual(await writer.book(stale), { calls: 0, nanos: 0n })
      assert.equal(await paidFor(dir, 'req_01'), 0n)
      assert.equal((await audit(dir)).difference, null)
    })
  })

  test('a credit-back whose id is older than that of the rerate before it is no difference', async () => {
    await withBooks(create, async (dir, writer) => {
      await writer.book(await changed(writer, 'req_01', HALF))
      await creditBack(dir, 'req_01', 'crd_00')
      assert.equal((await audit(dir)).difference, null)
    })
  })

  for (const [sql, what, where] of TAMPERINGS) {
    test(`the audit names “${what}” after: ${sql.replace(/\s+/g, ' ')}`, async () => {
      await withBooks(create, async (dir) => {
        await creditBack(dir, 'req_01')
        assert.equal((await audit(dir)).difference, null)
        await dir.tamper(sql)
        const { difference } = await audit(dir)
        assert.equal(difference?.what, what)
        assert.equal(difference.where, where)
        assert.notEqual(difference.stored, difference.derived)
      })
    })
  }

  test('the audit finds a rerate that was booked after a credit-back', async () => {
    await withBooks(create, async (dir, writer) => {
      const [stale] = await changed(writer, 'req_01', HALF)
      assert.ok(stale)
      await creditBack(dir, 'req_01')
      await dir.tamper(`INSERT INTO credit VALUES ('crd_zz', 'default', 'rerate', 400, 'x', 'req_01', 'rerate:half', 0);
      INSERT INTO price_version VALUES ('half', '${stale.version.json}')`)
      assert.equal((await audit(dir)).difference?.what, RETURNS_ALL)
    })
  })
}

for (const [store, create] of BOTH) describe(`credits back on ${store}`, () => proveCreditsBack(create))
