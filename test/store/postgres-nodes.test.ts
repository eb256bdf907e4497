import assert from 'node:assert/strict'
import pg from 'pg'
import { createLog } from '../../src/kernel/log.ts'
import { SYSTEM } from '../../src/kernel/vocabulary.ts'
import { applyBatch, type CallCommand } from '../../src/store/operations/apply-batch.ts'
import { createBatchCache } from '../../src/store/operations/batch-rows.ts'
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts'
import { dialectOf, runBatchOnPostgres } from '../../src/store/postgres/run-operation.ts'
import type { Store } from '../../src/store/store.ts'
import { openPatientPool, stopPostgres } from '../support/postgres.ts'
import { after, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { assertConserved } from './conformance/conservation.ts'
import { addCredit, addKey, closing, creditBackOf, doneValue, NOON, opening } from './conformance/fixtures.ts'
import { type OpenDatabase, openByCallersClock, openTestDatabase } from './postgres-under-test.ts'

after(stopPostgres)

/** Several nodes on one database. Afterwards the ledger must balance. */
function nodesTest(
  sentence: string,
  names: readonly string[],
  prove: (stores: readonly Store[], database: OpenDatabase) => Promise<void>,
): void {
  test(`PostgreSQL, ${names.length} nodes: ${sentence}`, async () => {
    const database = await openTestDatabase()
    const stores = await Promise.all(
      names.map((name) =>
        openByCallersClock(database.url, { node: { name, alone: true, beatEveryMs: null } }),
      ),
    )
    try {
      await prove(stores, database)
      await assertConserved(database)
      await Promise.all(stores.map((store) => store.close()))
      const [ended] = await database.query(
        'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()',
      )
      assert.equal(ended?.['deadlocks'], 0n, 'the calls waited for each other')
    } finally {
      await Promise.all(stores.map((store) => store.close()))
      await database.close()
    }
  })
}

const nth = <T>(list: readonly T[], i: number): T => {
  const found = list[i % list.length]
  assert.ok(found !== undefined)
  return found
}

const ids = (count: number): string[] =>
  Array.from({ length: count }, (_, i) => `req_${String(i).padStart(4, '0')}`)

nodesTest(
  'hundreds of concurrent calls exceed a cap by at most one call',
  ['a', 'b', 'c'],
  async (stores) => {
    const [first] = stores
    assert.ok(first !== undefined)
    const key = await addKey(first, 'a', { monthlyBudgetNanos: 10_000n })
    const all = ids(300)
    const cost = (id: string) => BigInt((Number(id.slice(4)) * 7_919) % 997)
    for (let round = 0, waiting = all; waiting.length > 0 && round < 300; round++) {
      const admissions = await Promise.all(
        waiting.map((id, i) => {
          const hold = { kind: 'bound', nanos: cost(id), listNanos: cost(id) } as const
          return nth(stores, i).admit(opening(id, 'a', { hold }))
        }),
      )
      const admitted = waiting.filter((_, i) => admissions[i]?.kind === 'admitted')
      await Promise.all(
        admitted.map((id, i) => nth(stores, i + 1).settle(closing(id, { costNanos: cost(id) / 2n }))),
      )
      waiting = waiting.filter((_, i) => admissions[i]?.kind === 'blocked')
    }
    const spent = (await first.getKey('default', key, NOON))?.month.spentNanos ?? 0n
    assert.ok(spent >= 10_000n && spent < 10_000n + 997n, `${spent} spent of 10000`)
  },
)

nodesTest('the credit of an account admits one call at a time', ['a', 'b'], async (stores) => {
  const [first] = stores
  assert.ok(first !== undefined)
  for (const name of ['a', 'b', 'c', 'd']) await addKey(first, name)
  await addCredit(first, 1_000n)
  const admissions = await Promise.all(
    ids(80).map((id, i) => nth(stores, i).admit(opening(id, nth(['a', 'b', 'c', 'd'], i)))),
  )
  assert.equal(admissions.filter(({ kind }) => kind === 'admitted').length, 1)
  assert.equal(admissions.filter(({ kind }) => kind === 'blocked').length, 79)
})

nodesTest('after one node revokes a key, no node admits it', ['a', 'b'], async (stores) => {
  const [first, second] = stores
  assert.ok(first !== undefined && second !== undefined)
  const key = await addKey(first, 'a')
  let revoked = false
  let asked = 0
  const wrong: string[] = []
  const hammer = async (store: Store) => {
    for (let after = 0; after < 20; ) {
      const id = `req_${asked++}`
      const askedAfter = revoked
      const admission = await store.admit(opening(id, 'a'))
      if (askedAfter && admission.kind === 'admitted') wrong.push(id)
      if (askedAfter) after += 1
    }
  }
  const hammering = Promise.all([first, second, second, first].map(hammer))
  await until('some calls were admitted', async () => asked > 50)
  await first.revokeKey('default', key, NOON, SYSTEM)
  revoked = true
  await hammering
  assert.deepEqual(wrong, [])
})

async function waitingIn(database: OpenDatabase): Promise<number> {
  const who = "datname = current_database() AND wait_event_type = 'Lock'"
  return (await database.query(`SELECT pid FROM pg_stat_activity WHERE ${who}`)).length
}

nodesTest(
  'a revocation waits for admissions that are running',
  ['a', 'b'],
  async ([first, second], database) => {
    assert.ok(first !== undefined && second !== undefined)
    const key = await addKey(first, 'a')
    await addCredit(first, 5_000n)
    const other = new pg.Client(database.url)
    await other.connect()
    await other.query("BEGIN; SELECT 1 FROM account WHERE id = 'default' FOR UPDATE")
    const waiting = () => waitingIn(database)
    const admission = first.admit(opening('req_1', 'a'))
    await until('the admission waits for the account', async () => (await waiting()) === 1)
    let isRevoked = false
    const seenThen = second.revokeKey('default', key, NOON, SYSTEM).then(async () => {
      const call = await second.getCall('req_1')
      isRevoked = true
      return call
    })
    await until('the revocation waits, or is done', async () => isRevoked || (await waiting()) === 2)
    await other.query('COMMIT')
    await other.end()
    assert.equal((await admission).kind, 'admitted')
    assert.equal((await seenThen)?.state, 'in_flight', 'a call is admitted after the key was revoked')
    assert.equal((await first.admit(opening('req_2', 'a'))).kind, 'refused')
  },
)

nodesTest(
  'an admission that waits for the first top-up is decided by it',
  ['a'],
  async ([store], database) => {
    assert.ok(store !== undefined)
    await addKey(store, 'a')
    const other = new pg.Client(database.url)
    await other.connect()
    await other.query(
      "BEGIN; SELECT id FROM account FOR UPDATE; UPDATE account SET credit_enforced = true WHERE id = 'default'",
    )
    const admission = store.admit(opening('req_1', 'a'))
    await until('the admission waits for the account', async () => (await waitingIn(database)) === 1)
    await other.query('COMMIT')
    await other.end()
    const answer = await admission
    assert.equal(answer.kind === 'refused' && answer.refusal.reason, 'credit_exhausted')
  },
)

for (const [order, isSettledFirst] of [
  ['settles before it is credited back', true],
  ['is credited back before it settles', false],
] as const)
  nodesTest(`a call that ${order} does not deadlock`, ['a'], async ([store], database) => {
    assert.ok(store !== undefined)
    await addKey(store, 'a')
    await store.admit(opening('req_1', 'a'))
    await store.settle(closing('req_1'))
    await store.admit(opening('req_2', 'a'))
    const other = new pg.Client(database.url)
    await other.connect()
    await other.query("BEGIN; SELECT 1 FROM account WHERE id = 'default' FOR UPDATE")
    const settle = () => store.settle(closing('req_2'))
    const credit = () => store.creditBack(creditBackOf(['req_1', 'req_2']), null)
    const first = isSettledFirst ? settle() : credit()
    await until('the first waits for the account', async () => (await waitingIn(database)) === 1)
    const second = isSettledFirst ? credit() : settle()
    await until('both wait for the account', async () => (await waitingIn(database)) === 2)
    await other.query('COMMIT')
    await other.end()
    const outcomes = await Promise.all([first, second])
    assert.ok(outcomes.some((outcome) => 'applied' in outcome && outcome.applied))
    const [credited] = outcomes.flatMap((outcome) => ('kind' in outcome ? [doneValue(outcome)] : []))
    assert.deepEqual(credited?.credited, ['req_1'])
    assert.deepEqual(credited?.notCredited, [{ requestId: 'req_2', why: 'in_flight' }])
  })

nodesTest(
  'concurrent calls of the same keys in any order do not deadlock',
  ['a', 'b', 'c'],
  async (stores) => {
    const [first] = stores
    assert.ok(first !== undefined)
    const keys = ['a', 'b', 'c', 'd', 'e']
    for (const name of keys) await addKey(first, name, { monthlyBudgetNanos: 1_000_000n })
    await addCredit(first, 1_000_000n)
    await Promise.all(
      ids(300).map(async (id, i) => {
        const admission = await nth(stores, i).admit(opening(id, nth(keys, i * 3)))
        assert.equal(admission.kind, 'admitted')
        const settled = await nth(stores, i + 1).settle(closing(id))
        assert.equal(settled.applied, true)
        if (i % 10 === 0) await addCredit(nth(stores, i), 5n)
      }),
    )
  },
)

nodesTest('a call is charged once, whoever settles it and however often', ['a', 'b'], async (stores) => {
  const [first] = stores
  assert.ok(first !== undefined)
  await addKey(first, 'a')
  await first.admit(opening('req_1', 'a'))
  const settled = await Promise.all(
    Array.from({ length: 20 }, (_, i) => nth(stores, i).settle(closing('req_1'))),
  )
  assert.equal(settled.filter(({ applied }) => applied).length, 1)
  assert.deepEqual(new Set(settled.map(({ balanceNanos }) => balanceNanos)), new Set([-800n]))
})

nodesTest('calls that settle in one batch each get the balance after themselves', ['a'], async ([store]) => {
  assert.ok(store !== undefined)
  await addKey(store, 'a')
  for (const id of ids(3)) await store.admit(opening(id, 'a'))
  const [one, two, unknown, three] = await Promise.allSettled([
    ...['req_0000', 'req_0001', 'req_never', 'req_0002'].map((id) => store.settle(closing(id))),
  ])
  assert.deepEqual(
    [one, two, three].map((outcome) => outcome?.status === 'fulfilled' && outcome.value),
    [
      { balanceNanos: -800n, applied: true },
      { balanceNanos: -1_600n, applied: true },
      { balanceNanos: -2_400n, applied: true },
    ],
  )
  assert.match(String(unknown?.status === 'rejected' && unknown.reason), /no call req_never to settle/)
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
    const [call] = await database.query("SELECT node_id FROM call WHERE id = 'req_3'")
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
      (await database.query('SELECT id, state FROM call')).map(({ state }) => state),
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
  const open = (name: string, beatEveryMs: number | null) =>
    openPostgresStore(database.url, {
      clock: 'database',
      node: { name, alone: false, beatEveryMs, silentMs: 100 },
      log: createLog('silent'),
    })
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
  const open = (name: string, beatEveryMs: number | null) =>
    openPostgresStore(database.url, {
      clock: 'database',
      node: { name, alone: false, beatEveryMs, silentMs: 300 },
      log: createLog('silent'),
    })
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
