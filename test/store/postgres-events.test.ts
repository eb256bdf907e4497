import assert from 'node:assert/strict'
import { SYSTEM } from '../../src/kernel/actor.ts'
import { stopPostgres } from '../support/postgres.ts'
import { after, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { addWebhook, emitted, inShort, spend } from './conformance/event-fixtures.ts'
import { eventConformance } from './conformance/events.ts'
import { addKey, capped, closing, NOON, opening } from './conformance/fixtures.ts'
import { webhookDeliveryConformance } from './conformance/webhook-deliveries.ts'
import { openByCallersClock, openFreshPostgres, openTestDatabase } from './postgres-under-test.ts'

after(stopPostgres)

eventConformance('PostgreSQL', openFreshPostgres)
webhookDeliveryConformance('PostgreSQL', openFreshPostgres)

test('if one node settles a call while another lowers the cap below its cost, one of them emits the event', async () => {
  const database = await openTestDatabase()
  const nodes = await Promise.all([1, 2].map(() => openByCallersClock(database.url)))
  const [one, two] = nodes
  assert.ok(one !== undefined && two !== undefined)
  try {
    await addWebhook(one, 'a')
    for (let i = 0; i < 40; i += 1) {
      const id = `req_race_${i}`
      await addKey(one, `k${i}`, { monthlyBudgetNanos: 1_000n })
      await one.admit(opening(id, `k${i}`, { hold: { kind: 'none' } }))
      await Promise.all([
        one.settle(closing(id, { costNanos: 60n, listNanos: 60n })),
        two.updateKey('default', `key_k${i}`, { monthlyBudgetNanos: 50n }, NOON, SYSTEM),
      ])
      const types: readonly string[] = (await emitted(one))
        .map(inShort)
        .filter((event) => event.startsWith('100%'))
      assert.equal(types.length, 1, types.join(', '))
    }
  } finally {
    await Promise.all(nodes.map((node) => node.close()))
    await database.close()
  }
})

test('thresholds that one node sets apply on another after its next heartbeat', async () => {
  const database = await openTestDatabase()
  const one = await openByCallersClock(database.url)
  const two = await openByCallersClock(database.url, { node: { name: 'two', alone: false, beatEveryMs: 20 } })
  let keys = 0
  const crossedByTwo = async () => {
    const name = `k${keys++}`
    await capped(two, name, 100n)
    const id = await spend(two, name, 70n)
    return (await emitted(two)).map(inShort).filter((event) => event.endsWith(id))
  }
  try {
    assert.match(String(await crossedByTwo()), /^50%/)
    await one.setBudgetThresholds([60])
    await until('the other node uses the threshold', async () => /^60%/.test(String(await crossedByTwo())))
  } finally {
    await Promise.all([one, two].map((node) => node.close()))
    await database.close()
  }
})

test('two nodes claim a delivery once, and a late record of an attempt does not count', async () => {
  const database = await openTestDatabase()
  const nodes = await Promise.all([1, 2].map(() => openByCallersClock(database.url)))
  const [one, two] = nodes
  assert.ok(one !== undefined && two !== undefined)
  try {
    for (const name of ['a', 'b', 'c', 'd', 'e']) await addWebhook(one, name)
    for (let i = 0; i < 20; i += 1) {
      await addKey(one, `k${i}`)
      const claims = await Promise.all(nodes.map((node) => node.claimDeliveries([], NOON + 1_000 + i)))
      const ids = claims.flat().map(({ id }) => id)
      assert.equal(new Set(ids).size, ids.length)
      for (const { id, webhook, attempts } of claims.flat()) {
        const { id: webhookId, url } = webhook
        const attempt = { id, webhookId, url, attempts, responseStatus: 204, responseBody: '', error: null }
        const done = { ...attempt, outcome: { kind: 'succeeded' } } as const
        await Promise.all(nodes.map((node) => node.recordAttempt(done, NOON + 1_000 + i)))
      }
    }
    const rows = await database.rows('webhook_delivery')
    assert.ok(rows.length > 100)
    assert.deepEqual([...new Set(rows.map((row) => `${row['status']} ${row['attempts']}`))], ['succeeded 1'])
  } finally {
    await Promise.all(nodes.map((node) => node.close()))
    await database.close()
  }
})
