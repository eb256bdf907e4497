import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { test } from 'node:test'
import fc from 'fast-check'
import { admitOperation } from '../../src/store/sqlite/admit.ts'
import { prepareBatchRows } from '../../src/store/sqlite/batch-rows.ts'
import { callOperations, type OpenCalls } from '../../src/store/sqlite/calls.ts'
import { migrate } from '../../src/store/sqlite/migrate.ts'
import type { Command } from '../../src/store/sqlite/operations.ts'
import { prepareOperations } from '../../src/store/sqlite/prepare-operations.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { closing, NOON, newKey, opening, type Rows } from './conformance/fixtures.ts'
import { emptyBooks } from './empty-books.ts'

const TABLES = ['account', 'api_key', 'call', 'credit', 'hold_floor', 'key_month', 'rollup']
const KEYS = ['free', 'capped', 'other', 'listed']
const MONTH_LATER = NOON + 31 * 86_400_000

interface Books {
  readonly db: DatabaseSync
  /** Runs the commands in one transaction. Throws if it cannot be committed; nothing was done then. */
  batch(commands: readonly Command[]): unknown[]
  rows(table: string): Rows
}

function openBooks(): Books {
  const db = new DatabaseSync(':memory:', { readBigInts: true })
  db.deserialize(emptyBooks)
  db.prepare("INSERT INTO account (id, created_at_ms) VALUES ('second', 0)").run()
  const operations = prepareOperations(db)
  const books: Books = {
    db,
    batch(commands) {
      db.exec('BEGIN IMMEDIATE')
      try {
        const values = commands.map((command) => operations.run(command))
        operations.beforeCommit()
        db.exec('COMMIT')
        return values
      } catch (error) {
        operations.rolledBack()
        db.exec('ROLLBACK')
        throw error
      }
    },
    rows: (table) => db.prepare(`SELECT * FROM ${table}`).all(),
  }
  books.batch([
    ['createKey', newKey('free'), null],
    ['createKey', newKey('capped', { monthlyBudgetNanos: 3_000n }), null],
    ['createKey', newKey('other', { accountId: 'second' }), null],
    ['createKey', newKey('listed', { allowedModels: ['claude-haiku-5-5'] }), null],
  ])
  return books
}

/** A month in which no money was moved in the end may have a row of zeros or no row: both say the same. */
function tablesOf(books: Books): Record<string, Rows> {
  const isZero = (row: Record<string, unknown>): boolean =>
    row['spent_nanos'] === 0n && row['held_nanos'] === 0n && row['lost_nanos'] === 0n
  return Object.fromEntries(
    TABLES.map((table) => [table, books.rows(table).filter((row) => table !== 'key_month' || !isZero(row))]),
  )
}

/** The result of each command, or `failed`. */
function oneByOne(books: Books, commands: readonly Command[]): unknown[] {
  return commands.map((command) => {
    try {
      return books.batch([command])[0]
    } catch {
      return 'failed'
    }
  })
}

/** Runs commands as the store's thread does: together, and one by one where the batch fails. */
function together(books: Books, commands: readonly Command[]): unknown[] {
  try {
    return books.batch(commands)
  } catch {
    return oneByOne(books, commands)
  }
}

const requestId = fc.nat(7).map((n) => `req_${n}`)
const nanos = fc.constantFrom(0n, 1n, 700n, 1_000n, 2_500n)
const model = fc.constantFrom('claude-haiku-5-5', 'gpt-5', null)
const admission = fc
  .record({
    requestId,
    key: fc.constantFrom(...KEYS, 'unknown'),
    hold: fc.oneof(
      fc.constantFrom({ kind: 'none' } as const, { kind: 'unbounded' } as const),
      fc.record({ kind: fc.constant('bound' as const), nanos, listNanos: nanos }),
    ),
    atMs: fc.constantFrom(NOON, NOON + 1, NOON - 5, MONTH_LATER),
    modelAsked: model,
    askedBefore: fc.boolean(),
    hasBegun: fc.boolean(),
  })
  .map(({ key, requestId: id, ...more }): Command => ['admit', opening(id, key, more)])
const settlement = fc
  .record({
    requestId,
    costNanos: nanos,
    listNanos: nanos,
    modelServed: model,
    estimated: fc.boolean(),
    unpriced: fc.boolean(),
    state: fc.constantFrom('settled', 'settled', 'released', 'interrupted'),
  })
  .map(({ requestId: id, ...more }): Command => {
    if (more.state === 'settled') return ['settle', closing(id, more)]
    return ['settle', closing(id, { ...more, costNanos: 0n, listNanos: 0n })]
  })
const keyId = fc.constantFrom(...KEYS).map((name) => `key_${name}`)
const other: fc.Arbitrary<Command> = fc.oneof(
  fc.constant<Command>(['interruptOpenCalls', NOON + 900]),
  fc.constantFrom('default', 'second').map((id): Command => ['getBalance', id]),
  requestId.map((id): Command => ['getCall', id]),
  keyId.map((id): Command => ['getKey', 'default', id, NOON]),
  keyId.map((id): Command => ['revokeKey', 'default', id, NOON]),
  keyId.map((id): Command => ['updateKey', 'default', id, { monthlyBudgetNanos: 1_500n }, NOON]),
  fc.tuple(fc.nat(3), nanos).map(([n, amountNanos]): Command => {
    const id = `crd_${n}`
    return ['addCredit', { id, accountId: 'default', amountNanos, reason: 'top-up', atMs: NOON }, null]
  }),
  requestId.map((id): Command => {
    const calls = [{ requestId: id, creditId: `back_${id}` }]
    return ['creditBack', { accountId: 'default', calls, reason: 'outage', atMs: NOON }, null]
  }),
)
const commands = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: admission },
    { weight: 5, arbitrary: settlement },
    { weight: 2, arbitrary: other },
  ),
  { minLength: 1, maxLength: 24, size: 'max' },
)

test('commands that share a transaction come to what they come to one by one, whatever they are', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(commands, fc.boolean()), { minLength: 1, maxLength: 3 }), (batches) => {
      const [shared, single] = [openBooks(), openBooks()]
      for (const [all, withFailing] of batches) {
        const expected = oneByOne(single, all)
        // Where a command fails, all are run again one by one; only a batch without such a command shares a transaction.
        const stays = (_: unknown, i: number): boolean => withFailing || expected[i] !== 'failed'
        const batch = all.filter(stays)
        const values = withFailing ? together(shared, batch) : shared.batch(batch)
        assert.deepEqual(values, expected.filter(stays))
        assert.deepEqual(tablesOf(shared), tablesOf(single))
      }
      shared.db.close()
      single.db.close()
    }),
    { numRuns: 400 },
  )
})

test('a batch that fails in its middle leaves nothing behind, neither in the books nor in memory', () => {
  const books = openBooks()
  books.batch([['admit', opening('req_open', 'free')]])
  const before = tablesOf(books)
  assert.throws(() =>
    books.batch([
      ['admit', opening('req_lost', 'free')],
      ['settle', closing('req_open')],
      ['settle', closing('req_nowhere')],
    ]),
  )
  assert.deepEqual(tablesOf(books), before)
  books.batch([['getBalance', 'default']])
  assert.deepEqual(tablesOf(books), before)
  assert.throws(() => books.batch([['settle', closing('req_lost')]]), /there is no call/)
  assert.deepEqual(books.batch([['settle', closing('req_open')]]), [{ balanceNanos: -800n, booked: true }])
  books.db.close()
})

test('the thread of the store runs a batch with a failing command one by one, and books nothing twice', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-store-'))
  const store = await openSqliteStore(join(folder, 'tollgate.db'), (error) => {
    throw error
  })
  await store.createKey(newKey('free'), null)
  // The first command goes at once, and the commands that come while it runs are one batch.
  const outcomes = await Promise.allSettled([
    store.getBalance('default'),
    store.admit(opening('req_a', 'free')),
    store.settle(closing('req_nowhere')),
    store.admit(opening('req_b', 'free')),
    store.settle(closing('req_b')),
  ])
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'fulfilled'],
  )
  const balance = { creditedNanos: 0n, chargedNanos: 800n, heldNanos: 1_000n, enforced: false }
  assert.deepEqual(await store.getBalance('default'), balance)
  await store.close()
  rmSync(folder, { recursive: true })
})

test('a call is not remembered longer than it is open', () => {
  const db = new DatabaseSync(':memory:', { readBigInts: true })
  migrate(db)
  const rows = prepareBatchRows(db)
  const openCalls: OpenCalls = new Map()
  const { admit } = admitOperation(db, rows, openCalls)
  const { settle, interruptOpenCalls } = callOperations(db, rows, openCalls)
  prepareOperations(db).run(['createKey', newKey('free'), null])
  admit(opening('req_a', 'free'))
  admit(opening('req_b', 'free'))
  admit(opening('req_c', 'free'))
  assert.deepEqual([...openCalls.keys()], ['req_a', 'req_b', 'req_c'])
  settle(closing('req_a'))
  assert.deepEqual([...openCalls.keys()], ['req_b', 'req_c'])
  interruptOpenCalls(NOON + 900)
  assert.equal(openCalls.size, 0)
  db.close()
})

test('what becomes of a key between two calls of one batch counts for the second of them', () => {
  const books = openBooks()
  const kinds = books.batch([
    ['admit', opening('req_a', 'free')],
    ['updateKey', 'default', 'key_free', { monthlyBudgetNanos: 1n }, NOON],
    ['admit', opening('req_b', 'free')],
    ['updateKey', 'default', 'key_free', { monthlyBudgetNanos: null }, NOON],
    ['admit', opening('req_c', 'free')],
    ['revokeKey', 'default', 'key_free', NOON],
    ['admit', opening('req_d', 'free')],
  ]) as { kind?: string; refusal?: { reason: string } }[]
  assert.deepEqual(
    [0, 2, 4, 6].map((i) => kinds[i]?.refusal?.reason ?? kinds[i]?.kind),
    ['admitted', 'held', 'admitted', 'revoked_key'],
  )
  books.db.close()
})

test('a key is read once for all calls of a batch that come with it, and anew for the next batch', () => {
  const db = new DatabaseSync(':memory:', { readBigInts: true })
  migrate(db)
  prepareOperations(db).run(['createKey', newKey('free'), null])
  const rows = prepareBatchRows(db)
  const { digest } = newKey('free')
  const first = rows.key(digest, '2026-11')
  assert.equal(first?.[0], 'key_free')
  assert.equal(rows.key(Uint8Array.from(digest), '2026-11'), first)
  assert.notEqual(rows.key(digest, '2026-12'), first)
  assert.equal(rows.key(new Uint8Array(32), '2026-11'), undefined)
  db.exec('UPDATE api_key SET revoked_at_ms = 7')
  rows.write()
  assert.equal(rows.key(digest, '2026-11')?.[2], 7n)
  db.close()
})

test('what somebody else booked between two batches is seen by the second', () => {
  const books = openBooks()
  books.batch([
    ['admit', opening('req_a', 'capped')],
    ['admit', opening('req_b', 'free')],
  ])
  // Another process interrupts a call, spends the cap, and makes credit count.
  books.db.exec(`
    UPDATE call SET state = 'interrupted', cost_nanos = 0, list_nanos = 0, lost_list_nanos = 1250 WHERE id = 'req_a';
    UPDATE key_month SET held_nanos = 0, spent_nanos = 3000, lost_nanos = 1250 WHERE key_id = 'key_capped';
    UPDATE account SET held_nanos = 1000, credited_nanos = 5000, credit_enforced = 1 WHERE id = 'default';`)
  const [settled, refused, admitted] = books.batch([
    ['settle', closing('req_a')],
    ['admit', opening('req_c', 'capped')],
    ['admit', opening('req_d', 'free')],
  ]) as { kind?: string; booked?: boolean; balanceNanos: bigint }[]
  assert.deepEqual(settled, { balanceNanos: 4_200n, booked: true })
  assert.deepEqual([refused?.kind, admitted?.kind, admitted?.balanceNanos], ['refused', 'admitted', 4_200n])
  const [account] = books.rows('account')
  // The hold of the interrupted call was given back by the process that interrupted it.
  assert.deepEqual([account?.['held_nanos'], account?.['charged_nanos']], [2_000n, 800n])
  const month = books.rows('key_month').find((row) => row['key_id'] === 'key_capped')
  assert.deepEqual([month?.['held_nanos'], month?.['spent_nanos'], month?.['lost_nanos']], [0n, 3_800n, 0n])
  books.db.close()
})

test('a cap that is spent in a batch is spent for the rest of the batch', () => {
  const books = openBooks()
  const [, , refused] = books.batch([
    ['admit', opening('req_a', 'capped')],
    ['settle', closing('req_a', { costNanos: 3_000n })],
    ['admit', opening('req_b', 'capped')],
  ]) as { refusal?: { budget?: Record<string, unknown> } }[]
  const { spentNanos, heldNanos } = refused?.refusal?.budget ?? {}
  assert.deepEqual([spentNanos, heldNanos], [3_000n, 0n])
  books.db.close()
})

test('a cost above its hold in a batch is learned by the holds of the rest of the batch', () => {
  const books = openBooks()
  books.batch([
    ['admit', opening('req_a', 'free')],
    ['admit', opening('req_b', 'free')],
    ['settle', closing('req_a', { costNanos: 5_000n, listNanos: 6_000n })],
    ['admit', opening('req_c', 'free')],
  ])
  assert.deepEqual(
    books.rows('call').map((row) => row['hold_nanos']),
    [1_000n, 1_000n, 5_000n],
  )
  books.db.close()
})

test('floors are looked up only for a key that has some this month, and only for a bound', () => {
  const db = new DatabaseSync(':memory:', { readBigInts: true })
  migrate(db)
  for (const name of ['free', 'other']) prepareOperations(db).run(['createKey', newKey(name), null])
  const [rows, openCalls] = [prepareBatchRows(db), new Map()]
  let looks = 0
  const prepare = (sql: string): StatementSync => {
    const statement = db.prepare(sql)
    const { get } = statement
    statement.get = (...values) => {
      if (sql.includes('hold_floor')) looks += 1
      return Reflect.apply(get, statement, values)
    }
    return statement
  }
  const { admit } = admitOperation({ prepare } as DatabaseSync, rows, openCalls)
  const { settle } = callOperations(db, rows, openCalls)
  admit(opening('req_a', 'free'))
  settle(closing('req_a', { costNanos: 5_000n }))
  admit(opening('req_b', 'other'))
  admit(opening('req_c', 'free', { atMs: MONTH_LATER }))
  admit(opening('req_d', 'free', { hold: { kind: 'none' } }))
  admit(opening('req_e', 'free', { hold: { kind: 'unbounded' } }))
  assert.equal(looks, 0)
  admit(opening('req_f', 'free'))
  assert.equal(looks, 1)
  db.close()
})

test('a call that is opened and released in one batch leaves no row of its month', () => {
  const books = openBooks()
  books.batch([
    ['admit', opening('req_a', 'free')],
    ['settle', closing('req_a', { state: 'released', costNanos: 0n, listNanos: 0n })],
  ])
  assert.deepEqual(books.rows('key_month'), [])
  assert.deepEqual(books.rows('rollup'), [])
  const [key] = books.batch([['getKey', 'default', 'key_free', NOON]]) as { lastUsedAtMs?: number }[]
  assert.equal(key?.lastUsedAtMs, NOON)
  books.db.close()
})
