import assert from 'node:assert/strict'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
import { countTokens } from '../../simulator/tokens.ts'
import { after, before, test } from '../support/suite.ts'
import { dig, digList, digNumber, digText } from './dig.ts'
import { parseEvents, postEvents, postJson, type Sent, send, weatherSchema } from './wire-client.ts'

let simulator: Simulator
before(async () => {
  simulator = await startSimulator()
})
after(() => simulator.close())

const responseBody = (more: object = {}) => ({
  model: 'gpt-6.1-sol',
  input: 'Tell me about tollgates.',
  ...more,
})
const create = (more: object = {}, sent: Sent = {}) =>
  postJson(simulator, '/v1/responses', responseBody(more), sent)
const stream = (more: object = {}, sent: Sent = {}) =>
  postEvents(simulator, '/v1/responses', responseBody({ stream: true, ...more }), sent)
const fetchOne = (id: string) => send(simulator, 'GET', `/v1/responses/${id}`)

test('a response has a reasoning item, a message, and usage that follows from them', async () => {
  const { status, json } = await create()
  assert.equal(status, 200)
  assert.equal(dig(json, 'status'), 'completed')
  assert.match(digText(json, 'id'), /^resp_[\da-f]{48}$/)
  assert.deepEqual(
    digList(json, 'output').map((item) => dig(item, 'type')),
    ['reasoning', 'message'],
  )
  const output = 32 + countTokens(digText(json, 'output.1.content.0.text'))
  const input = 4 + countTokens('Tell me about tollgates.') + 0
  assert.deepEqual(dig(json, 'usage'), {
    input_tokens: input,
    input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: 32 },
    total_tokens: input + output,
  })
})

test('a stream counts its events and ends with the response that a plain call would give', async () => {
  const events = await stream({ reasoning: { effort: 'low', summary: 'auto' } })
  const names = events.map(({ event }) => event)
  assert.deepEqual(
    events.map(({ data }) => dig(data, 'sequence_number')),
    events.map((_, index) => index),
  )
  for (const { event, data } of events) assert.equal(dig(data, 'type'), event)
  const distinct = names.filter((name, index) => name !== names[index - 1])
  assert.deepEqual(distinct, [
    'response.created',
    'response.in_progress',
    'response.output_item.added',
    'response.reasoning_summary_part.added',
    'response.reasoning_summary_text.delta',
    'response.reasoning_summary_text.done',
    'response.reasoning_summary_part.done',
    'response.output_item.done',
    'response.output_item.added',
    'response.content_part.added',
    'response.output_text.delta',
    'response.output_text.done',
    'response.content_part.done',
    'response.output_item.done',
    'response.completed',
  ])
  assert.equal(dig(events[0]?.data, 'response.usage'), null)
  const last = events.at(-1)?.data
  const words = events.filter(({ event }) => event === 'response.output_text.delta')
  assert.equal(
    words.map(({ data }) => dig(data, 'delta')).join(''),
    dig(last, 'response.output.1.content.0.text'),
  )
  assert.ok(digNumber(last, 'response.usage.output_tokens') > 16)
})

test('a response cut by its limit is incomplete and says why', async () => {
  const { json } = await create({ max_output_tokens: 40 })
  assert.equal(dig(json, 'status'), 'incomplete')
  assert.deepEqual(dig(json, 'incomplete_details'), { reason: 'max_output_tokens' })
  assert.equal(dig(json, 'usage.output_tokens'), 40)
  assert.equal(dig(json, 'output.1.status'), 'incomplete')
  const events = await stream({ max_output_tokens: 40 })
  assert.equal(events.at(-1)?.event, 'response.incomplete')
  assert.equal((await create({ max_output_tokens: 15 })).status, 400)
})

test('a function call streams its arguments and is answered with words afterwards', async () => {
  const tools = [{ type: 'function', name: 'get_weather', parameters: weatherSchema }]
  const input = 'How is the weather in Lima?'
  const events = await stream({ tools, input })
  const done = events.find(({ event }) => event === 'response.function_call_arguments.done')
  assert.equal(dig(done?.data, 'arguments'), '{"city":"Lima"}')
  const response = dig(events.at(-1)?.data, 'response')
  const call = digList(response, 'output').find((item) => dig(item, 'type') === 'function_call')
  const next = await create({
    tools,
    previous_response_id: dig(response, 'id'),
    input: [{ type: 'function_call_output', call_id: dig(call, 'call_id'), output: 'windy' }],
  })
  assert.equal(dig(next.json, 'output.1.type'), 'message')
  assert.ok(digNumber(next.json, 'usage.input_tokens') > digNumber(response, 'usage.input_tokens'))
})

test('a stored response can be fetched, resumed as a stream, and deleted', async () => {
  const { json } = await create({ model: 'gpt-4o' })
  const id = digText(json, 'id')
  assert.deepEqual((await fetchOne(id)).json, json)
  const resumed = await fetch(`${simulator.chatUrl}/responses/${id}?stream=true&starting_after=3`)
  const events = parseEvents(await resumed.text())
  assert.equal(dig(events[0]?.data, 'sequence_number'), 4)
  assert.deepEqual(dig(events.at(-1)?.data, 'response'), json)
  assert.equal(dig((await send(simulator, 'DELETE', `/v1/responses/${id}`)).json, 'deleted'), true)
  assert.equal((await fetchOne(id)).status, 404)
})

test('a response that is not stored cannot be fetched or continued', async () => {
  const { json } = await create({ store: false })
  const id = digText(json, 'id')
  assert.equal((await fetchOne(id)).status, 404)
  const next = await create({ previous_response_id: id })
  assert.equal(dig(next.json, 'error.code'), 'previous_response_not_found')
})

test('a background response is queued without usage and complete at the first look', async () => {
  const { json } = await create({ background: true })
  assert.equal(dig(json, 'status'), 'queued')
  assert.equal(dig(json, 'usage'), null)
  const later = await fetchOne(digText(json, 'id'))
  assert.equal(dig(later.json, 'status'), 'completed')
  assert.ok(digNumber(later.json, 'usage.output_tokens') > 0)
})

test('input tokens are counted without a response', async () => {
  const counted = await postJson(
    simulator,
    '/v1/responses/input_tokens',
    responseBody({ instructions: 'Be brief.' }),
  )
  const created = await create({ instructions: 'Be brief.' })
  assert.equal(dig(counted.json, 'input_tokens'), dig(created.json, 'usage.input_tokens'))
})

test('model and input are required, and the model must fit the endpoint', async () => {
  const noModel = await postJson(simulator, '/v1/responses', { input: 'x' })
  assert.equal(dig(noModel.json, 'error.param'), 'model')
  const noInput = await postJson(simulator, '/v1/responses', { model: 'gpt-4o' })
  assert.equal(dig(noInput.json, 'error.param'), 'input')
  assert.equal((await create({ model: 'gpt-5.3-codex' })).status, 200)
  const wrongPlace = await postJson(simulator, '/v1/chat/completions', {
    model: 'gpt-5.3-codex',
    messages: [{ role: 'user', content: 'x' }],
  })
  assert.equal(wrongPlace.status, 404)
})
