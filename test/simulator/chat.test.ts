import assert from 'node:assert/strict'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
import { countTokens } from '../../simulator/text.ts'
import { after, before, test } from '../support/suite.ts'
import { dig, digList, digNumber, digText } from './dig.ts'
import { chatBody, postEvents, postJson, type Sent } from './wire-client.ts'

let simulator: Simulator
before(async () => {
  simulator = await startSimulator()
})
after(() => simulator.close())

const create = (more: object = {}, sent: Sent = {}) =>
  postJson(simulator, '/v1/chat/completions', chatBody(more), sent)
const stream = (more: object = {}, sent: Sent = {}) =>
  postEvents(simulator, '/v1/chat/completions', chatBody({ stream: true, ...more }), sent)

test('a completion reports the tokens of its own texts, its snapshot and its tier', async () => {
  const { status, headers, json } = await create({ n: 3 })
  assert.equal(status, 200)
  assert.match(headers.get('x-request-id') ?? '', /^req_[\da-f]{32}$/)
  assert.equal(dig(json, 'model'), 'gpt-4o-2024-08-06')
  assert.equal(dig(json, 'service_tier'), 'default')
  const texts = digList(json, 'choices').map((choice) => digText(choice, 'message.content'))
  assert.ok(texts.length === 3 && new Set(texts).size > 1)
  const completion = texts.reduce((sum, text) => sum + countTokens(text), 0)
  const prompt = 4 + countTokens('Tell me about tollgates.')
  assert.equal(dig(json, 'usage.prompt_tokens'), prompt)
  assert.equal(dig(json, 'usage.completion_tokens'), completion)
  assert.equal(dig(json, 'usage.total_tokens'), prompt + completion)
})

test('a stream with include_usage has it as null in each chunk and once at the end without choices', async () => {
  const stream_options = { include_usage: true, include_obfuscation: false }
  const events = (await stream({ n: 2, stream_options })).slice(0, -1)
  for (const { data } of events.slice(0, -1)) assert.equal(dig(data, 'usage'), null)
  assert.ok(events.every(({ data }) => dig(data, 'obfuscation') === undefined))
  const whole = await create({ n: 2 })
  assert.deepEqual(dig(events.at(-1)?.data, 'choices'), [])
  assert.deepEqual(dig(events.at(-1)?.data, 'usage'), dig(whole.json, 'usage'))
  for (const index of [0, 1]) {
    const chunks = events.filter(({ data }) => dig(data, 'choices.0.index') === index)
    const words = chunks.map(({ data }) => dig(data, 'choices.0.delta.content') ?? '').join('')
    assert.equal(words, dig(whole.json, `choices.${index}.message.content`))
  }
})

test('a long prompt is cached from the second request on, in steps of 128 tokens', async () => {
  const messages = [{ role: 'user', content: 'e'.repeat(8_000) }]
  const details = async () =>
    dig((await create({ model: 'gpt-6.1-sol', messages })).json, 'usage.prompt_tokens_details')
  const first = await details()
  const written = digNumber(first, 'cache_write_tokens')
  assert.equal(dig(first, 'cached_tokens'), 0)
  assert.ok(written >= 1_920 && written % 128 === 0)
  assert.deepEqual(await details(), { audio_tokens: 0, cached_tokens: written, cache_write_tokens: 0 })
})

test('what upstream would refuse is refused in its shape', async () => {
  for (const [body, status, code, param] of [
    ['[', 400, null, null],
    [{ model: 'gpt-4o' }, 400, 'missing_required_parameter', 'messages'],
    [chatBody({ messages: [] }), 400, 'invalid_type', 'messages'],
    [chatBody({ n: 0 }), 400, 'invalid_type', 'n'],
    [chatBody({ max_tokens: 99_999 }), 400, 'invalid_value', 'max_tokens'],
    [chatBody({ model: 'gpt-6-luna', max_tokens: 9 }), 400, 'unsupported_parameter', 'max_tokens'],
    [chatBody({ stream_options: { include_usage: true } }), 400, null, 'stream_options'],
    [chatBody({ service_tier: 'gold' }), 400, null, 'service_tier'],
    [chatBody({ model: 'foo' }), 404, 'model_not_found', null],
    [chatBody({ model: 'gpt-5.3-codex' }), 404, null, 'model'],
  ] as const) {
    const answer = await postJson(simulator, '/v1/chat/completions', body)
    assert.equal(answer.status, status, JSON.stringify(body))
    assert.equal(dig(answer.json, 'error.type'), 'invalid_request_error')
    assert.equal(dig(answer.json, 'error.code'), code, JSON.stringify(body))
    assert.equal(dig(answer.json, 'error.param'), param, JSON.stringify(body))
  }
})
