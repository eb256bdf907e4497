import assert from 'node:assert/strict'
import { closeAfter, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { startBillingBench } from './bench-of-one.ts'
import { startShownUpstream } from './shown-upstream.ts'

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

test('objects of a revoked key still settle', async () => {
  const { id: keyId, key } = await bench.gateway.createKey('revoked', { monthly_budget_usd: 1 })
  const reply = await bench.call('/v1/responses', RESPONSE, { surface, key })
  await bench.gateway.revokeKey(keyId)
  workMs += 3_600_000
  await isSettled(reply.requestId)
  const { cost_usd } = await stateOf(reply.requestId)
  assert.equal((await admin(`/v1/keys/${keyId}`))['month_spend_usd'], cost_usd)
})

test('the log lists deferred calls apart from those in flight', async () => {
  const { requestId } = await made()
  const ids = async (state: string) =>
    ((await admin(`/gateway/v1/requests?state=${state}`))['data'] as { id: string }[]).map(({ id }) => id)
  assert.deepEqual(await ids('deferred'), [requestId])
  assert.deepEqual(await ids('in_flight'), [])
  workMs += 3_600_000
  await isSettled(requestId)
  assert.deepEqual(await ids('deferred'), [])
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

test('a finished response without usage is estimated from its output', async () => {
  await using upstream = await startShownUpstream()
  await using odd = await startBillingBench(upstream.urls)
  const shown = { id: 'resp_1', model: 'gpt-6-luna', usage: null }
  const text = 'x'.repeat(400)
  const output = [{ type: 'message', content: [{ type: 'output_text', text }] }]
  upstream.shows('POST /v1/responses', { ...shown, status: 'queued' })
  const { requestId } = await odd.call('/v1/responses', RESPONSE, { surface })
  const look = () => odd.call('/v1/responses/resp_1', undefined, { method: 'GET', surface })
  upstream.shows('GET /v1/responses/resp_1', { ...shown, status: 'in_progress' })
  await look()
  assert.equal((await odd.gateway.manage('GET', `/gateway/v1/requests/${requestId}`))['state'], 'deferred')
  upstream.shows('GET /v1/responses/resp_1', { ...shown, status: 'completed', output })
  await look()
  const { state, estimated, usage, cost_usd } = await odd.record(requestId)
  assert.deepEqual([state, estimated], ['settled', true])
  assert.equal((usage as Record<string, number>)['output_tokens'], 100)
  assert.ok(Number((usage as Record<string, number>)['input_tokens']) > 0)
  assert.ok(Number(cost_usd) > 0)
  await odd.assertBalanced()
})

test('a background stream cancelled without usage costs what it delivered', async () => {
  await using upstream = await startShownUpstream()
  await using odd = await startBillingBench(upstream.urls)
  const delta = { type: 'response.output_text.delta', delta: 'x'.repeat(400), response: null }
  const response = { id: 'resp_1', model: 'gpt-6-luna', status: 'cancelled', usage: null, output: [] }
  const last = { type: 'response.cancelled', response }
  upstream.streams('POST /v1/responses', delta, Promise.resolve(), last)
  const { requestId } = await odd.call('/v1/responses', { ...RESPONSE, stream: true }, { surface })
  const { state, estimated, usage } = await odd.record(requestId)
  assert.deepEqual([state, estimated], ['settled', true])
  assert.equal((usage as Record<string, number>)['output_tokens'], 64, 'at most the stated limit')
  await odd.assertBalanced()
})
