import assert from 'node:assert/strict'
import { type ChangedCall, type CurrentPrices, rerateCall } from '../../src/ledger/rerate.ts'
import { creditBackOf } from '../store/conformance/fixtures.ts'
import { stopPostgres } from '../support/postgres.ts'
import { after, describe, test } from '../support/suite.ts'
import { BOTH } from './both-ledgers.ts'
import {
  audit,
  type RerateWriter,
  rateAgain,
  type TestLedger,
  versionJson,
  withRerates,
} from './test-ledger.ts'

after(stopPostgres)

const pricesOf = (id: string, rate: number): CurrentPrices => ({
  rateAgain,
  versionFor: () => ({ id, json: versionJson({ 'claude-haiku-5-5': rate }) }),
})
/** Other prices; calls were charged 100. */
const HALF = pricesOf('half', 50)
const DOUBLE = pricesOf('double', 200)

/** The amount credited; null if nothing was left to credit. */
async function creditBack({ store }: RerateWriter, id: string): Promise<bigint | null> {
  const result = await store.creditBack(creditBackOf([id], `crd_${id}`), null)
  return result.kind === 'done' ? result.value.entry.amountNanos : null
}

async function changed(writer: RerateWriter, id: string, prices: CurrentPrices): Promise<ChangedCall[]> {
  return (await writer.changes(prices)).filter(({ call }) => call.id === id)
}

async function paidFor(ledger: TestLedger, id: string): Promise<unknown> {
  const [row] = await ledger.rows(
    `SELECT cost_nanos - (SELECT CAST(coalesce(sum(amount_nanos), 0) AS bigint) FROM credit_call WHERE call_id = call.id)
       AS paid
     FROM call WHERE id = '${id}'`,
  )
  return row?.['paid']
}

const IN_DAY = 'account_id default, day 2026-11-15, model claude-haiku-5-5, key_id key_a'
const IS_SUM = 'an entry about calls is the sum of what it moved for them'
const RETURNS_ALL = 'a credit-back returns all that was paid for the call'
const IS_FLAGGED = 'credited says whether it was credited back'

/** Changes after req_01 was credited back, each with the difference that the audit must report. */
const TAMPERINGS: readonly (readonly [sql: string, what: string, where: string])[] = [
  ["UPDATE credit SET amount_nanos = 799 WHERE id = 'crd_req_01'", IS_SUM, 'credit crd_req_01'],
  ['UPDATE credit_call SET amount_nanos = 799', IS_SUM, 'credit crd_req_01'],
  [
    "UPDATE credit SET amount_nanos = 1 WHERE id = 'crd_req_01'; UPDATE credit_call SET amount_nanos = 1",
    RETURNS_ALL,
    'credited call req_01',
  ],
  ["UPDATE credit_call SET once = 'again'", IS_FLAGGED, 'call req_01'],
  ["UPDATE call SET credited = false WHERE id = 'req_01'", IS_FLAGGED, 'call req_01'],
  ['DELETE FROM credit_call', IS_FLAGGED, 'call req_01'],
  [
    "DELETE FROM credit WHERE id = 'crd_req_01'",
    'it is a settled call of the account of its entry',
    'credited call req_01',
  ],
  ["UPDATE rollup SET credited_nanos = 0 WHERE key_id = 'key_a'", 'rollup.credited_nanos', IN_DAY],
  ['UPDATE account SET credited_nanos = credited_nanos - 800', 'account.credited_nanos', 'id default'],
]

function proveCreditsBack(create: () => Promise<TestLedger>): void {
  test('a ledger with credited calls has no difference', async () => {
    await withRerates(create, async (dir, writer) => {
      for (const id of ['req_01', 'req_02', 'req_05', 'req_08']) {
        assert.notEqual(await creditBack(writer, id), null)
        assert.equal(await paidFor(dir, id), 0n)
        assert.equal((await audit(dir)).difference, null)
      }
    })
  })

  test('after a rerate the credit is the amount paid in total', async () => {
    for (const [prices, paid] of [
      [HALF, 400n],
      [DOUBLE, 1_600n],
    ] as const) {
      await withRerates(create, async (dir, writer) => {
        await writer.book(await changed(writer, 'req_01', prices))
        assert.equal(await creditBack(writer, 'req_01'), paid)
        assert.equal(await paidFor(dir, 'req_01'), 0n)
        assert.equal((await audit(dir)).difference, null)
      })
    }
  })

  test('a credited call is not rerated', async () => {
    await withRerates(create, async (dir, writer) => {
      await creditBack(writer, 'req_01')
      for (const prices of [HALF, DOUBLE]) {
        const [call] = await writer.read()
        assert.ok(call?.id === 'req_01')
        assert.equal(rerateCall(call, prices), 'credited_back')
      }
      assert.equal(await paidFor(dir, 'req_01'), 0n)
    })
  })

  test('a rerate that read a call before its credit-back records nothing', async () => {
    await withRerates(create, async (dir, writer) => {
      const stale = [...(await changed(writer, 'req_01', HALF)), ...(await changed(writer, 'req_09', DOUBLE))]
      await creditBack(writer, 'req_01')
      await creditBack(writer, 'req_09')
      assert.deepEqual(await writer.book(stale), { calls: 0, nanos: 0n })
      assert.equal((await audit(dir)).difference, null)
    })
  })

  test('the audit reports tampering', async (t) => {
    await withRerates(create, async (dir, writer) => {
      await creditBack(writer, 'req_01')
      assert.equal((await audit(dir)).difference, null)
      for (const [sql, what, where] of TAMPERINGS) {
        await t.test(`“${what}” after: ${sql.replace(/\s+/g, ' ')}`, async () => {
          const { difference } = await dir.auditAfter(sql)
          assert.equal(difference?.what, what)
          assert.equal(difference.where, where)
          assert.notEqual(difference.stored, difference.derived)
        })
      }
    })
  })

  test('the audit finds a rerate that was recorded after a credit-back', async () => {
    await withRerates(create, async (dir, writer) => {
      await changed(writer, 'req_01', HALF)
      await creditBack(writer, 'req_01')
      await dir.tamper(`INSERT INTO credit
        VALUES ('crd_zz', 'default', 'correction', 400, 'x', 'command_line', NULL, NULL, 0, 0, 0);
      INSERT INTO credit_call VALUES ('req_01', 'rerate:half', 'crd_zz', 400)`)
      assert.equal((await audit(dir)).difference?.what, RETURNS_ALL)
    })
  })
}

for (const [store, create] of BOTH) describe(`credits back on ${store}`, () => proveCreditsBack(create))
