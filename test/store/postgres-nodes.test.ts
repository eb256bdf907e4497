import assert from 'node:assert/strict'
import pg from 'pg'
import { SYSTEM } from '../../src/kernel/actor.ts'
import { stopPostgres } from '../support/postgres.ts'
import { after } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { addCredit, addKey, closing, creditBackOf, doneValue, NOON, opening } from './conformance/fixtures.ts'
import { ids, nodesTest, nth, waitingIn } from './nodes-under-test.ts'

after(stopPostgres)

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

nodesTest('a rate limit counts the calls of all nodes, exactly', ['a', 'b', 'c'], async (stores) => {
  await addKey(nth(stores, 0), 'a', { requestsPerMinute: 60 })
  const admissions = await Promise.all(ids(500).map((id, i) => nth(stores, i).admit(opening(id, 'a'))))
  assert.equal(admissions.filter(({ kind }) => kind === 'admitted').length, 60)
  for (const admission of admissions)
    if (admission.kind !== 'admitted')
      assert.equal(admission.kind === 'refused' && admission.refusal.reason, 'over_limit')
})

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
  'an admission that waits while credit becomes enforced is decided by it',
  ['a'],
  async ([store], database) => {
    assert.ok(store !== undefined)
    await addKey(store, 'a')
    const other = new pg.Client(database.url)
    await other.connect()
    await other.query(
      'BEGIN; SELECT id FROM account FOR UPDATE; UPDATE account SET credit_enforced = true, terms_version = terms_version + 1',
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

for (const [what, keyOf, row] of [
  ['a budget', () => 'a', 'SELECT 1 FROM budget FOR UPDATE'],
  ['an account', (node: number) => nth(['a', 'b', 'c'], node), 'SELECT 1 FROM account FOR UPDATE'],
] as const)
  nodesTest(
    `of the batches that wait for ${what}, one waits for the row and the others wait in line, in turn`,
    ['a', 'b', 'c'],
    async (stores, database) => {
      for (const name of ['a', 'b', 'c']) await addKey(nth(stores, 0), name)
      const other = new pg.Client(database.url)
      await other.connect()
      await other.query(`BEGIN; ${row}`)
      const admissions = ids(3).map((id, i) => nth(stores, i).admit(opening(id, keyOf(i))))
      await until('all wait', async () => (await waitingIn(database)) === 3)
      const inLine = "datname = current_database() AND wait_event = 'advisory'"
      const waiting = await database.query(`SELECT pid FROM pg_stat_activity WHERE ${inLine}`)
      assert.equal(waiting.length, 2, 'more than one wakes when the row changes')
      await other.query('COMMIT')
      await other.end()
      for (const { kind } of await Promise.all(admissions)) assert.equal(kind, 'admitted')
    },
  )

nodesTest('a batch of very many keys needs few locks for its lines', ['a'], async ([store], database) => {
  assert.ok(store !== undefined)
  const names = Array.from({ length: 100 }, (_, i) => `key-${i}`)
  for (const name of names) await addKey(store, name)
  const other = new pg.Client(database.url)
  await other.connect()
  await other.query('BEGIN; SELECT 1 FROM account FOR UPDATE')
  const admissions = ids(100).map((id, i) => store.admit(opening(id, nth(names, i))))
  await until('the batch waits', async () => (await waitingIn(database)) === 1)
  const held = await database.query(
    `SELECT 1 FROM pg_locks l JOIN pg_database d ON d.oid = l.database
     WHERE locktype = 'advisory' AND datname = current_database()`,
  )
  assert.ok(held.length > 1 && held.length <= 48, `${held.length} locks`)
  await other.query('COMMIT')
  await other.end()
  for (const { kind } of await Promise.all(admissions)) assert.equal(kind, 'admitted')
})
