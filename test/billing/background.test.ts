import assert from 'node:assert/strict'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { after, test } from '../support/suite.ts'
import { chunked, sized } from '../support/wire-bytes.ts'
import { startBillingBench } from './bench-of-one.ts'

const upstream = await ScriptedUpstream.start()
const at = { chatUrl: `${upstream.url}/v1`, messagesUrl: upstream.url }
/** Without the poller the cost of responses in the background is never known. */
const bench = await startBillingBench({ ...at, settings: { deferredPoll: false } })
const passing = await startBillingBench({ ...at, settings: { unpriced: 'pass', deferredPoll: false } })
after(async () => {
  await bench.close()
  await passing.close()
  await upstream.close()
})

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

/** The cost of the same call in the foreground. */
async function foregroundCost(): Promise<string | undefined> {
  upstream.queue(json(response('completed', { usage })))
  const reply = await bench.call('/v1/responses', RESPONSE, { surface })
  assert.ok(Number(reply.header('x-svc-cost-usd')) > 0)
  return reply.header('x-svc-cost-usd')
}

test('a response that goes on in the background is answered at cost 0, flagged', async () => {
  upstream.queue(json(response('queued', { usage: null })))
  const reply = await bench.call('/v1/responses', { ...RESPONSE, background: true }, { surface })
  assert.equal(reply.status, 200)
  assert.equal(reply.header('x-svc-cost-usd'), '0')
  const record = await bench.record(reply.requestId)
  assert.equal(record['unpriced'], true)
  assert.equal(record['estimated'], false)
  assert.equal(record['cost_usd'], 0)
})

test('a background stream whose last event has the usage is rated by it', async () => {
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

test('a background stream that ends without usage costs 0, flagged, and nothing is counted', async () => {
  const created = { type: 'response.created', response: response('queued', { usage: null }) }
  const delta = { type: 'response.output_text.delta', delta: 'Hello there', output_index: 0 }
  upstream.queue(events(created, delta))
  const body = { ...RESPONSE, background: true, stream: true }
  const reply = await bench.call('/v1/responses', body, { surface })
  assert.equal(reply.trailer('x-svc-cost-usd'), '0')
  const record = await bench.record(reply.requestId)
  assert.deepEqual([record['unpriced'], record['estimated']], [true, false])
})

test('where unpriced calls pass, a cap holds what the background may cost and is charged what it did', async () => {
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

test('everywhere else "background" is a word like any other, and switches no meter off', async () => {
  const chatUsage = { prompt_tokens: 1_000, completion_tokens: 100, total_tokens: 1_100 }
  const cases = [
    ['chat', '/v1/chat/completions', { model: 'gpt-6-luna', choices: [], usage: chatUsage }],
    ['chat', '/v1/completions', { model: 'gpt-6-luna', choices: [], usage: chatUsage }],
    ['chat', '/v1/embeddings', { model: 'text-embedding-3-small', data: [], usage: chatUsage }],
    ['chat', '/v1/responses/compact', { model: 'gpt-6-luna', output: [], usage }],
    ['messages', '/v1/messages', { model: 'claude-haiku-5-5', type: 'message', content: [], usage }],
  ] as const
  for (const [surface, path, answer] of cases) {
    for (const background of [true, 'true', 1]) {
      upstream.queue(json(answer))
      const body = { model: answer.model, input: 'Hi', max_tokens: 10, background }
      const reply = await bench.call(path, body, { surface })
      assert.equal(reply.status, 200, `${path} ${reply.body}`)
      assert.ok(Number(reply.header('x-svc-cost-usd')) > 0, `${path} ${background}`)
      assert.equal((await bench.record(reply.requestId))['unpriced'], false, path)
    }
  }
  await bench.assertBalanced()
})

test('a key with a cap may say "background" there, and is refused by name where it may not', async () => {
  const { key } = await bench.gateway.createKey('capped', { monthly_budget_usd: 5 })
  upstream.queue(
    json({ model: 'gpt-6-luna', choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } }),
  )
  const chat = { model: 'gpt-6-luna', messages: [], background: true }
  assert.equal((await bench.call('/v1/chat/completions', chat, { surface, key })).status, 200)
  const before = upstream.requestCount
  const refused = await bench.call('/v1/responses', { ...RESPONSE, background: true }, { surface, key })
  assert.equal(refused.status, 404)
  const { error } = JSON.parse(refused.body.toString())
  assert.deepEqual([error.code, error.param], ['endpoint_not_metered', 'background'])
  assert.match(error.message, /^This gateway cannot meter requests with "background" yet/)
  assert.equal(upstream.requestCount, before)
})
