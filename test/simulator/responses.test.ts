import assert from 'node:assert/strict'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
import { countTokens } from '../../simulator/text.ts'
import { afterEach, beforeEach, test } from '../support/suite.ts'
import { dig, digList, digNumber, digText } from './dig.ts'
import { postEvents, postJson, type Sent, send, weatherSchema } from './wire-client.ts'

let simulator: Simulator
let nowMs = 0
beforeEach(async () => {
  nowMs = 0
  simulator = await startSimulator({ clock: () => nowMs })
})
afterEach(() => simulator.close())

const bodyWith = (more: object = {}) => ({ model: 'gpt-6.1-sol', input: 'Tell me about tollgates.', ...more })
const create = (more: object = {}, sent: Sent = {}) =>
  postJson(simulator, '/v1/responses', bodyWith(more), sent)
const stream = (more: object = {}) =>
  postEvents(simulator, '/v1/responses', bodyWith({ stream: true, ...more }))
const find = (id: string) => send(simulator, 'GET', `/v1/responses/${id}`)
const cancel = (id: string) => postJson(simulator, `/v1/responses/${id}/cancel`, {})

test('a response has a reasoning item, a message, and usage that follows from them', async () => {
  const { status, json } = await create({ instructions: 'Be brief.' })
  assert.equal(status, 200)
  assert.equal(dig(json, 'status'), 'completed')
  assert.match(digText(json, 'id'), /^resp_[\da-f]{48}$/)
  const types = digList(json, 'output').map((item) => dig(item, 'type'))
  assert.deepEqual(types, ['reasoning', 'message'])
  const output = 32 + countTokens(digText(json, 'output.1.content.0.text'))
  const input = 4 + countTokens('Tell me about tollgates.') + countTokens('Be brief.')
  assert.deepEqual(dig(json, 'usage'), {
    input_tokens: input,
    input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: 32 },
    total_tokens: input + output,
  })
  const counted = await postJson(
    simulator,
    '/v1/responses/input_tokens',
    bodyWith({ instructions: 'Be brief.' }),
  )
  assert.equal(dig(counted.json, 'input_tokens'), input)
})

test('a stream counts its events and ends with the response that a plain call would give', async () => {
  const events = await stream({ reasoning: { effort: 'low', summary: 'auto' } })
  const names = events.map(({ event }) => event)
  for (const [index, { event, data }] of events.entries()) {
    assert.deepEqual([dig(data, 'type'), dig(data, 'sequence_number')], [event, index])
  }
  assert.deepEqual(
    names.filter((name, index) => name !== names[index - 1]),
    [
      ...['response.created', 'response.in_progress', 'response.output_item.added'],
      ...['response.reasoning_summary_part.added', 'response.reasoning_summary_text.delta'],
      ...['response.reasoning_summary_text.done', 'response.reasoning_summary_part.done'],
      ...['response.output_item.done', 'response.output_item.added', 'response.content_part.added'],
      ...['response.output_text.delta', 'response.output_text.done', 'response.content_part.done'],
      ...['response.output_item.done', 'response.completed'],
    ],
  )
  assert.equal(dig(events[0]?.data, 'response.usage'), null)
  const last = events.at(-1)?.data
  const words = events.filter(({ event }) => event === 'response.output_text.delta')
  const text = words.map(({ data }) => dig(data, 'delta')).join('')
  assert.equal(text, dig(last, 'response.output.1.content.0.text'))
  assert.equal(dig(last, 'response.usage.output_tokens'), 16 + countTokens(text))
})

const weather = { type: 'function', name: 'get_weather', parameters: weatherSchema }
const input = 'How is the weather in Lima?'

test('a function call streams its arguments and is answered with words afterwards', async () => {
  const tools = [weather]
  const events = await stream({ tools, input })
  const done = events.find(({ event }) => event === 'response.function_call_arguments.done')
  assert.equal(dig(done?.data, 'arguments'), '{"city":"Lima"}')
  const response = dig(events.at(-1)?.data, 'response')
  const output = [
    { type: 'function_call_output', call_id: dig(response, 'output.1.call_id'), output: 'windy' },
  ]
  const next = await create({ tools, previous_response_id: dig(response, 'id'), input: output })
  assert.equal(dig(next.json, 'output.1.type'), 'message')
  assert.ok(digNumber(next.json, 'usage.input_tokens') > digNumber(response, 'usage.input_tokens'))
})

test('tools that come as an input item are called, and by later turns too', async () => {
  const namespace = { type: 'namespace', name: 'forecast', tools: [weather] }
  const additional = { type: 'additional_tools', tools: [{ type: 'custom', name: 'exec' }, namespace] }
  const asked = await create({ input: [additional, { role: 'user', content: input }] })
  assert.equal(dig(asked.json, 'output.1.type'), 'function_call')
  assert.equal(dig(asked.json, 'output.1.arguments'), '{"city":"Lima"}')
  const later = { previous_response_id: dig(asked.json, 'id'), input: 'Now use exec.' }
  const next = await create(later)
  assert.equal(dig(next.json, 'output.1.type'), 'custom_tool_call')
  assert.equal(dig(next.json, 'output.1.name'), 'exec')
})

test('a search is an item of its own, is counted, and its result is read as input', async () => {
  const { json } = await create({
    tools: [{ type: 'web_search' }, { type: 'shell' }],
    tool_choice: 'required',
  })
  assert.equal(dig(json, 'output.1.type'), 'web_search_call')
  assert.equal(dig(json, 'output.2.type'), 'message')
  assert.equal(dig(json, 'tool_usage.web_search.num_requests'), 1)
  assert.ok(digNumber(json, 'usage.input_tokens') > 400)
})

// The simulator writes 80 tokens a second after 350 ms, and a second in the queue before that.
const background = { model: 'gpt-4o', background: true }
const slow = { behaviour: 'tokens=80' }

test('a background response is queued, then in progress, then complete with usage', async () => {
  const { json } = await create(background, slow)
  const id = digText(json, 'id')
  const seen: unknown[] = [dig(json, 'status')]
  for (const at of [999, 1_000, 2_349, 2_350]) {
    nowMs = at
    seen.push(dig((await find(id)).json, 'status'))
  }
  assert.deepEqual(seen, ['queued', 'queued', 'in_progress', 'in_progress', 'completed'])
  assert.equal(dig((await find(id)).json, 'usage.output_tokens'), 80)
  nowMs = 1_500
  assert.equal(dig((await find(id)).json, 'usage'), null)
})

test('a background response that is cancelled has the items that were done, and usage', async () => {
  const thinking = { background: true, model: 'gpt-5.4' }
  const { json } = await create(thinking, slow)
  const id = digText(json, 'id')
  // 32 tokens of reasoning take 400 ms.
  nowMs = 1_750
  const cancelled = (await cancel(id)).json
  assert.equal(dig(cancelled, 'status'), 'cancelled')
  assert.equal(dig(cancelled, 'usage.output_tokens'), 32)
  nowMs = 60_000
  assert.deepEqual((await find(id)).json, cancelled)
  const done = digText((await create(background)).json, 'id')
  nowMs = 120_000
  assert.equal(dig((await cancel(done)).json, 'status'), 'completed')
  const plain = digText((await create()).json, 'id')
  assert.equal((await cancel(plain)).status, 400)
  assert.equal((await create({ background: true, store: false })).status, 400)
})
