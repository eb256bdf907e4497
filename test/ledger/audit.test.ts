import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { audit as auditSnapshot } from '../../src/store/operations/audit.ts'
import { sql } from '../../src/store/operations/sql.ts'
import { openSqliteSnapshot } from '../../src/store/sqlite/database.ts'
import { closing } from '../store/conformance/fixtures.ts'
import { stopPostgres } from '../support/postgres.ts'
import { after, before, describe, test } from '../support/suite.ts'
import { BOTH } from './both-ledgers.ts'
import {
  audit,
  billed,
  DataDir,
  fillLedger,
  fillStore,
  rateAgain,
  rated,
  type TestLedger,
  withStore,
} from './test-ledger.ts'

after(stopPostgres)

const NO_TOKENS = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }
const call = (id: string, change: string): string => `UPDATE call SET ${change} WHERE id = '${id}'`
const day = "WHERE day = '2026-11-15' AND model = 'claude-haiku-5-5' AND key_id = 'key_b'"
const inDay = 'account_id default, day 2026-11-15, model claude-haiku-5-5, key_id key_b'
const credit = (kind: string, nanos: number, callId: string, once: string): string =>
  `INSERT INTO credit VALUES ('crd_2', 'default', '${kind}', ${nanos}, 'x', 'system', NULL, NULL, 0, 0, 0);
   INSERT INTO credit_call VALUES ('${callId}', '${once}', 'crd_2', ${nanos})`

const LOST = 'an interrupted call has lost its hold, and a settled one at most the rest of it'

/** Changes to the records, each with the difference that the audit must report. */
const TAMPERINGS: readonly (readonly [sql: string, what: string, where: string])[] = [
  [call('req_01', 'list_nanos = 1001'), 'list cost of a call', 'call req_01'],
  [call('req_01', `usage = '{"model":"claude-haiku-5-5","units":9}'`), 'cost of a call', 'call req_01'],
  [call('req_01', "rating = 'not JSON'"), 'price of a call', 'call req_01'],
  [call('req_01', 'usage = NULL'), 'cost of a call', 'call req_01'],
  [call('req_01', "price_version = 'v9'"), 'price of a call', 'call req_01'],
  [call('req_01', "day = '2026-12-15'"), 'its month is the month of its day', 'call req_01'],
  [call('req_01', 'output_tokens = -1'), 'no amount is negative', 'call req_01'],
  [call('req_08', 'overrun = false'), 'overrun says whether it cost more than its hold', 'call req_08'],
  [call('req_01', 'overrun = true'), 'overrun says whether it cost more than its hold', 'call req_01'],
  [call('req_03', 'cost_nanos = 1'), 'only a settled call costs something', 'call req_03'],
  [call('req_04', 'lost_list_nanos = 0'), LOST, 'call req_04'],
  [call('req_01', 'lost_list_nanos = 1'), LOST, 'call req_01'],
  [call('req_01', 'credited = true'), 'credited says whether it was credited back', 'call req_01'],
  ["UPDATE api_key SET account_id = 'other' WHERE id = 'key_b'", 'its key is of its account', 'call req_02'],
  ["UPDATE hold SET budget_id = 'bud_b'", 'its key is of its account and its budget', 'hold req_10'],
  ["UPDATE hold SET id = 'req_01'", 'its call has not ended', 'hold req_01'],
  ["UPDATE hold SET state = 'deferred'", 'it is polled if its cost comes later', 'hold req_10'],
  ['UPDATE account SET short_nanos = 1', 'account.short_nanos', 'id default'],
  ["UPDATE price_version SET json = replace(json, '100', '101')", 'cost of a call', 'call req_01'],
  ['UPDATE hold SET hold_nanos = 999', 'budget.held_nanos', 'id bud_a'],
  ['UPDATE hold SET account_hold_nanos = 999', 'account.held_nanos', 'id default'],
  ["UPDATE budget SET spent_nanos = spent_nanos + 1 WHERE id = 'bud_a'", 'budget.spent_nanos', 'id bud_a'],
  [
    "UPDATE budget SET day_spent_nanos = day_spent_nanos + 1 WHERE id = 'bud_a'",
    'budget.day_spent_nanos',
    'id bud_a',
  ],
  ["UPDATE budget SET lost_nanos = 1 WHERE id = 'bud_b'", 'budget.lost_nanos', 'id bud_b'],
  [`DELETE FROM rollup ${day}`, 'rollup.requests', inDay],
  [`UPDATE rollup SET estimated_requests = 9 ${day}`, 'rollup.estimated_requests', inDay],
  [`UPDATE rollup SET credited_nanos = 1 ${day}`, 'rollup.credited_nanos', inDay],
  [
    "INSERT INTO rollup (account_id, day, model, key_id, list_nanos) VALUES ('default', '2026-11-15', 'new', 'key_b', 1)",
    'rollup.list_nanos',
    'account_id default, day 2026-11-15, model new, key_id key_b',
  ],
  ['UPDATE account SET charged_nanos = charged_nanos - 1', 'account.charged_nanos', 'id default'],
  ['UPDATE account SET held_nanos = 0', 'account.held_nanos', 'id default'],
  ['UPDATE account SET credited_nanos = 0', 'account.credited_nanos', 'id default'],
  ['UPDATE credit SET amount_nanos = 0', 'a top-up adds credit', 'credit crd_1'],
  ['DELETE FROM credit', 'account.credited_nanos', 'id default'],
  [
    credit('correction', 1, 'req_99', 'rerate:v1'),
    'it is a settled call of the account of its entry',
    'credited call req_99',
  ],
  [credit('top_up', 1, 'req_01', 'credit_back'), 'credited says whether it was credited back', 'call req_01'],
  [credit('correction', 1, 'req_01', 'rerate:v9'), 'sum paid after a rerate', 'call req_01'],
  [credit('correction', 1, 'req_01', 'rerate:v1'), 'sum paid after a rerate', 'call req_01'],
  [
    `${credit('credit_back', 1, 'req_01', 'credit_back')}; ${call('req_01', 'credited = true')}`,
    'a credit-back returns all that was paid for the call',
    'credited call req_01',
  ],
]

for (const [store, create] of BOTH) {
  describe(`the audit on ${store}`, () => {
    let clean: TestLedger
    before(async () => {
      clean = await create()
      await fillLedger(clean)
    })
    after(() => clean.remove())

    test('an intact ledger has no difference', async () => {
      assert.deepEqual(await audit(clean), { calls: 9, credits: 1, removedMonths: [], difference: null })
    })

    test('a difference states what differs, where, and both amounts', async () => {
      const { difference } = await clean.auditAfter("UPDATE call SET cost_nanos = 801 WHERE id = 'req_01'")
      assert.deepEqual(difference, {
        what: 'cost of a call',
        where: 'call req_01',
        stored: '0.000000801 USD',
        derived: '0.0000008 USD',
      })
    })

    for (const [change, what, where] of TAMPERINGS) {
      test(`the audit reports "${what}" at ${where} after: ${change.replace(/\s+/g, ' ')}`, async () => {
        const { difference } = await clean.auditAfter(change)
        assert.equal(difference?.what, what)
        assert.equal(difference.where, where)
        assert.notEqual(difference.stored, difference.derived)
      })
    }

    test('a credited call, with all its effects, is not a difference', async () => {
      const { difference } = await clean.auditAfter(
        `${credit('credit_back', 800, 'req_09', 'credit_back')};
         UPDATE call SET credited = true WHERE id = 'req_09';
         UPDATE account SET credited_nanos = credited_nanos + 800;
         UPDATE rollup SET credited_nanos = credited_nanos + 800 ${day}`,
      )
      assert.equal(difference, null)
    })

    test('a call charged at its hold is not a difference, at any other sum it is', async () => {
      await using ledger = await create()
      await withStore(ledger, async (store) => {
        await fillStore(store)
        const { holdNanos, holdListNanos } = (await store.getCall('req_10')) ?? assert.fail()
        const figures = { costNanos: holdNanos, listNanos: holdListNanos, usage: null, estimated: true }
        await store.settle(closing('req_10', { ...figures, modelServed: null, tokens: NO_TOKENS }))
      })
      assert.equal((await audit(ledger)).difference, null)
      const { difference } = await ledger.auditAfter(call('req_10', 'hold_nanos = hold_nanos + 1'))
      assert.equal(difference?.what, 'cost of a call')
    })

    test('an interrupted call is not a difference, even if it settles later', async () => {
      await using ledger = await create()
      const nothing = { usage: null, costNanos: 0n, listNanos: 0n, modelServed: null }
      await withStore(ledger, async (store) => {
        await fillStore(store)
        await store.settle(closing('req_10', { ...nothing, state: 'interrupted' }))
        assert.equal((await audit(ledger)).difference, null)
        await store.settle(billed('req_10', 12))
      })
      assert.equal((await audit(ledger)).difference, null)
    })

    test('a socket is not a difference, but a handshake counted as a call is', async () => {
      await using ledger = await create()
      const nothing = { usage: null, costNanos: 0n, listNanos: 0n, modelServed: null }
      await withStore(ledger, async (store) => {
        await fillStore(store)
        const handshake = { socketId: 'req_11', modelAsked: null, hold: { kind: 'none' } } as const
        await store.admit(rated('req_11', 'a', handshake))
        await store.settle(closing('req_11', nothing))
        await store.admit(rated('req_12', 'a', { socketId: 'req_11' }))
        await store.settle(billed('req_12', 12))
      })
      assert.deepEqual(await audit(ledger), { calls: 11, credits: 1, removedMonths: [], difference: null })
      const counted = await ledger.auditAfter("UPDATE call SET requests = 1 WHERE id = 'req_11'")
      assert.equal(counted.difference?.what, 'rollup.requests')
    })

    test('a cause is reported before its consequences, and the lowest id first', async () => {
      const change =
        'UPDATE account SET charged_nanos = 0; UPDATE call SET list_nanos = list_nanos + 1 WHERE cost_nanos > 0'
      assert.equal((await clean.auditAfter(change)).difference?.where, 'call req_01')
    })

    test('the audit reads a snapshot, without changes made while it runs', async () => {
      await using ledger = await create()
      await fillLedger(ledger)
      const reader = await ledger.openReader()
      await reader.query(sql`SELECT 1 FROM call`)
      await ledger.tamper("UPDATE account SET held_nanos = 0; DELETE FROM call WHERE id > 'req_05'")
      const report = await auditSnapshot(reader.query, rateAgain)
      await reader.close()
      assert.deepEqual(report, { calls: 9, credits: 1, removedMonths: [], difference: null })
      assert.notEqual((await audit(ledger)).difference, null)
    })
  })
}

test('a folder without a database, or with an empty one, has nothing to audit', async () => {
  const dir = new DataDir()
  assert.equal(await openSqliteSnapshot(dir.file), null)
  assert.equal(existsSync(dir.file), false)
  await dir.tamper('CREATE TABLE other (id TEXT)')
  assert.equal(await openSqliteSnapshot(dir.file), null)
  await dir.remove()
})
