import assert from 'node:assert/strict'
import pg from 'pg'
import { SYSTEM } from '../../src/kernel/actor.ts'
import { createLog } from '../../src/kernel/log.ts'
import { applyBatch, type CallCommand } from '../../src/store/operations/apply-batch.ts'
import { createBatchCache } from '../../src/store/operations/batch-rows.ts'
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts'
import { dialectOf, runBatchOnPostgres } from '../../src/store/postgres/run-operation.ts'
import { openPatientPool, stopPostgres } from '../support/postgres.ts'
import { after, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { assertConserved } from './conformance/conservation.ts'
import { addKey, closing, NOON, opening } from './conformance/fixtures.ts'
import { ids, nodesTest, waitingIn } from './nodes-under-test.ts'
import { openByCallersClock, openTestDatabase } from './postgres-under-test.ts'

after(stopPostgres)

const openBeating = (url: string, name: string, beatEveryMs: number | null, silentMs: number) =>
  openPostgresStore(url, {
    clock: 'database',
    node: { name, alone: false, beatEveryMs, silentMs },
    log: createLog('silent'),
  })

nodesTest(
  'a fenced node admits nothing until it registers again, and its late settlement counts once',
  ['silent', 'other'],
  async ([silent, other], database) => {
    assert.ok(silent !== undefined && other !== undefined)
    await addKey(silent, 'a')
    await silent.admit(opening('req_1', 'a'))
    await silent.admit(opening('req_2', 'a'))
    await database.query("UPDATE node SET fenced_at_ms = 1 WHERE name = 'silent'")
    assert.equal(await other.interruptOpenCalls(NOON + 9_000), 2)
    assert.equal((await other.getCall('req_1'))?.state, 'interrupted')
    assert.equal((await other.getBalance('default')).heldNanos, 0n)

    assert.equal((await silent.admit(opening('req_3', 'a'))).kind, 'admitted')
    const registrations = await database.query("SELECT id FROM node WHERE name = 'silent'")
    const [call] = await database.query("SELECT node_id FROM hold WHERE id = 'req_3'")
    assert.deepEqual(registrations, [{ id: call?.['node_id'] }])

    assert.equal((await silent.settle(closing('req_1'))).applied, true)
    assert.equal((await other.settle(closing('req_1'))).applied, false)
    assert.equal((await other.getCall('req_1'))?.state, 'settled')
    // Calls of the old registration are not read again, and those of the new one are unchanged.
    assert.equal(await other.interruptOpenCalls(NOON + 9_001), 0)
    assert.equal((await other.getCall('req_3'))?.state, 'in_flight')
  },
)

for (const [what, change] of [
  ['of a former epoch of its node', 'epoch = epoch + 1'],
  ['of a fenced node with open calls', 'fenced_at_ms = 1'],
] as const) {
  nodesTest(`a batch ${what} neither admits nor settles`, ['a'], async ([store], database) => {
    assert.ok(store !== undefined)
    await addKey(store, 'a')
    await store.admit(opening('req_1', 'a'))
    const [node] = await database.query('SELECT id, epoch FROM node')
    const pool = openPatientPool(database.url)
    const stale = { id: String(node?.['id']), epoch: BigInt(String(node?.['epoch'])) }
    const parts = { node: stale, clock: 'caller', cache: createBatchCache() } as const
    await database.query(`UPDATE node SET ${change}`)
    const calls: CallCommand[] = [
      ['admit', opening('req_2', 'a')],
      ['settle', closing('req_1')],
    ]
    assert.equal(
      await runBatchOnPostgres(pool, () => applyBatch(calls, parts), dialectOf('caller')),
      'fenced',
    )
    await pool.close()
    assert.deepEqual(
      (await database.query('SELECT id, state FROM hold')).map(({ state }) => state),
      ['in_flight'],
    )
    assert.equal((await store.admit(opening('req_2', 'a'))).kind, 'admitted')
  })
}

nodesTest(
  'a node whose epoch was raised without an answer keeps its calls, and admits with the raised epoch',
  ['a'],
  async ([store], database) => {
    assert.ok(store !== undefined)
    await addKey(store, 'a')
    await store.admit(opening('req_1', 'a'))
    const before = await database.query('SELECT id FROM node')
    await database.query('UPDATE node SET epoch = epoch + 1')
    assert.equal((await store.admit(opening('req_2', 'a'))).kind, 'admitted')
    assert.deepEqual(await database.query('SELECT id FROM node'), before)
    assert.equal((await store.getCall('req_1'))?.state, 'in_flight')
    assert.equal((await store.settle(closing('req_1'))).applied, true)
  },
)

nodesTest(
  'two nodes that sweep a dead one interrupt and count each of its calls once',
  ['dead', 'a', 'b'],
  async ([dead, a, b], database) => {
    assert.ok(dead !== undefined && a !== undefined && b !== undefined)
    await addKey(dead, 'a')
    await Promise.all(ids(500).map((id) => dead.admit(opening(id, 'a'))))
    await database.query("UPDATE node SET fenced_at_ms = 1 WHERE name = 'dead'")
    const counts = await Promise.all([a, b].map((store) => store.interruptOpenCalls(NOON + 1_000)))
    assert.equal(
      counts.reduce((sum, calls) => sum + calls),
      500,
    )
    assert.equal((await a.getBalance('default')).heldNanos, 0n)
  },
)

test('PostgreSQL, 2 nodes: a sweep that takes long does not delay the heartbeat', async () => {
  const database = await openTestDatabase()
  const open = (name: string, beatEveryMs: number | null) => openBeating(database.url, name, beatEveryMs, 100)
  const dead = await open('dead', null)
  await addKey(dead, 'a')
  await addKey(dead, 'b')
  await dead.admit(opening('req_1', 'a'))
  const other = new pg.Client(database.url)
  await other.connect()
  await other.query(
    "BEGIN; SELECT 1 FROM budget b JOIN api_key k ON k.budget_id = b.id WHERE k.id = 'key_a' FOR UPDATE OF b",
  )
  const sweeping = await open('sweeping', 10)
  await sweeping.admit(opening('req_2', 'b'))
  const seenAt = async () => {
    const [node] = await database.query("SELECT seen_at_ms FROM node WHERE name = 'sweeping'")
    return Number(node?.['seen_at_ms'])
  }
  await until('the sweep waits for the budget', async () => (await waitingIn(database)) > 0)
  const before = await seenAt()
  await until('the node is seen while it sweeps', async () => (await seenAt()) > before)
  assert.ok((await waitingIn(database)) > 0)
  await other.query('COMMIT')
  await other.end()
  await until('the call of the dead node is interrupted', async () => {
    return (await sweeping.getCall('req_1'))?.state === 'interrupted'
  })
  await sweeping.settle(closing('req_2'))
  await sweeping.close()
  await assertConserved(database)
  await dead.close()
  await database.close()
})

nodesTest(
  'a process that restarts under its name interrupts the calls it left open',
  ['a'],
  async ([store], database) => {
    assert.ok(store !== undefined)
    await addKey(store, 'a')
    await store.admit(opening('req_1', 'a'))
    const next = await openByCallersClock(database.url, {
      node: { name: 'a', alone: true, beatEveryMs: null },
    })
    assert.equal(await next.interruptOpenCalls(NOON + 1_000), 1)
    await next.close()
  },
)

nodesTest(
  'a process that only manages keys does not register as a node',
  ['a'],
  async ([store], database) => {
    assert.ok(store !== undefined)
    await addKey(store, 'a')
    await store.getBalance('default')
    assert.deepEqual(await database.rows('node'), [])
  },
)

test('PostgreSQL, 2 nodes: a silent node is fenced by the other, and a closing node signs off', async () => {
  const database = await openTestDatabase()
  const open = (name: string, beatEveryMs: number | null) => openBeating(database.url, name, beatEveryMs, 300)
  const silent = await open('silent', null)
  const beating = await open('beating', 20)
  await addKey(silent, 'a')
  await silent.admit(opening('req_1', 'a'))
  await beating.admit(opening('req_2', 'a'))
  await until('the call of the silent node is interrupted', async () => {
    return (await beating.getCall('req_1'))?.state === 'interrupted'
  })
  assert.equal((await beating.getCall('req_2'))?.state, 'in_flight')
  assert.equal((await beating.getBalance('default')).heldNanos, 1_000n)
  await beating.settle(closing('req_2'))
  await beating.close()
  assert.deepEqual(await database.query("SELECT * FROM node WHERE name = 'beating'"), [])
  await assertConserved(database)
  await silent.close()
  await database.close()
})

test("PostgreSQL: the clock of the database decides, whatever the node's clock says", async () => {
  const database = await openTestDatabase()
  const store = await openPostgresStore(database.url, {
    clock: 'database',
    node: { name: 'a', alone: true, beatEveryMs: null },
    log: createLog('silent'),
  })
  const now = async () => Number((await database.query('SELECT now_ms() AS now'))[0]?.['now'])
  const before = await now()
  await addKey(store, 'a')
  await addKey(store, 'ended')
  await store.updateKey('default', 'key_ended', { expiresAtMs: before - 1 }, before, SYSTEM)
  const longAgo = Date.UTC(2001, 0)
  assert.equal((await store.admit(opening('req_1', 'ended', { atMs: longAgo }))).kind, 'refused')
  assert.equal((await store.admit(opening('req_2', 'a', { atMs: longAgo }))).kind, 'admitted')
  await store.settle(closing('req_2', { atMs: Date.UTC(2040, 0) }))
  const call = await store.getCall('req_2')
  assert.ok(call !== null && call.endedAtMs !== null)
  assert.ok(before <= call.startedAtMs && call.startedAtMs <= call.endedAtMs)
  assert.ok(call.endedAtMs <= (await now()))
  await store.close()
  await database.close()
})
