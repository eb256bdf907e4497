import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { runAudit } from '../../src/ledger/audit.ts'
import { openBooks } from '../../src/store/sqlite/audit-reader.ts'
import { addKey, NOON } from '../store/conformance/fixtures.ts'
import { billed, DataDir, fillBooks, rateAgain, rated, V1, withStore } from './books.ts'

const clean = new DataDir()
before(() => fillBooks(clean))
after(() => clean.remove())

function withCopy<T>(work: (dir: DataDir) => T): T {
  const dir = clean.copy()
  try {
    return work(dir)
  } finally {
    dir.remove()
  }
}

test('books that nobody tampered with have no difference', () => {
  assert.deepEqual(clean.audit(), {
    counts: { calls: 10, keys: 2, months: 3, days: 5, credits: 1 },
    difference: null,
  })
})

test('a difference says what it is, where, and both amounts', () => {
  withCopy((dir) => {
    dir.tamper("UPDATE call SET cost_nanos = 801 WHERE id = 'req_01'")
    assert.deepEqual(dir.audit().difference, {
      what: 'cost of a call',
      where: 'call req_01',
      stored: '0.000000801 USD',
      derived: '0.0000008 USD',
    })
  })
})

const call = (id: string, change: string): string => `UPDATE call SET ${change} WHERE id = '${id}'`
const month = "WHERE key_id = 'key_a' AND month = '2026-11'"
const day = "WHERE day = '2026-11-15' AND model = 'claude-haiku-5-5' AND key_id = 'key_b'"
const inMonth = 'key key_a, month 2026-11'
const inDay = 'day 2026-11-15, model claude-haiku-5-5, key key_b, account default'
const credit = (id: string, values: string): string =>
  `INSERT INTO credit (id, account_id, kind, amount_nanos, reason, call_id, once, at_ms)
   VALUES ('${id}', 'default', ${values}, 0)`

/** What is done to the books, and which difference must be named for it. */
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
  [call('req_08', 'overrun = 0'), 'overrun flag of a call', 'call req_08'],
  [call('req_01', 'overrun = 1'), 'overrun flag of a call', 'call req_01'],
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
    "INSERT INTO key_month (key_id, month) VALUES ('key_b', '2026-01')",
    'row of a key month',
    'key key_b, month 2026-01',
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
  ['UPDATE account SET credit_enforced = 0', 'enforced credit of an account', 'account default'],
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
  [call('req_01', 'credited = 1'), 'calls credited back', 'account default'],
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

for (const [sql, what, where] of TAMPERINGS) {
  test(`it finds the ${what} at ${where} after: ${sql.replace(/\s+/g, ' ')}`, () => {
    withCopy((dir) => {
      dir.tamper(sql)
      const { difference } = dir.audit()
      assert.equal(difference?.what, what)
      assert.equal(difference.where, where)
      assert.notEqual(difference.stored, difference.derived)
    })
  })
}

test('a call that was credited back, with all that this moves, is no difference', () => {
  withCopy((dir) => {
    dir.tamper(`${credit('crd_2', "'credit_back', 800, 'x', 'req_09', 'credit_back'")};
      UPDATE call SET credited = 1 WHERE id = 'req_09';
      UPDATE account SET credited_nanos = credited_nanos + 800;
      UPDATE rollup SET credited_nanos = credited_nanos + 800 ${day}`)
    assert.equal(dir.audit().difference, null)
  })
})

test('the cause is named before its consequences, and the lowest id first', () => {
  withCopy((dir) => {
    dir.tamper('UPDATE account SET charged_nanos = 0; UPDATE call SET cost_nanos = cost_nanos + 1')
    assert.equal(dir.audit().difference?.where, 'call req_01')
  })
})

test('what is booked while the audit runs is not in its view of the books', () => {
  withCopy((dir) => {
    let booked = false
    const { counts, difference } = dir.audit((record) => {
      if (!booked) dir.tamper("UPDATE account SET held_nanos = 0; DELETE FROM call WHERE id > 'req_05'")
      booked = true
      return rateAgain(record)
    })
    assert.equal(difference, null)
    assert.equal(counts.calls, 10)
    assert.equal(dir.audit().counts.calls, 5)
    assert.notEqual(dir.audit().difference, null)
  })
})

test('progress goes from nothing to all there is, for every call twice', () => {
  const books = openBooks(clean.file)
  assert.ok(books)
  const seen: [done: number, total: number][] = []
  runAudit(books, rateAgain, (done, total) => seen.push([done, total]))
  books.close()
  assert.deepEqual(seen, [
    [10, 20],
    [20, 20],
  ])
})

test('a folder without a database, or with one from before the ledger, has no books', () => {
  const dir = new DataDir()
  assert.equal(openBooks(dir.file), null)
  assert.equal(existsSync(dir.file), false)
  dir.tamper('PRAGMA user_version = 1')
  assert.equal(openBooks(dir.file), null)
  dir.remove()
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
    assert.deepEqual(dir.audit(), {
      counts: { calls: 50_000, keys: 2, months: 16, days: 400, credits: 0 },
      difference: null,
    })
    dir.tamper("UPDATE call SET list_nanos = list_nanos + 1 WHERE id = 'req_049998'")
    assert.equal(dir.audit().difference?.where, 'call req_049998')
  } finally {
    dir.remove()
  }
})
