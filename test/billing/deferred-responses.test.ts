import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { until } from '../support/until.ts'
import { startBillingBench } from './bench-of-one.ts'

/** Work goes on for as long as this clock says; the gateway asks by its own. */
let workMs = 0
const bench = await startBillingBench({}, { clock: () => workMs })
after(() => bench.close())

const surface = 'chat'
const RESPONSE = { model: 'gpt-6-luna', input: 'Write a word', max_output_tokens: 64, background: true }
const admin = (path: string) => bench.gateway.manage('GET', path)
const stateOf = async (id: string) => await admin(`/gateway/v1/requests/${id}`)
const isSettled = (id: string) => until('it is settled', async () => (await stateOf(id))['state'] === 'settled')

test('a background response stays open with its hold, and is settled when upstream has done it', async () => {
  const { id: keyId, key } = await bench.gateway.createKey('capped', { monthly_budget_usd: 1 })
  const reply = await bench.call('/v1/responses', RESPONSE, { surface, key })
  assert.equal(reply.status, 200)
  assert.equal(reply.header('x-svc-cost-usd'), '0')
  const made = JSON.parse(reply.body.toString()) as { id: string; status: string }
  const open = await stateOf(reply.requestId)
  assert.deepEqual([open['state'], open['object_id'], open['cost_usd']], ['deferred', made.id, null])
  const held = Number((await admin(`/v1/keys/${keyId}`))['month_held_usd'])
  assert.ok(held > 0, String(held))

  workMs += 3_600_000
  await isSettled(reply.requestId)
  const settled = await stateOf(reply.requestId)
  assert.ok(Number(settled['cost_usd']) > 0)
  const record = await admin(`/v1/keys/${keyId}`)
  assert.deepEqual([record['month_held_usd'], record['month_spend_usd']], [0, settled['cost_usd']])
  await bench.assertBooksBalance()
})
