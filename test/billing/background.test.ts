import assert from 'node:assert/strict'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { closeAfter, test } from '../support/suite.ts'
import { sized } from '../support/wire-bytes.ts'
import { startBillingBench } from './bench-of-one.ts'

const upstream = await ScriptedUpstream.start()
const at = { chatUrl: `${upstream.url}/v1`, messagesUrl: upstream.url }
/** Without polling, the cost of background responses is never known. */
const bench = await startBillingBench({ ...at, settings: { deferredPoll: false } })
const passing = await startBillingBench({ ...at, settings: { unpriced: 'pass', deferredPoll: false } })
closeAfter(bench, passing, upstream)

const surface = 'chat'
const RESPONSE = { model: 'gpt-6-luna', input: 'Hi', max_output_tokens: 100 }
const response = (status: string, more: object = {}) => ({
  id: 'resp_1',
  object: 'response',
  status,
  background: true,
  model: 'gpt-6-luna',
  output: [],
  ...more,
})
const json = (body: unknown) => [
  { send: sized('HTTP/1.1 200 OK', ['Content-Type: application/json'], JSON.stringify(body)) },
]

test('without polling, a background response is answered at cost 0 and flagged unpriced', async () => {
  upstream.queue(json(response('queued', { usage: null })))
  const reply = await bench.call('/v1/responses', { ...RESPONSE, background: true }, { surface })
  assert.equal(reply.status, 200)
  assert.equal(reply.header('x-svc-cost-usd'), '0')
  const record = await bench.record(reply.requestId)
  assert.equal(record['unpriced'], true)
  assert.equal(record['estimated'], false)
  assert.equal(record['cost_usd'], 0)
})

test('with unpriced "pass", a background call holds its bound under a cap and is charged its usage', async () => {
  const { key, id } = await passing.gateway.createKey('capped', { monthly_budget_usd: 5 })
  const answered = Promise.withResolvers<void>()
  const arrival = upstream.nextRequest()
  const small = { input_tokens: 20, output_tokens: 100, total_tokens: 120 }
  upstream.queue([{ pause: answered.promise }, ...json(response('completed', { usage: small }))])
  const reply = passing.call('/v1/responses', { ...RESPONSE, background: true }, { surface, key })
  await arrival
  assert.ok(Number((await passing.gateway.manage('GET', `/v1/keys/${id}`))['month_held_usd']) > 0)
  answered.resolve()
  const record = await passing.record((await reply).requestId)
  assert.ok(Number(record['cost_usd']) > 0)
  assert.equal(record['overrun'], false)
  await passing.assertBalanced()
})
