import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { systemClock } from '../../src/kernel/clock.ts'
import { type AuditReport, runAudit } from '../../src/ledger/audit.ts'
import type { BooksReader } from '../../src/ledger/audited.ts'
import {
  type ChangedCall,
  type CurrentPrices,
  type RerateSelection,
  type RerateWriter,
  rerateCall,
} from '../../src/ledger/rerate.ts'
import { booksIn } from '../../src/store/operations/audit-reader.ts'
import { sql } from '../../src/store/operations/sql.ts'
import {
  askAtLength,
  askOn,
  openBooks,
  openLedger,
  openRerateWriter,
  openSnapshot,
} from '../../src/store/postgres/ledger-snapshot.ts'
import type { Store } from '../../src/store/store.ts'
import { billed, rateAgain, rated, V1, versionJson } from '../ledger/books.ts'
import { startPickyPooler } from '../support/picky-pooler.ts'
import {
  createDatabase,
  createEmptyDatabase,
  openPatientPool,
  runOn,
  stopPostgres,
} from '../support/postgres.ts'
import { addCredit, addKey, closing, NOON } from './conformance/fixtures.ts'
import { openByCallersClock } from './postgres-under-test.ts'

after(stopPostgres)

/** A call of every kind and end, in two months. */
async function fillBooks(store: Store): Promise<void> {
  await addKey(store, 'a')
  await addKey(store, 'b')
  await addKey(store, 'poor', { monthlyBudgetNanos: 0n })
  await store.keepPriceVersion('v1', V1)
  await addCredit(store, 1_000_000_000n)
  await store.admit(rated('req_00', 'poor'))
  await store.admit(rated('req_01', 'a'))
  await store.settle(billed('req_01', 10))
  await store.admit(rated('req_02', 'b', { modelAsked: 'gpt-6-luna' }))
  await store.settle(billed('req_02', 7, { model: 'gpt-6-luna', estimated: true }))
  await store.admit(rated('req_03', 'a'))
  const nothing = { usage: null, costNanos: 0n, listNanos: 0n, modelServed: null }
  await store.settle(closing('req_03', { ...nothing, state: 'released' }))
  await store.admit(rated('req_04', 'a'))
  await store.admit(rated('req_05', 'b'))
  await store.interruptOpenCalls(NOON + 9_000)
  await store.settle(billed('req_05', 3))
  await store.admit(rated('req_06', 'b', { modelAsked: 'unheard-of' }))
  await store.settle(billed('req_06', 5, { model: 'unheard-of' }))
  await store.admit(rated('req_08', 'a', { atMs: Date.UTC(2026, 9, 31, 23, 59, 59, 999) }))
  await store.settle(billed('req_08', 10_000))
  await store.admit(rated('req_09', 'b'))
  await store.settle(billed('req_09', 10))
  const calls = [{ requestId: 'req_09', creditId: 'crd_back' }]
  await store.creditBack({ accountId: 'default', calls, reason: 'x', atMs: NOON }, null)
  await store.admit(rated('req_10', 'a'))
}

interface Books {
  readonly url: string
  readonly store: Store
}

function books(sentence: string, prove: (subject: Books) => Promise<void>): void {
  test(sentence, async () => {
    const database = await createDatabase()
    const store = await openByCallersClock(database.url)
    try {
      await fillBooks(store)
      await prove({ url: database.url, store })
    } finally {
      await store.close()
      await database.drop()
    }
  })
}

/** Runs an audit, and asserts too that every call is looked at twice. */
async function auditOf(open: BooksReader): Promise<AuditReport> {
  let seen: readonly [done: number, total: number] = [0, 0]
  const report = await runAudit(open, rateAgain, (done, total) => {
    seen = [done, total]
  })
  if (report.difference === null) assert.deepEqual(seen, [report.counts.calls * 2, report.counts.calls * 2])
  return report
}

async function audit(url: string): Promise<AuditReport> {
  const open = await openBooks(url)
  assert.ok(open)
  try {
    return await auditOf(open)
  } finally {
    await open.close()
  }
}

books('books that nobody tampered with have no difference, and every row is looked at', async ({ url }) => {
  const { counts, difference } = await audit(url)
  assert.equal(difference, null)
  assert.deepEqual([counts.calls, counts.keys, counts.days, counts.credits], [9, 3, 5, 2])
})

books('the books are audited as they stood, while calls are settled and credited', async ({ url, store }) => {
  const open = await openBooks(url)
  assert.ok(open)
  await store.settle(billed('req_10', 4))
  await store.admit(rated('req_11', 'b'))
  const calls = [{ requestId: 'req_10', creditId: 'crd_meanwhile' }]
  await store.creditBack({ accountId: 'default', calls, reason: 'x', atMs: NOON }, null)
  const { counts, difference } = await auditOf(open)
  await open.close()
  assert.deepEqual([counts.calls, counts.credits, difference], [9, 2, null])
  assert.equal((await audit(url)).counts.calls, 10)
})

books('the books can be audited at length, through a pooler too, and not be written to', async ({ url }) => {
  await runOn(url, `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET statement_timeout = '5s'`)
  const pooler = await startPickyPooler(url)
  try {
    const pool = await openLedger(pooler.url)
    assert.ok(pool)
    const snapshot = await openSnapshot(pool, (tx) => booksIn(askOn(tx)))
    const setting = async (name: string): Promise<unknown> =>
      (await snapshot.db.query('SELECT current_setting($1) AS value', [name]))[0]?.['value']
    assert.equal(await setting('statement_timeout'), '0')
    assert.equal(await setting('transaction_isolation'), 'repeatable read')
    assert.equal((await auditOf(snapshot.prepared)).difference, null)
    await assert.rejects(snapshot.db.query('UPDATE account SET held_nanos = 0'), /read-only transaction/)
    await snapshot.close()
    const db = openPatientPool(url)
    const [asked] = await askAtLength(db, sql`SELECT current_setting('statement_timeout') AS value`)
    await db.close()
    assert.equal(asked?.['value'], '0')
  } finally {
    await pooler.close()
  }
})

books(
  'a month that was put away is taken as it stands, and all the rest is audited as before',
  async ({ url, store }) => {
    const calls = [{ requestId: 'req_08', creditId: 'crd_october' }]
    await store.creditBack({ accountId: 'default', calls, reason: 'x', atMs: NOON }, null)
    await runOn(url, 'ALTER TABLE call DETACH PARTITION call_2026_10')
    const { counts, monthsAway, difference } = await audit(url)
    assert.deepEqual([counts.calls, monthsAway, difference], [8, ['2026-10'], null])
    const db = openPatientPool(url)
    for (const [tampering, what] of [
      ["UPDATE rollup SET cost_nanos = cost_nanos + 1 WHERE day < '2026-11'", 'spent of a key month'],
      ["UPDATE key_month SET spent_nanos = 0 WHERE month = '2026-10'", 'spent of a key month'],
      ["UPDATE key_month SET held_nanos = 1 WHERE month = '2026-10'", 'held of a key month'],
      ["DELETE FROM rollup WHERE day < '2026-11'", 'spent of a key month'],
      ["DELETE FROM call WHERE id = 'req_09'", 'spent of a key month'],
      ["UPDATE credit SET amount_nanos = 1 WHERE id = 'crd_october'", 'credited of an account'],
    ] as const) {
      let report: AuditReport | null = null
      const undone = db.transaction(async (tx) => {
        await tx.query(tampering)
        report = await auditOf(await booksIn(askOn(tx), 2))
        throw new Error('undo')
      })
      await assert.rejects(undone, /undo/)
      assert.equal((report as AuditReport | null)?.difference?.what, what, tampering)
    }
    await db.close()
  },
)

const TAMPERINGS: readonly (readonly [sql: string, what: string])[] = [
  ["UPDATE call SET cost_nanos = 801 WHERE id = 'req_01'", 'cost of a call'],
  ["UPDATE call SET overrun = true WHERE id = 'req_01'", 'overrun flag of a call'],
  ["UPDATE call SET ended_at_ms = NULL WHERE id = 'req_04'", 'end of a call that was interrupted'],
  ["UPDATE call SET lost_list_nanos = 0 WHERE id = 'req_04'", 'loss of a call'],
  ["UPDATE call SET price_version = 'v9' WHERE id = 'req_02'", 'price version of a call'],
  ["DELETE FROM call WHERE id = 'req_09'", 'call of a credit_back entry'],
  ["UPDATE credit SET amount_nanos = 9 WHERE id = 'crd_back'", 'amount of a credit-back'],
  ["UPDATE call SET credited = false WHERE id = 'req_09'", 'credited flag of a call'],
  ["UPDATE call SET credited = true WHERE id = 'req_01'", 'calls credited back'],
  ["DELETE FROM call WHERE id = 'req_02'", 'spent of a key month'],
  ["UPDATE key_month SET spent_nanos = 1 WHERE key_id = 'key_a'", 'spent of a key month'],
  ["UPDATE key_month SET held_nanos = 1 WHERE key_id = 'key_poor'", 'row of a key month'],
  ["DELETE FROM key_month WHERE key_id = 'key_a' AND month = '2026-11'", 'spent of a key month'],
  ["UPDATE key_month SET held_nanos = 1 WHERE key_id = 'key_a' AND month = '2026-11'", 'held of a key month'],
  ["UPDATE rollup SET requests = 9 WHERE key_id = 'key_b' AND model = 'gpt-6-luna'", 'requests of a rollup'],
  ["UPDATE rollup SET credited_nanos = 0 WHERE key_id = 'key_b'", 'credited of a rollup'],
  ["DELETE FROM rollup WHERE day = '2026-10-31'", 'requests of a rollup'],
  [
    "INSERT INTO rollup (account_id, day, model, key_id) VALUES ('default', '2026-11-01', 'm', 'key_a')",
    'row of a rollup',
  ],
  ['UPDATE account SET charged_nanos = charged_nanos + 1', 'charged of an account'],
  ['UPDATE account SET held_nanos = 0', 'held of an account'],
  ['UPDATE account SET credited_nanos = 0', 'credited of an account'],
  ['UPDATE account SET credit_enforced = false', 'enforced credit of an account'],
]

books('whatever is tampered with, the first difference is named', async ({ url }) => {
  const db = openPatientPool(url)
  for (const [tampering, what] of TAMPERINGS) {
    let report: AuditReport | null = null
    const undone = db.transaction(async (tx) => {
      await tx.query(tampering)
      report = await auditOf(await booksIn(askOn(tx), 2))
      throw new Error('undo')
    })
    await assert.rejects(undone, /undo/)
    assert.equal((report as AuditReport | null)?.difference?.what, what, tampering)
  }
  await db.close()
})

test('a database without books is told from books in order', async () => {
  const database = await createEmptyDatabase()
  assert.equal(await openBooks(database.url), null)
  assert.equal(await openRerateWriter(database.url, systemClock), null)
  await database.drop()
})

const ALL: RerateSelection = { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER, model: null, unpricedOnly: false }
const V2: CurrentPrices = {
  rateAgain,
  versionAt: () => ({
    id: 'v2',
    json: versionJson({ 'claude-haiku-5-5': 50, 'gpt-6-luna': 80, 'unheard-of': 10 }),
  }),
}

async function changes(writer: RerateWriter, selection = ALL): Promise<ChangedCall[]> {
  const calls = await writer.read(selection, '')
  return calls.map((call) => rerateCall(call, V2)).filter((rerated) => rerated.kind === 'changed')
}

books('calls priced again are booked once, and the books balance', async ({ url, store }) => {
  const writer = await openRerateWriter(url, systemClock)
  const beside = await openRerateWriter(url, systemClock)
  assert.ok(writer && beside)
  try {
    assert.equal(await writer.count(ALL), 6)
    assert.equal(await writer.count({ ...ALL, toMs: Date.UTC(2026, 10, 1) }), 1)
    assert.equal(await writer.count({ ...ALL, unpricedOnly: true }), 1)
    assert.equal(await writer.count({ ...ALL, model: 'gpt-6-luna' }), 1)
    assert.deepEqual(
      (await writer.read(ALL, 'req_05')).map(({ id }) => id),
      ['req_06', 'req_08', 'req_09'],
    )
    const changed = await changes(writer)
    // The call that was credited back keeps its price.
    assert.deepEqual(
      changed.map(({ call }) => call.id),
      ['req_01', 'req_02', 'req_05', 'req_06', 'req_08'],
    )
    const before = (await store.getBalance('default')).creditedNanos
    const booked = await Promise.all([writer.book(changed), beside.book(changed)])
    assert.equal(
      booked.reduce((sum, { calls }) => sum + calls, 0),
      5,
    )
    const moved = booked.reduce((sum, { nanos }) => sum + nanos, 0n)
    assert.equal((await store.getBalance('default')).creditedNanos - before, moved)
    assert.deepEqual(await writer.book(changed), { calls: 0, nanos: 0n })
    assert.deepEqual(await changes(writer), [])

    // Each call has several entries now, of which the last has an older id than the entry before.
    const calls = changed.map(({ call }) => ({ requestId: call.id, creditId: `crd_00_${call.id}` }))
    await store.creditBack({ accountId: 'default', calls, reason: 'x', atMs: NOON }, null)
    assert.equal((await audit(url)).difference, null)
    for (const batchRows of [1, 2, 3]) {
      const db = openPatientPool(url)
      const { counts, difference } = await db.transaction(async (tx) =>
        auditOf(await booksIn(askOn(tx), batchRows)),
      )
      assert.deepEqual([counts.credits, difference], [12, null])
      await db.close()
    }
  } finally {
    await Promise.all([writer.close(), beside.close()])
  }
})

books('a call that is credited back while it is priced again is given back once', async ({ url, store }) => {
  const writer = await openRerateWriter(url, systemClock)
  assert.ok(writer)
  try {
    const changed = await changes(writer)
    const ids = changed.map(({ call }) => call.id)
    const back = ids.map((requestId) =>
      store.creditBack(
        {
          accountId: 'default',
          calls: [{ requestId, creditId: `crd_of_${requestId}` }],
          reason: 'x',
          atMs: NOON,
        },
        null,
      ),
    )
    await Promise.all([writer.book(changed), ...back])
    assert.equal((await audit(url)).difference, null)
  } finally {
    await writer.close()
  }
})
