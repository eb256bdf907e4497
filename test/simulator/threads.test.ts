import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
import { dig, digList, digNumber, digText } from './dig.ts'
import { postEvents, postJson, type Sent, send } from './wire-client.ts'

let simulator: Simulator
let nowMs = 0
let assistantId = ''
let threadId = ''
const headers = { 'openai-beta': 'assistants=v2' }
const weather = { type: 'function', function: { name: 'get_weather', parameters: { type: 'object' } } }
const post = (path: string, body: object, sent: Sent = {}) =>
  postJson(simulator, path, body, { ...sent, headers })
const get = async (path: string) => (await send(simulator, 'GET', path, headers)).json

beforeEach(async () => {
  nowMs = 0
  simulator = await startSimulator({ clock: () => nowMs })
  assistantId = digText((await post('/v1/assistants', { model: 'gpt-4o', tools: [weather] })).json, 'id')
  const messages = [{ role: 'user', content: 'Tell me about tollgates.' }]
  threadId = digText((await post('/v1/threads', { messages })).json, 'id')
})
afterEach(() => simulator.close())

const run = (more: object = {}, sent: Sent = {}) =>
  post(`/v1/threads/${threadId}/runs`, { assistant_id: assistantId, ...more }, sent)
const look = (id: string) => get(`/v1/threads/${threadId}/runs/${id}`)
// The simulator writes 80 tokens a second after 350 ms, and a second in the queue before that.
const behaviour = 'tokens=80'

test('a run is queued, in progress and completed, with usage and an answer at its end', async () => {
  const { json } = await run({}, { behaviour })
  assert.deepEqual([dig(json, 'status'), dig(json, 'usage'), dig(json, 'model')], ['queued', null, 'gpt-4o'])
  const id = digText(json, 'id')
  const seen: unknown[] = []
  for (const at of [999, 1_000, 2_349, 2_350]) {
    nowMs = at
    const now = await look(id)
    seen.push(dig(now, 'status'), dig(now, 'usage') === null)
  }
  const states = ['queued', true, 'in_progress', true, 'in_progress', true, 'completed', false]
  assert.deepEqual(seen, states)
  assert.equal(dig(await look(id), 'usage.completion_tokens'), 80)
  const messages = await get(`/v1/threads/${threadId}/messages`)
  assert.deepEqual([dig(messages, 'data.0.role'), dig(messages, 'data.0.run_id')], ['assistant', id])
})

test('a run waits for its tools, goes on with their outputs, and adds up what both took', async () => {
  const { json } = await run({}, { behaviour: 'call=get_weather' })
  const id = digText(json, 'id')
  nowMs += 60_000
  const waiting = await look(id)
  assert.deepEqual([dig(waiting, 'status'), dig(waiting, 'usage')], ['requires_action', null])
  const call = dig(waiting, 'required_action.submit_tool_outputs.tool_calls.0')
  assert.equal(dig(call, 'function.name'), 'get_weather')
  const outputs = { tool_outputs: [{ tool_call_id: dig(call, 'id'), output: 'Rain' }] }
  const path = `/v1/threads/${threadId}/runs/${id}/submit_tool_outputs`
  assert.equal((await post(path, { tool_outputs: [] })).status, 400)
  assert.equal(dig((await post(path, outputs)).json, 'status'), 'queued')
  assert.equal((await post(path, outputs)).status, 400)
  nowMs += 60_000
  const done = await look(id)
  assert.equal(dig(done, 'status'), 'completed')
  assert.ok(digNumber(done, 'usage.prompt_tokens') > 50)
})

test('tools that are waited for in vain let the run expire', async () => {
  const { json } = await run({}, { behaviour: 'call=get_weather' })
  nowMs += 601_000
  assert.equal(dig(await look(digText(json, 'id')), 'status'), 'expired')
})

test('a run that is cancelled is cancelling first, and keeps the usage of its time', async () => {
  const { json } = await run({}, { behaviour })
  const id = digText(json, 'id')
  nowMs = 1_850
  const path = `/v1/threads/${threadId}/runs/${id}/cancel`
  assert.equal(dig((await post(path, {})).json, 'status'), 'cancelling')
  const busy = await post(`/v1/threads/${threadId}/messages`, { role: 'user', content: 'x' })
  assert.equal(busy.status, 400)
  nowMs = 3_000
  const cancelled = await look(id)
  assert.deepEqual([dig(cancelled, 'status'), dig(cancelled, 'usage.completion_tokens')], ['cancelled', 40])
  assert.equal((await post(path, {})).status, 400)
})

test('a limit makes a run incomplete, and one that is told to fails', async () => {
  const short = await run({ max_completion_tokens: 256 }, { behaviour: 'tokens=400' })
  nowMs += 60_000
  const incomplete = await look(digText(short.json, 'id'))
  assert.deepEqual(
    [dig(incomplete, 'status'), dig(incomplete, 'usage.completion_tokens')],
    ['incomplete', 256],
  )
  const failing = await run({}, { behaviour: 'refusal' })
  nowMs += 60_000
  const failed = await look(digText(failing.json, 'id'))
  assert.deepEqual([dig(failed, 'status'), dig(failed, 'last_error.code')], ['failed', 'server_error'])
})

test('a stream has the thread, the run, its step, its message and the final run, which then is over', async () => {
  const thread = { messages: [{ role: 'user', content: 'Hello' }] }
  const body = { assistant_id: assistantId, thread, stream: true }
  const events = await postEvents(simulator, '/v1/threads/runs', body, { headers })
  const names = [...new Set(events.map(({ event }) => event))]
  assert.deepEqual(names, [
    'thread.created',
    ...['thread.run.created', 'thread.run.queued', 'thread.run.in_progress'],
    ...['thread.run.step.created', 'thread.run.step.in_progress'],
    ...['thread.message.created', 'thread.message.in_progress', 'thread.message.delta'],
    ...['thread.message.completed', 'thread.run.step.completed', 'thread.run.completed', 'done'],
  ])
  const final = events.at(-2)?.data
  assert.ok(digNumber(final, 'usage.total_tokens') > 0)
  const path = `/v1/threads/${digText(final, 'thread_id')}/runs/${digText(final, 'id')}`
  assert.deepEqual(await get(path), final)
})

test('a thread takes its runs along when it is deleted, and nothing is shown without the beta header', async () => {
  const { json } = await run()
  const path = `/v1/threads/${threadId}/runs/${digText(json, 'id')}`
  assert.equal((await send(simulator, 'GET', path)).status, 400)
  assert.equal(digList(await get(`/v1/threads/${threadId}/runs`), 'data').length, 1)
  assert.equal((await send(simulator, 'DELETE', `/v1/threads/${threadId}`, headers)).status, 200)
  assert.equal((await send(simulator, 'GET', path, headers)).status, 404)
})
