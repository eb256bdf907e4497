import assert from 'node:assert/strict'
import { closeAfter, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { startBillingBench } from './bench-of-one.ts'

/** Upstream uses this clock; the gateway polls by its own. */
let workMs = 0
const bench = await startBillingBench({}, { clock: () => workMs })
closeAfter(bench)

const surface = 'chat'
const RESPONSE = { model: 'gpt-6-luna', input: 'Write a word', max_output_tokens: 64, background: true }
const admin = (path: string) => bench.gateway.manage('GET', path)
const stateOf = async (id: string) => await admin(`/gateway/v1/requests/${id}`)
const isSettled = (id: string) =>
  until('it is settled', async () => (await stateOf(id))['state'] === 'settled')

test('a background response keeps its hold until upstream has finished it', async () => {
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
  await bench.assertBalanced()
})

const lookAt = (id: string, more = '') =>
  bench.call(`/v1/responses/${id}${more}`, undefined, { method: 'GET', surface })

async function made(more: object = {}) {
  const reply = await bench.call('/v1/responses', { ...RESPONSE, ...more }, { surface })
  const { object_id, state } = await stateOf(reply.requestId)
  assert.equal(state, 'deferred')
  return { id: String(object_id), requestId: reply.requestId }
}

test('a client’s own GET of the finished response settles its call, and costs nothing itself', async () => {
  const { id, requestId } = await made()
  const early = await lookAt(id)
  assert.equal((await stateOf(requestId))['state'], 'deferred')
  workMs += 3_600_000
  const late = await lookAt(id)
  const { state, cost_usd } = await stateOf(requestId)
  assert.equal(state, 'settled')
  assert.ok(Number(cost_usd) > 0)
  for (const look of [early, late]) assert.equal(look.header('x-svc-cost-usd'), '0')
  await lookAt(id)
  await lookAt(id, '?stream=true&starting_after=0')
  assert.equal((await stateOf(requestId))['cost_usd'], cost_usd)
  await bench.assertBalanced()
})

test('a reply without usage settles nothing', async () => {
  const { id, requestId } = await made()
  await bench.call(`/v1/responses/${id}`, undefined, { method: 'HEAD', surface })
  assert.equal((await stateOf(requestId))['state'], 'deferred')
  workMs += 3_600_000
  await isSettled(requestId)
  assert.ok(Number((await stateOf(requestId))['cost_usd']) > 0)
})

test('a background stream read to its end settles there', async () => {
  workMs += 1
  const reply = await bench.call('/v1/responses', { ...RESPONSE, stream: true }, { surface })
  const { state, cost_usd, object_id } = await stateOf(reply.requestId)
  assert.equal(state, 'settled')
  assert.match(String(object_id), /^resp_/)
  assert.ok(Number(cost_usd) > 0)
  assert.equal(reply.trailer('x-svc-cost-usd'), String(cost_usd))
})

test('a cancelled response costs the usage it states', async () => {
  const { id, requestId } = await made()
  workMs += 1_100
  await bench.call(`/v1/responses/${id}/cancel`, '{}', { surface })
  const { state, stop_reason } = await stateOf(requestId)
  assert.deepEqual([state, stop_reason], ['settled', 'cancelled'])
  await bench.assertBalanced()
})

test('a response that upstream names for two calls is billed once', async () => {
  await using again = await startBillingBench({}, { deterministic: true, clock: () => workMs })
  const calls = [0, 1].map(() => again.call('/v1/responses', RESPONSE, { surface }))
  const replies = await Promise.all(calls)
  const states = await Promise.all(replies.map(({ requestId }) => again.record(requestId)))
  assert.deepEqual(states.map((call) => call['state']).sort(), ['deferred', 'settled'])
  workMs += 3_600_000
  const { id } = JSON.parse(replies[0]?.body.toString() ?? '') as { id: string }
  await again.call(`/v1/responses/${id}`, undefined, { method: 'GET', surface })
  const paid = await Promise.all(replies.map(({ requestId }) => again.record(requestId)))
  assert.deepEqual(paid.map((call) => [call['state'], Number(call['cost_usd']) > 0]).sort(), [
    ['settled', false],
    ['settled', true],
  ])
  await again.assertBalanced()
})
