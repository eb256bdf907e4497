import assert from 'node:assert/strict'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
import { countTokens } from '../../simulator/text.ts'
import { after, before, test } from '../support/suite.ts'
import { dig, digText } from './dig.ts'
import { anthropicHeaders, messageBody, postEvents, postJson, type Sent } from './wire-client.ts'

let simulator: Simulator
before(async () => {
  simulator = await startSimulator()
})
after(() => simulator.close())

const create = (more: object = {}, sent: Sent = {}) =>
  postJson(simulator, '/v1/messages', messageBody(more), { headers: anthropicHeaders, ...sent })
const stream = (more: object = {}, sent: Sent = {}) =>
  postEvents(simulator, '/v1/messages', messageBody({ stream: true, ...more }), {
    headers: anthropicHeaders,
    ...sent,
  })

test('a message reports the tokens of its own text and the full usage object', async () => {
  const { status, headers, json } = await create({ speed: 'fast', inference_geo: 'us' })
  assert.equal(status, 200)
  assert.match(headers.get('request-id') ?? '', /^req_011C\w{20}$/)
  assert.equal(headers.get('anthropic-ratelimit-requests-limit'), '4000')
  assert.equal(dig(json, 'model'), 'claude-sonnet-5-5')
  assert.equal(dig(json, 'stop_reason'), 'end_turn')
  assert.deepEqual(dig(json, 'usage'), {
    input_tokens: 4 + countTokens('Tell me about tollgates.'),
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
    output_tokens: countTokens(digText(json, 'content.0.text')),
    output_tokens_details: { thinking_tokens: 0 },
    server_tool_use: null,
    service_tier: 'standard',
    inference_geo: 'us',
    speed: 'fast',
  })
})

test('a stream has the events of upstream in their order, the same words, and cumulative usage at the end', async () => {
  const events = await stream()
  const names = events.map(({ event }) => event)
  assert.deepEqual(names.slice(0, 3), ['message_start', 'content_block_start', 'ping'])
  assert.deepEqual(names.slice(-3), ['content_block_stop', 'message_delta', 'message_stop'])
  assert.ok(names.slice(3, -3).every((name) => name === 'content_block_delta'))
  for (const { event, data } of events) assert.equal(dig(data, 'type'), event)
  const whole = (await create()).json
  const words = events.map(({ data }) => dig(data, 'delta.text') ?? '')
  assert.equal(words.join(''), dig(whole, 'content.0.text'))
  assert.equal(dig(events[0]?.data, 'message.usage.output_tokens'), 1)
  assert.equal(dig(events[0]?.data, 'message.usage.service_tier'), 'standard')
  const end = dig(events.at(-2)?.data, 'usage')
  assert.equal(dig(end, 'output_tokens'), dig(whole, 'usage.output_tokens'))
  for (const name of ['cache_creation', 'service_tier', 'inference_geo', 'speed']) {
    assert.equal(dig(end, name), undefined)
  }
})

test('the first request with a marked prefix writes it, the second reads it, by lifetime', async () => {
  const system = [
    { type: 'text', text: 'a'.repeat(400), cache_control: { type: 'ephemeral', ttl: '1h' } },
    { type: 'text', text: 'b'.repeat(200), cache_control: { type: 'ephemeral' } },
  ]
  const first = dig((await create({ system })).json, 'usage')
  const split = { ephemeral_5m_input_tokens: 50, ephemeral_1h_input_tokens: 100 }
  assert.deepEqual(dig(first, 'cache_creation'), split)
  assert.equal(dig(first, 'cache_creation_input_tokens'), 150)
  const second = dig((await create({ system })).json, 'usage')
  assert.equal(dig(second, 'cache_creation_input_tokens'), 0)
  assert.equal(dig(second, 'cache_read_input_tokens'), 150)
  assert.equal(dig(second, 'input_tokens'), dig(first, 'input_tokens'))
  const longer = [...system, { type: 'text', text: 'c'.repeat(40), cache_control: { type: 'ephemeral' } }]
  const third = dig((await create({ system: longer })).json, 'usage')
  assert.deepEqual(
    [dig(third, 'cache_read_input_tokens'), dig(third, 'cache_creation_input_tokens')],
    [150, 10],
  )
})

test('what upstream would refuse is refused in its shape', async () => {
  const turn = [{ role: 'user', content: 'x' }]
  for (const [body, status, message] of [
    ['{"model":', 400, /not valid JSON/],
    [{ max_tokens: 1, messages: turn }, 400, /^model: Field required/],
    [{ model: 'claude-sonnet-5-5', messages: turn }, 400, /^max_tokens: Field required/],
    [messageBody({ messages: [] }), 400, /^messages: at least one/],
    [messageBody({ messages: [{ role: 'x', content: '' }] }), 400, /^messages\.0\.role: /],
    [messageBody({ max_tokens: 128_001 }), 400, /128001 > 128000/],
    [messageBody({ model: 'gpt-4o' }), 404, /^model: gpt-4o$/],
  ] as const) {
    const answer = await postJson(simulator, '/v1/messages', body, { headers: anthropicHeaders })
    assert.equal(answer.status, status)
    assert.match(digText(answer.json, 'error.message'), message)
    assert.equal(dig(answer.json, 'error.type'), status === 404 ? 'not_found_error' : 'invalid_request_error')
    assert.equal(dig(answer.json, 'request_id'), answer.headers.get('request-id'))
  }
  const unversioned = await postJson(simulator, '/v1/messages', messageBody())
  assert.equal(dig(unversioned.json, 'error.message'), 'anthropic-version: header is required')
})
