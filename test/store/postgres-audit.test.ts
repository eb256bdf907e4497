import assert from 'node:assert/strict'
import { systemClock } from '../../src/kernel/clock.ts'
import {
  type ChangedCall,
  type CurrentPrices,
  type RerateSelection,
  type RerateWriter,
  rerateCall,
} from '../../src/ledger/rerate.ts'
import { type AuditReport, audit as auditSnapshot } from '../../src/store/operations/audit.ts'
import { sql } from '../../src/store/operations/sql.ts'
import { askAtLength, openRerateWriter, openSnapshot } from '../../src/store/postgres/ledger.ts'
import type { Store } from '../../src/store/store.ts'
import { billed, rateAgain, rated, V1, versionJson } from '../ledger/test-ledger.ts'
import { startPickyPooler } from '../support/picky-pooler.ts'
import {
  createDatabase,
  createEmptyDatabase,
  openPatientPool,
  runOn,
  stopPostgres,
} from '../support/postgres.ts'
import { after, test } from '../support/suite.ts'
import { addCredit, addKey, closing, creditBackOf, NOON } from './conformance/fixtures.ts'
import { openByCallersClock } from './postgres-under-test.ts'

after(stopPostgres)

/** A call of every kind and end, in two months. */
async function fillLedger(store: Store): Promise<void> {
  await addKey(store, 'a')
  await addKey(store, 'b')
  await addKey(store, 'poor', { monthlyBudgetNanos: 0n })
  await store.storePriceVersion('v1', V1)
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
  await store.creditBack(creditBackOf(['req_09']), null)
  await store.admit(rated('req_10', 'a'))
}

interface Subject {
  readonly url: string
  readonly store: Store
}

function ledgerTest(sentence: string, prove: (subject: Subject) => Promise<void>): void {
  test(sentence, async () => {
    const database = await createDatabase()
    const store = await openByCallersClock(database.url)
    try {
      await fillLedger(store)
      await prove({ url: database.url, store })
    } finally {
      await store.close()
      await database.drop()
    }
  })
}

async function audit(url: string): Promise<AuditReport> {
  const snapshot = await openSnapshot(url)
  assert.ok(snapshot)
  try {
    return await auditSnapshot(snapshot.ask, rateAgain)
  } finally {
    await snapshot.close()
  }
}

ledgerTest('a snapshot has no deadline, through a pooler too, and cannot write', async ({ url }) => {
  await runOn(url, `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET statement_timeout = '5s'`)
  const pooler = await startPickyPooler(url)
  try {
    const snapshot = await openSnapshot(pooler.url)
    assert.ok(snapshot)
    const [row] = await snapshot.ask(sql`SELECT current_setting('statement_timeout') AS value`)
    assert.equal(row?.['value'], '0')
    assert.equal((await auditSnapshot(snapshot.ask, rateAgain)).difference, null)
    await assert.rejects(snapshot.ask(sql`UPDATE account SET held_nanos = 0`), /read-only transaction/)
    await snapshot.close()
    const db = openPatientPool(url)
    const [asked] = await askAtLength(db, sql`SELECT current_setting('statement_timeout') AS value`)
    await db.close()
    assert.equal(asked?.['value'], '0')
  } finally {
    await pooler.close()
  }
})

test('a database without our tables has no snapshot', async () => {
  const database = await createEmptyDatabase()
  assert.equal(await openSnapshot(database.url), null)
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

ledgerTest('calls priced again are booked once, and the ledger balances', async ({ url, store }) => {
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
    const back = creditBackOf(
      changed.map(({ call }) => call.id),
      'crd_00',
    )
    await store.creditBack(back, null)
    assert.equal((await audit(url)).difference, null)
  } finally {
    await Promise.all([writer.close(), beside.close()])
  }
})
