import assert from 'node:assert/strict'
import { stopPostgres } from '../support/postgres.ts'
import { after, test } from '../support/suite.ts'
import { addKey, closing, NOON, opening } from './conformance/fixtures.ts'
import { webhookDeliveryConformance } from './conformance/webhook-deliveries.ts'
import { webhookEventConformance } from './conformance/webhook-events.ts'
import { addWebhook, inShort, relay } from './conformance/webhook-fixtures.ts'
import { webhookSweepConformance } from './conformance/webhook-sweeps.ts'
import { openByCallersClock, openFreshPostgres, openTestDatabase } from './postgres-under-test.ts'

after(stopPostgres)

webhookEventConformance('PostgreSQL', openFreshPostgres)
webhookDeliveryConformance('PostgreSQL', openFreshPostgres)
webhookSweepConformance('PostgreSQL', openFreshPostgres)

test('a call that settles on one node while another lowers the cap below its cost: one of the two tells it', async () => {
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
        two.updateKey('default', `key_k${i}`, { monthlyBudgetNanos: 50n }, NOON),
      ])
      const told: readonly string[] = (await relay(one))
        .map(inShort)
        .filter((event) => event.startsWith('100%'))
      assert.equal(told.length, 1, told.join(', '))
    }
  } finally {
    await Promise.all(nodes.map((node) => node.close()))
    await database.close()
  }
})
