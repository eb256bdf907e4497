import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { runAudit } from '../../src/ledger/audit.ts'
import { openBooks } from '../../src/store/sqlite/ledger-file.ts'
import { addKey, closing, NOON } from '../store/conformance/fixtures.ts'
import { stopPostgres } from '../support/postgres.ts'
import { audit, type Books, billed, DataDir, fillBooks, rateAgain, rated, V1, withStore } from './books.ts'
import { BOTH } from './both-books.ts'

after(stopPostgres)

const call = (id: string, change: string): string => `UPDATE call SET ${change} WHERE id = '${id}'`
const month = "WHERE key_id = 'key_a' AND month = '2026-11'"
const day = "WHERE day = '2026-11-15' AND model = 'claude-haiku-5-5' AND key_id = 'key_b'"
const inMonth = 'key key_a, month 2026-11'
const inDay = 'day 2026-11-15, model claude-haiku-5-5, key key_b, account default'
const inFloor = 'key key_a, month 2026-10, endpoint /v1/messages, model claude-haiku-5-5'
const credit = (id: string, values: string): string =>
  `INSERT INTO credit (id, account_id, kind, amount_nanos, reason, call_id, once, at_ms)
   VALUES ('${id}', 'default', ${values}, 0)`

/** Tamperings with the books, each with the difference that the audit must name. */
const TAMPERINGS: readonly (readonly [sql: string, what: string, where: string])[] = [
  [call('req_01', 'cost_nanos = NULL'), 'cost of a settled call', 'call req_01'],
  [call('req_01', 'list_nanos = NULL'), 'list cost of a settled call', 'call req_01'],
  [call('req_01', 'list_nanos = 1001'), 'list cost of a call', 'call req_01'],
  [call('req_01', 'balance_nanos = NULL'), 'balance after a settled call', 'call req_01'],
  [call('req_01', 'ended_at_ms = NULL'), 'end of a settled call', 'call req_01'],
  [call('req_01', `usage = '{"model":"claude-haiku-5-5","units":9}'`), 'cost of a call', 'call req_01'],
  [call('req_01', `rating = '{"off":10}'`), 'cost of a call', 'call req_01'],
  [call('req_01', "rating = 'not JSON'"), 'price of a call', 'call req_01'],
  [call('req_01', 'usage = NULL'), 'cost of a call', 'call req_01'],
  [call('req_01', "price_version = 'v9'"), 'price version of a call', 'call req_01'],
  [call('req_01', "state = 'lost'"), 'state of a call', 'call req_01'],
  [call('req_01', "day = '2026-11-16'"), 'day of a call', 'call req_01'],
  [call('req_01', "month = '2026-12'"), 'month of a call', 'call req_01'],
  [call('req_01', 'started_at_ms = -1'), 'start of a call', 'call req_01'],
  [call('req_01', 'hold_nanos = -1'), 'hold of a call', 'call req_01'],
  [call('req_01', 'hold_list_nanos = -1'), 'list hold of a call', 'call req_01'],
  [call('req_01', 'input_tokens = -1'), 'input tokens of a call', 'call req_01'],
  [call('req_01', 'output_tokens = -1'), 'output tokens of a call', 'call req_01'],
  [call('req_01', 'cache_read_tokens = -1'), 'cache read tokens of a call', 'call req_01'],
  [call('req_01', 'cache_write_tokens = -1'), 'cache write tokens of a call', 'call req_01'],
  [call('req_01', 'lost_list_nanos = 5'), 'loss of a call', 'call req_01'],
  [call('req_08', 'overrun = false'), 'overrun flag of a call', 'call req_08'],
  [call('req_01', 'overrun = true'), 'overrun flag of a call', 'call req_01'],
  [call('req_03', 'cost_nanos = 1'), 'cost of a call', 'call req_03'],
  [call('req_03', 'balance_nanos = NULL'), 'balance after a released call', 'call req_03'],
  [call('req_04', 'cost_nanos = 1'), 'cost of a call', 'call req_04'],
  [call('req_04', 'list_nanos = NULL'), 'list cost of a call', 'call req_04'],
  [call('req_04', 'ended_at_ms = NULL'), 'end of a call that was interrupted', 'call req_04'],
  [call('req_04', 'lost_list_nanos = 0'), 'loss of a call', 'call req_04'],
  [call('req_06', 'cost_nanos = 1'), 'cost of a call', 'call req_06'],
  [call('req_07', 'cost_nanos = 1'), 'cost of a call', 'call req_07'],
  [call('req_10', 'cost_nanos = 0'), 'cost of a call in flight', 'call req_10'],
  [call('req_10', 'list_nanos = 0'), 'list cost of a call in flight', 'call req_10'],
  [call('req_10', 'balance_nanos = 0'), 'balance after a call in flight', 'call req_10'],
  [call('req_10', 'ended_at_ms = 0'), 'end of a call in flight', 'call req_10'],
  [call('req_10', 'hold_nanos = 999'), 'held of a key month', inMonth],
  [call('req_01', "key_id = 'key_b'"), 'spent of a key month', inMonth],
  [call('req_09', 'input_tokens = 11'), 'input tokens of a rollup', inDay],
  ["UPDATE price_version SET json = replace(json, '100', '101')", 'cost of a call', 'call req_01'],
  [`UPDATE key_month SET spent_nanos = spent_nanos + 1 ${month}`, 'spent of a key month', inMonth],
  [`UPDATE key_month SET held_nanos = held_nanos - 1 ${month}`, 'held of a key month', inMonth],
  [`UPDATE key_month SET lost_nanos = 0 ${month}`, 'lost of a key month', inMonth],
  [`DELETE FROM key_month ${month}`, 'spent of a key month', inMonth],
  [
    "INSERT INTO key_month (key_id, month, held_nanos) VALUES ('key_b', '2026-12', 1)",
    'row of a key month',
    'key key_b, month 2026-12',
  ],
  [`DELETE FROM rollup ${day}`, 'requests of a rollup', inDay],
  [
    "INSERT INTO rollup (account_id, day, model, key_id) VALUES ('default', '2026-11-15', 'new', 'key_b')",
    'row of a rollup',
    'day 2026-11-15, model new, key key_b, account default',
  ],
  ...[
    'requests',
    'input_tokens',
    'output_tokens',
    'cache_read_tokens',
    'cache_write_tokens',
    'cost_nanos',
    'list_nanos',
    'credited_nanos',
    'unpriced_requests',
    'estimated_requests',
  ].map(
    (column) =>
      [
        `UPDATE rollup SET ${column} = ${column} + 1 ${day}`,
        `${column.replace('_nanos', '').replaceAll('_', ' ')} of a rollup`,
        inDay,
      ] as const,
  ),
  ['UPDATE account SET credited_nanos = 0', 'credited of an account', 'account default'],
  ['UPDATE account SET charged_nanos = charged_nanos - 1', 'charged of an account', 'account default'],
  ['UPDATE account SET held_nanos = 0', 'held of an account', 'account default'],
  ['UPDATE account SET credit_enforced = false', 'enforced credit of an account', 'account default'],
  ['DELETE FROM credit', 'credited of an account', 'account default'],
  [
    'DELETE FROM credit; UPDATE account SET credited_nanos = 0',
    'enforced credit of an account',
    'account default',
  ],
  [
    "UPDATE api_key SET account_id = 'other' WHERE id = 'key_a'",
    'account of the calls of a key',
    'account default',
  ],
  ['UPDATE credit SET amount_nanos = amount_nanos + 1', 'credited of an account', 'account default'],
  ['UPDATE credit SET amount_nanos = 0', 'amount of a top-up', 'credit crd_1'],
  ["UPDATE credit SET call_id = 'req_01'", 'call of a top-up', 'credit crd_1, call req_01'],
  [credit('crd_2', "'top_up', 1, 'x', NULL, NULL"), 'credited of an account', 'account default'],
  [
    credit('crd_2', "'credit_back', 1, 'x', 'req_99', 'x'"),
    'call of a credit_back entry',
    'credit crd_2, call req_99',
  ],
  [
    credit('crd_2', "'credit_back', 1, 'x', 'req_03', 'x'"),
    'state of a credited call',
    'credit crd_2, call req_03',
  ],
  [
    credit('crd_2', "'credit_back', 1, 'x', 'req_01', 'x'"),
    'credited flag of a call',
    'credit crd_2, call req_01',
  ],
  [
    credit('crd_2', "'credit_back', -1, 'x', 'req_01', 'x'"),
    'amount of a credit-back',
    'credit crd_2, call req_01',
  ],
  ['UPDATE hold_floor SET nanos = nanos + 1', 'cost of a hold floor', inFloor],
  ['UPDATE hold_floor SET list_nanos = list_nanos - 1', 'list of a hold floor', inFloor],
  ["UPDATE hold_floor SET model = 'x'", 'cost of a hold floor', inFloor],
  ['DELETE FROM hold_floor', 'cost of a hold floor', inFloor],
  ['UPDATE key_month SET has_floors = false', 'mark of a hold floor', inFloor],
  [
    "INSERT INTO hold_floor VALUES ('key_b', '2026-11', '/v1/messages', 'x', 1, 1)",
    'row of a hold floor',
    'key key_b, month 2026-11, endpoint /v1/messages, model x',
  ],
  [call('req_01', 'credited = true'), 'calls credited back', 'account default'],
  [credit('crd_2', "'rerate', 1, 'x', 'req_01', 'x'"), 'once of a rerate', 'credit crd_2, call req_01'],
  [
    credit('crd_2', "'rerate', 1, 'x', 'req_01', 'rerate:v9'"),
    'price version of a rerate',
    'credit crd_2, call req_01',
  ],
  [
    credit('crd_2', "'rerate', 1, 'x', 'req_01', 'rerate:v1'"),
    'amount of a rerate',
    'credit crd_2, call req_01',
  ],
]

/** Tamperings that only one of the stores notices. */
const STRICT_TAMPERINGS: Readonly<Record<string, typeof TAMPERINGS>> = {
  // On PostgreSQL an admission makes the row before it knows whether the call is admitted.
  SQLite: [
    [
      "INSERT INTO key_month (key_id, month) VALUES ('key_b', '2026-01')",
      'row of a key month',
      'key key_b, month 2026-01',
    ],
  ],
}

for (const [store, create] of BOTH) {
  describe(`the audit on ${store}`, () => {
    let clean: Books
    before(async () => {
      clean = await create()
      await fillBooks(clean)
    })
    after(() => clean.remove())

    test('books that nobody tampered with have no difference', async () => {
      assert.deepEqual(await audit(clean), {
        counts: { calls: 10, keys: 2, months: 3, days: 5, credits: 1 },
        monthsAway: [],
        difference: null,
      })
    })

    test('a difference says what it is, where, and both amounts', async () => {
      const { difference } = await clean.auditAfter("UPDATE call SET cost_nanos = 801 WHERE id = 'req_01'")
      assert.deepEqual(difference, {
        what: 'cost of a call',
        where: 'call req_01',
        stored: '0.000000801 USD',
        derived: '0.0000008 USD',
      })
    })

    for (const [sql, what, where] of [...TAMPERINGS, ...(STRICT_TAMPERINGS[store] ?? [])]) {
      test(`it finds the ${what} at ${where} after: ${sql.replace(/\s+/g, ' ')}`, async () => {
        const { difference } = await clean.auditAfter(sql)
        assert.equal(difference?.what, what)
        assert.equal(difference.where, where)
        assert.notEqual(difference.stored, difference.derived)
      })
    }

    test('a call that was credited back, with all that this moves, is no difference', async () => {
      const { difference } = await clean.auditAfter(
        `${credit('crd_2', "'credit_back', 800, 'x', 'req_09', 'credit_back'")};
         UPDATE call SET credited = true WHERE id = 'req_09';
         UPDATE account SET credited_nanos = credited_nanos + 800;
         UPDATE rollup SET credited_nanos = credited_nanos + 800 ${day}`,
      )
      assert.equal(difference, null)
    })

    test('a call that was closed as interrupted is no difference, whatever becomes of it', async () => {
      const books = await create()
      try {
        await fillBooks(books)
        const nothing = { usage: null, costNanos: 0n, listNanos: 0n, modelServed: null }
        await withStore(books, async (store) => {
          await store.settle(closing('req_10', { ...nothing, state: 'interrupted' }))
        })
        assert.equal((await audit(books)).difference, null)
        await withStore(books, async (store) => {
          await store.settle(billed('req_10', 12))
        })
        assert.equal((await audit(books)).difference, null)
      } finally {
        await books.remove()
      }
    })

    test('a socket is no difference, and a handshake that is counted as a call is one', async () => {
      const books = await create()
      try {
        await fillBooks(books)
        const nothing = { usage: null, costNanos: 0n, listNanos: 0n, modelServed: null }
        await withStore(books, async (store) => {
          const handshake = { socketId: 'req_11', modelAsked: null, hold: { kind: 'none' } } as const
          await store.admit(rated('req_11', 'a', handshake))
          await store.settle(closing('req_11', nothing))
          await store.admit(rated('req_12', 'a', { socketId: 'req_11' }))
          await store.settle(billed('req_12', 12))
        })
        const { counts, difference } = await audit(books)
        assert.deepEqual([counts.calls, counts.days, difference], [12, 5, null])
        const counted = await books.auditAfter("UPDATE call SET requests = 1 WHERE id = 'req_11'")
        assert.equal(counted.difference?.what, 'requests of a rollup')
      } finally {
        await books.remove()
      }
    })

    test('the cause is named before its consequences, and the lowest id first', async () => {
      const sql = 'UPDATE account SET charged_nanos = 0; UPDATE call SET cost_nanos = cost_nanos + 1'
      assert.equal((await clean.auditAfter(sql)).difference?.where, 'call req_01')
    })

    test('what is booked while the audit runs is not in its view of the books', async () => {
      const books = await create()
      try {
        await fillBooks(books)
        const reader = await books.openReader()
        assert.equal((await reader.counts()).calls, 10)
        await books.tamper("UPDATE account SET held_nanos = 0; DELETE FROM call WHERE id > 'req_05'")
        const { counts, difference } = await runAudit(reader, rateAgain, () => {})
        await reader.close()
        assert.deepEqual([counts.calls, difference], [10, null])
        assert.equal((await audit(books)).counts.calls, 5)
        assert.notEqual((await audit(books)).difference, null)
      } finally {
        await books.remove()
      }
    })

    test('progress goes from nothing to all there is, for every call twice', async () => {
      const reader = await clean.openReader()
      const seen: [done: number, total: number][] = []
      await runAudit(reader, rateAgain, (done, total) => seen.push([done, total]))
      await reader.close()
      assert.deepEqual(seen, [
        [10, 20],
        [20, 20],
      ])
    })
  })
}

test('a folder without a database, or with one from before the ledger, has no books', async () => {
  const dir = new DataDir()
  assert.equal(await openBooks(dir.file), null)
  assert.equal(existsSync(dir.file), false)
  await dir.tamper('PRAGMA user_version = 1')
  assert.equal(await openBooks(dir.file), null)
  await dir.remove()
})

test('fifty thousand calls of two hundred days are audited, and one wrong nanodollar among them is found', async () => {
  const dir = new DataDir()
  try {
    const calls = Array.from({ length: 50_000 }, (_, i) => i)
    const idOf = (i: number): string => `req_${String(i).padStart(6, '0')}`
    const dayOf = (i: number): number => NOON + Math.floor(i / 250) * 86_400_000
    await withStore(dir, async (store) => {
      await addKey(store, 'a')
      await addKey(store, 'b')
      await store.keepPriceVersion('v1', V1)
      for (let start = 0; start < calls.length; start += 5_000) {
        const some = calls.slice(start, start + 5_000)
        const admit = (i: number) => store.admit(rated(idOf(i), i % 3 === 0 ? 'a' : 'b', { atMs: dayOf(i) }))
        await Promise.all(some.map(admit))
        await Promise.all(some.map((i) => store.settle(billed(idOf(i), i % 1_000))))
      }
    })
    assert.deepEqual(await audit(dir), {
      counts: { calls: 50_000, keys: 2, months: 16, days: 400, credits: 0 },
      monthsAway: [],
      difference: null,
    })
    await dir.tamper("UPDATE call SET list_nanos = list_nanos + 1 WHERE id = 'req_049998'")
    assert.equal((await audit(dir)).difference?.where, 'call req_049998')
  } finally {
    await dir.remove()
  }
})
