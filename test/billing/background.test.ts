import assert from 'node:assert/strict'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { closeAfter, test } from '../support/suite.ts'
import { chunked, sized } from '../support/wire-bytes.ts'
import { startBillingBench } from './bench-of-one.ts'

const upstream = await ScriptedUpstream.start()
const at = { chatUrl: `${upstream.url}/v1`, messagesUrl: upstream.url }
/** Without polling, the cost of background responses is never known. */
const bench = await startBillingBench({ ...at, settings: { deferredPoll: false } })
const passing = await startBillingBench({ ...at, settings: { unpriced: 'pass', deferredPoll: false } })
closeAfter(bench, passing, upstream)

const surface = 'chat'
const RESPONSE = { model: 'gpt-6-luna', input: 'Hi', max_output_tokens: 100 }
const usage = { input_tokens: 1_000, output_tokens: 100, total_tokens: 1_100 }
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
const events = (...all: { type: string }[]) => [
  {
    send: chunked(
      'HTTP/1.1 200 OK',
      ['Content-Type: text/event-stream'],
      all.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`),
    ),
  },
]

async function foregroundCost(): Promise<string | undefined> {
  upstream.queue(json(response('completed', { usage })))
  const reply = await bench.call('/v1/responses', RESPONSE, { surface })
  assert.ok(Number(reply.header('x-svc-cost-usd')) > 0)
  return reply.header('x-svc-cost-usd')
}

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

test('a background stream whose last event has usage is rated by it', async () => {
  const cost = await foregroundCost()
  const body = { ...RESPONSE, background: true, stream: true }
  const created = { type: 'response.created', response: response('queued', { usage: null }) }
  for (const type of ['response.completed', 'response.incomplete'] as const) {
    const last = { type, response: response(type.slice('response.'.length), { usage }) }
    upstream.queue(events(created, last))
    const reply = await bench.call('/v1/responses', body, { surface })
    assert.equal(reply.trailer('x-svc-cost-usd'), cost, type)
    assert.equal((await bench.record(reply.requestId))['unpriced'], false)
  }
})

test('without polling, a background stream without usage costs 0 and is flagged unpriced', async () => {
  const created = { type: 'response.created', response: response('queued', { usage: null }) }
  const delta = { type: 'response.output_text.delta', delta: 'Hello there', output_index: 0 }
  upstream.queue(events(created, delta))
  const body = { ...RESPONSE, background: true, stream: true }
  const reply = await bench.call('/v1/responses', body, { surface })
  assert.equal(reply.trailer('x-svc-cost-usd'), '0')
  const record = await bench.record(reply.requestId)
  assert.deepEqual([record['unpriced'], record['estimated']], [true, false])
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
