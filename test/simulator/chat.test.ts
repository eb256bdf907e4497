import assert from 'node:assert/strict'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
import { countTokens } from '../../simulator/tokens.ts'
import { after, before, test } from '../support/suite.ts'
import { dig, digList, digNumber, digText } from './dig.ts'
import { chatBody, postEvents, postJson, type Sent, send, weatherSchema } from './wire-client.ts'

let simulator: Simulator
before(async () => {
  simulator = await startSimulator()
})
after(() => simulator.close())

const create = (more: object = {}, sent: Sent = {}) =>
  postJson(simulator, '/v1/chat/completions', chatBody(more), sent)
const stream = (more: object = {}, sent: Sent = {}) =>
  postEvents(simulator, '/v1/chat/completions', chatBody({ stream: true, ...more }), sent)

const tools = [{ type: 'function', function: { name: 'get_weather', parameters: weatherSchema } }]
const askWeather = [{ role: 'user', content: 'How is the weather in Oslo?' }]

test('a completion reports the tokens of its own text, its snapshot and its tier', async () => {
  const { status, headers, json } = await create()
  assert.equal(status, 200)
  assert.match(headers.get('x-request-id') ?? '', /^req_[\da-f]{32}$/)
  assert.equal(headers.get('openai-version'), '2020-10-01')
  assert.equal(headers.get('x-ratelimit-reset-tokens'), '0s')
  assert.equal(dig(json, 'model'), 'gpt-4o-2024-08-06')
  assert.equal(dig(json, 'service_tier'), 'default')
  const completion = countTokens(digText(json, 'choices.0.message.content'))
  const prompt = 4 + countTokens('Tell me about tollgates.')
  assert.equal(dig(json, 'usage.prompt_tokens'), prompt)
  assert.equal(dig(json, 'usage.completion_tokens'), completion)
  assert.equal(dig(json, 'usage.total_tokens'), prompt + completion)
})

test('n choices differ and are all paid for', async () => {
  const { json } = await create({ n: 3 })
  const texts = digList(json, 'choices').map((choice) => digText(choice, 'message.content'))
  assert.equal(texts.length, 3)
  assert.ok(new Set(texts).size > 1)
  assert.equal(
    dig(json, 'usage.completion_tokens'),
    texts.reduce((sum, text) => sum + countTokens(text), 0),
  )
})

test('a stream without include_usage says nothing about usage', async () => {
  const events = await stream()
  assert.equal(events.at(-1)?.data, '[DONE]')
  for (const { event, data } of events.slice(0, -1)) {
    assert.equal(event, null)
    assert.equal(dig(data, 'object'), 'chat.completion.chunk')
    assert.ok(!('usage' in Object(data)))
    assert.equal(digList(data, 'choices').length, 1)
  }
  assert.deepEqual(dig(events[0]?.data, 'choices.0.delta'), { role: 'assistant', content: '', refusal: null })
  assert.equal(dig(events.at(-2)?.data, 'choices.0.finish_reason'), 'stop')
})

test('a stream with include_usage has it as null in each chunk and once at the end without choices', async () => {
  const events = (await stream({ stream_options: { include_usage: true } })).slice(0, -1)
  for (const { data } of events.slice(0, -1)) assert.equal(dig(data, 'usage'), null)
  const last = events.at(-1)?.data
  assert.deepEqual(dig(last, 'choices'), [])
  const whole = await create()
  assert.deepEqual(dig(last, 'usage'), dig(whole.json, 'usage'))
})

test('a stream of n choices carries each of them to its end', async () => {
  const events = await stream({ n: 2, stream_options: { include_obfuscation: false } })
  const whole = await create({ n: 2 })
  for (const index of [0, 1]) {
    const chunks = events.filter(({ data }) => dig(data, 'choices.0.index') === index)
    const words = chunks.map(({ data }) => dig(data, 'choices.0.delta.content') ?? '').join('')
    assert.equal(words, dig(whole.json, `choices.${index}.message.content`))
    assert.equal(dig(chunks.at(-1)?.data, 'choices.0.finish_reason'), 'stop')
    assert.ok(chunks.every(({ data }) => dig(data, 'obfuscation') === undefined))
  }
})

test('tools are called by name, by force, or not at all', async () => {
  const { json } = await create({ tools, messages: askWeather })
  assert.equal(dig(json, 'choices.0.finish_reason'), 'tool_calls')
  assert.equal(dig(json, 'choices.0.message.content'), null)
  const call = dig(json, 'choices.0.message.tool_calls.0')
  assert.match(digText(call, 'id'), /^call_\w{24}$/)
  assert.deepEqual(dig(call, 'function'), { name: 'get_weather', arguments: '{"city":"Oslo"}' })
  const required = await create({ tools, tool_choice: 'required' })
  assert.equal(dig(required.json, 'choices.0.finish_reason'), 'tool_calls')
  const none = await create({ tools, messages: askWeather, tool_choice: 'none' })
  assert.equal(dig(none.json, 'choices.0.finish_reason'), 'stop')
  const answered = [
    ...askWeather,
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: dig(call, 'id'), content: 'rainy weather' },
  ]
  const words = await create({ tools, messages: answered })
  assert.equal(dig(words.json, 'choices.0.finish_reason'), 'stop')
})

test('a streamed tool call opens with id and name and continues with arguments', async () => {
  const events = await stream({ tools, messages: askWeather })
  const calls = events
    .map(({ data }) => dig(data, 'choices.0.delta.tool_calls.0'))
    .filter((call) => call !== undefined)
  assert.equal(dig(calls[0], 'function.name'), 'get_weather')
  assert.equal(calls.map((call) => dig(call, 'function.arguments')).join(''), '{"city":"Oslo"}')
})

test('output limits cut the answer exactly there', async () => {
  const old = await create({ max_tokens: 5 })
  assert.equal(dig(old.json, 'choices.0.finish_reason'), 'length')
  assert.equal(dig(old.json, 'usage.completion_tokens'), 5)
  const thinking = await create({ model: 'gpt-6-luna', max_completion_tokens: 40 })
  assert.equal(dig(thinking.json, 'choices.0.finish_reason'), 'length')
  assert.equal(dig(thinking.json, 'usage.completion_tokens'), 40)
  assert.equal(dig(thinking.json, 'usage.completion_tokens_details.reasoning_tokens'), 32)
  const wrong = await create({ model: 'gpt-6-luna', max_tokens: 40 })
  assert.equal(wrong.status, 400)
  assert.equal(dig(wrong.json, 'error.code'), 'unsupported_parameter')
})

test('a long prompt is cached from the second request on, in steps of 128 tokens', async () => {
  const messages = [{ role: 'user', content: 'e'.repeat(8_000) }]
  const first = await create({ model: 'gpt-6.1-sol', messages })
  assert.equal(dig(first.json, 'usage.prompt_tokens_details.cached_tokens'), 0)
  const written = digNumber(first.json, 'usage.prompt_tokens_details.cache_write_tokens')
  assert.ok(written >= 1_920 && written % 128 === 0)
  const second = await create({ model: 'gpt-6.1-sol', messages })
  assert.equal(dig(second.json, 'usage.prompt_tokens_details.cached_tokens'), written)
  assert.equal(dig(second.json, 'usage.prompt_tokens_details.cache_write_tokens'), 0)
})

test('the tier of the reply is the one that served', async () => {
  for (const [asked, served] of [
    ['auto', 'default'],
    ['flex', 'flex'],
    ['fast', 'priority'],
    ['priority', 'priority'],
  ]) {
    assert.equal(dig((await create({ service_tier: asked })).json, 'service_tier'), served)
  }
  assert.equal(dig((await create({ service_tier: 'gold' })).json, 'error.param'), 'service_tier')
})

test('a structured answer is JSON that fits the schema', async () => {
  const format = { type: 'json_schema', json_schema: { name: 'city', schema: weatherSchema } }
  const { json } = await create({ response_format: format })
  assert.deepEqual(Object.keys(JSON.parse(digText(json, 'choices.0.message.content'))), ['city'])
})

test('what upstream would refuse is refused in its shape', async () => {
  for (const [body, status, code, param] of [
    ['[', 400, null, null],
    [{ messages: [] }, 400, null, null],
    [{ model: 'gpt-4o' }, 400, 'missing_required_parameter', 'messages'],
    [chatBody({ messages: [] }), 400, 'empty_array', 'messages'],
    [chatBody({ messages: [{ role: 'x' }] }), 400, 'invalid_value', 'messages[0].role'],
    [chatBody({ n: 0 }), 400, 'integer_out_of_range', 'n'],
    [chatBody({ max_tokens: 0 }), 400, 'integer_below_min_value', 'max_tokens'],
    [chatBody({ max_tokens: 99_999 }), 400, 'invalid_value', 'max_tokens'],
    [chatBody({ stream_options: { include_usage: true } }), 400, null, 'stream_options'],
    [chatBody({ model: 'foo' }), 404, 'model_not_found', null],
    [chatBody({ model: 'text-embedding-3-small' }), 404, null, 'model'],
  ] as const) {
    const answer = await postJson(simulator, '/v1/chat/completions', body)
    assert.equal(answer.status, status, JSON.stringify(body))
    assert.equal(dig(answer.json, 'error.type'), 'invalid_request_error')
    assert.equal(dig(answer.json, 'error.code'), code, JSON.stringify(body))
    assert.equal(dig(answer.json, 'error.param'), param, JSON.stringify(body))
    assert.ok(answer.headers.get('x-request-id'))
  }
})

test('the legacy endpoint completes each prompt n times', async () => {
  const body = { model: 'gpt-3.5-turbo-instruct', prompt: ['One', 'Two'], n: 2, max_tokens: 9 }
  const { json } = await postJson(simulator, '/v1/completions', body)
  assert.equal(digList(json, 'choices').length, 4)
  assert.equal(dig(json, 'object'), 'text_completion')
  assert.equal(dig(json, 'choices.3.finish_reason'), 'length')
  assert.deepEqual(dig(json, 'usage'), { prompt_tokens: 2, completion_tokens: 36, total_tokens: 38 })
  const events = await postEvents(simulator, '/v1/completions', {
    ...body,
    stream: true,
    stream_options: { include_usage: true },
  })
  assert.equal(events.at(-1)?.data, '[DONE]')
  assert.deepEqual(dig(events.at(-2)?.data, 'usage'), dig(json, 'usage'))
  const words = events.filter(({ data }) => dig(data, 'choices.0.index') === 3)
  assert.equal(words.map(({ data }) => dig(data, 'choices.0.text')).join(''), dig(json, 'choices.3.text'))
})

test('models of the Chat surface are one list with their dated names', async () => {
  const { json } = await send(simulator, 'GET', '/v1/models')
  const ids = digList(json, 'data').map((model) => dig(model, 'id'))
  for (const id of ['gpt-6.1-sol', 'gpt-4o', 'gpt-4o-2024-11-20', 'text-embedding-3-small']) {
    assert.ok(ids.includes(id), id)
  }
  assert.ok(!ids.includes('claude-opus-5-5'))
  assert.equal(dig((await send(simulator, 'GET', '/v1/models/gpt-4o')).json, 'object'), 'model')
  assert.equal((await send(simulator, 'GET', '/v1/models/foo')).status, 404)
})
