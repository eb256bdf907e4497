import assert from 'node:assert/strict'
import { type Simulator, type SimulatorOptions, startSimulator } from '../../simulator/start-simulator.ts'
import { afterEach, beforeEach, test } from '../support/suite.ts'
import { dig, digList, digNumber, digText } from './dig.ts'
import { anthropicHeaders, chatBody, messageBody, postJson, type Sent, send } from './wire-client.ts'

let simulator: Simulator
let nowMs = 0
beforeEach(async () => {
  nowMs = 0
  simulator = await startSimulator({ clock: () => nowMs })
})
afterEach(() => simulator.close())

const batches = '/v1/messages/batches'
const messages = (method: string, path: string) => send(simulator, method, path, anthropicHeaders)
const ask = (requests: unknown, sent: Sent = {}) =>
  postJson(simulator, batches, { requests }, { headers: anthropicHeaders, ...sent })
const asked = (id: string, more: object = {}) => ({ custom_id: id, params: messageBody(more) })
const linesOf = (text: string): unknown[] =>
  text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
const resultsOf = async (batch: unknown) =>
  linesOf(await (await fetch(digText(batch, 'results_url'), { headers: anthropicHeaders })).text())

test('a Message Batch ends after its time, with a result for every request', async () => {
  const requests = [asked('one'), asked('two', { model: 'claude-nope' }), asked('three', { stream: true })]
  const created = await ask(requests)
  const id = digText(created.json, 'id')
  assert.match(id, /^msgbatch_01\w{22}$/)
  assert.equal(dig(created.json, 'processing_status'), 'in_progress')
  assert.equal(dig(created.json, 'request_counts.processing'), 3)
  nowMs = 7_000
  const running = await messages('GET', `${batches}/${id}`)
  assert.deepEqual(running.json, created.json)
  assert.equal((await messages('GET', `${batches}/${id}/results`)).status, 404)
  assert.equal((await messages('DELETE', `${batches}/${id}`)).status, 400)
  nowMs = 7_060
  const { json: ended } = await messages('GET', `${batches}/${id}`)
  assert.equal(dig(ended, 'processing_status'), 'ended')
  const counts = { processing: 0, succeeded: 1, errored: 2, canceled: 0, expired: 0 }
  assert.deepEqual(dig(ended, 'request_counts'), counts)
  const [one, two, three] = await resultsOf(ended)
  assert.equal(dig(one, 'custom_id'), 'one')
  assert.equal(dig(one, 'result.message.usage.service_tier'), 'batch')
  assert.ok(digNumber(one, 'result.message.usage.output_tokens') > 0)
  assert.equal(dig(two, 'result.error.error.type'), 'not_found_error')
  assert.equal(dig(three, 'result.type'), 'errored')
  const gone = await messages('DELETE', `${batches}/${id}`)
  assert.deepEqual(gone.json, { id, type: 'message_batch_deleted' })
  assert.equal((await messages('GET', `${batches}/${id}`)).status, 404)
})

test('a Message Batch that is cancelled keeps what was done by then', async () => {
  const created = await ask(Array.from({ length: 10 }, (_, index) => asked(`r${index}`)))
  const id = digText(created.json, 'id')
  // Half way: a batch takes one second of checking, then 5.2 seconds of work.
  nowMs = 3_600
  const cancelled = await postJson(simulator, `${batches}/${id}/cancel`, {}, { headers: anthropicHeaders })
  assert.equal(dig(cancelled.json, 'processing_status'), 'canceling')
  nowMs = 4_600
  const { json } = await messages('GET', `${batches}/${id}`)
  const counts = { processing: 0, succeeded: 5, errored: 0, canceled: 5, expired: 0 }
  assert.deepEqual(dig(json, 'request_counts'), counts)
  assert.equal(dig((await resultsOf(json)).at(-1), 'result.type'), 'canceled')
})

test('Message Batches are listed newest first, in pages both ways', async () => {
  const ids: string[] = []
  for (const name of ['a', 'b', 'c']) ids.unshift(digText((await ask([asked(name)])).json, 'id'))
  const list = async (query: string) => {
    const { json } = await messages('GET', `${batches}?${query}`)
    return [digList(json, 'data').map((batch) => dig(batch, 'id')), dig(json, 'has_more')]
  }
  assert.deepEqual(await list(''), [ids, false])
  assert.deepEqual(await list('limit=2'), [ids.slice(0, 2), true])
  assert.deepEqual(await list(`limit=2&after_id=${ids[1]}`), [ids.slice(2), false])
  assert.deepEqual(await list(`limit=1&before_id=${ids[2]}`), [[ids[1]], true])
})

test('a Message Batch is refused for want of requests, ids or parameters', async () => {
  for (const requests of [undefined, [], [{ params: {} }], [{ custom_id: 'a' }], [asked('a'), asked('a')]]) {
    const { status, json } = await ask(requests)
    assert.equal(status, 400)
    assert.match(digText(json, 'error.message'), /^requests/)
  }
})

const upload = async (lines: readonly unknown[]): Promise<string> => {
  const form = new FormData()
  form.set('purpose', 'batch')
  const text = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n')
  form.set('file', new Blob([text]), 'in.jsonl')
  const response = await fetch(`${simulator.chatUrl}/files`, { method: 'POST', body: form })
  return digText(await response.json(), 'id')
}
const line = (id: string, body: object, url = '/v1/chat/completions') => ({
  custom_id: id,
  method: 'POST',
  url,
  body,
})
const startBatch = (fileId: string, endpoint = '/v1/chat/completions') =>
  postJson(simulator, '/v1/batches', { input_file_id: fileId, endpoint, completion_window: '24h' })
const look = async (id: string) => (await send(simulator, 'GET', `/v1/batches/${id}`)).json
const fileLines = async (id: unknown) =>
  linesOf(await (await fetch(`${simulator.chatUrl}/files/${id}/content`)).text())

test('a Chat batch goes through its states and leaves a file of answers and one of errors', async () => {
  const lines = [
    line('one', chatBody()),
    line('two', chatBody({ model: 'gpt-nope' })),
    line('three', chatBody()),
  ]
  const created = await startBatch(await upload(lines))
  const id = digText(created.json, 'id')
  assert.equal(dig(created.json, 'status'), 'validating')
  const seen: unknown[] = []
  for (const at of [999, 1_000, 6_060, 7_060]) {
    nowMs = at
    seen.push(dig(await look(id), 'status'))
  }
  assert.deepEqual(seen, ['validating', 'in_progress', 'finalizing', 'completed'])
  const batch = await look(id)
  assert.deepEqual(dig(batch, 'request_counts'), { total: 3, completed: 2, failed: 1 })
  assert.equal(dig(batch, 'model'), 'gpt-4o-2024-08-06')
  const answers = await fileLines(dig(batch, 'output_file_id'))
  assert.deepEqual(
    answers.map((answer) => [dig(answer, 'custom_id'), dig(answer, 'response.status_code')]),
    [
      ['one', 200],
      ['three', 200],
    ],
  )
  const output = answers.map((answer) => digNumber(answer, 'response.body.usage.completion_tokens'))
  assert.equal(dig(batch, 'usage.output_tokens'), output[0] === undefined ? 0 : output[0] * 2)
  const [failed] = await fileLines(dig(batch, 'error_file_id'))
  assert.equal(dig(failed, 'response.status_code'), 404)
  const late = await postJson(simulator, `/v1/batches/${id}/cancel`, {})
  assert.equal(late.status, 409)
})

test('a Chat batch runs on other endpoints, and is listed', async () => {
  const body = { model: 'gpt-6.1-sol', input: 'x' }
  const fileId = await upload([line('one', body, '/v1/responses')])
  const ids: string[] = []
  for (const _ of [1, 2]) ids.unshift(digText((await startBatch(fileId, '/v1/responses')).json, 'id'))
  nowMs = 60_000
  const batch = await look(String(ids[0]))
  assert.equal(dig(batch, 'usage.output_tokens_details.reasoning_tokens'), 32)
  const page = await send(simulator, 'GET', '/v1/batches?limit=1')
  assert.deepEqual(
    digList(page.json, 'data').map((found) => dig(found, 'id')),
    [ids[0]],
  )
  assert.equal(dig(page.json, 'has_more'), true)
  const rest = await send(simulator, 'GET', `/v1/batches?after=${ids[0]}`)
  assert.equal(dig(rest.json, 'data.0.id'), ids[1])
})

test('a Chat batch that is cancelled has answers for what was done by then', async () => {
  const lines = Array.from({ length: 10 }, (_, index) => line(`r${index}`, chatBody()))
  const id = digText((await startBatch(await upload(lines))).json, 'id')
  nowMs = 3_600
  const cancelled = await postJson(simulator, `/v1/batches/${id}/cancel`, {})
  assert.equal(dig(cancelled.json, 'status'), 'cancelling')
  nowMs = 4_600
  const batch = await look(id)
  assert.equal(dig(batch, 'status'), 'cancelled')
  assert.equal((await fileLines(dig(batch, 'output_file_id'))).length, 5)
})

test('a Chat batch whose file is wrong fails and says which line', async () => {
  const id = digText((await startBatch(await upload([line('one', chatBody()), 'no json']))).json, 'id')
  nowMs = 60_000
  const batch = await look(id)
  assert.equal(dig(batch, 'status'), 'failed')
  assert.equal(dig(batch, 'errors.data.0.line'), 2)
  assert.equal(dig(batch, 'output_file_id'), null)
  assert.equal((await startBatch('file-nope')).status, 400)
  assert.match(
    digText((await startBatch('file-nope', '/v1/videos')).json, 'error.message'),
    /runs no batches on/,
  )
})

test('work in the background is hurried by a factor, and at an instant pace done at the first look', async () => {
  const startedAt = async (options: SimulatorOptions) => {
    await simulator.close()
    simulator = await startSimulator(options)
    return digText((await ask([asked('one')])).json, 'id')
  }
  const hurried = await startedAt({ clock: () => nowMs, hurry: 10 })
  nowMs = 701
  const before = await messages('GET', `${batches}/${hurried}`)
  assert.equal(dig(before.json, 'processing_status'), 'in_progress')
  nowMs = 702
  const ended = await messages('GET', `${batches}/${hurried}`)
  assert.equal(dig(ended.json, 'processing_status'), 'ended')
  const instant = await messages('GET', `${batches}/${await startedAt({ pace: 'instant' })}`)
  assert.equal(dig(instant.json, 'processing_status'), 'ended')
  const realistic = await messages('GET', `${batches}/${await startedAt({ pace: 'realistic' })}`)
  assert.equal(dig(realistic.json, 'processing_status'), 'in_progress')
})

test('a batch that would answer more than fits expires for the rest', async () => {
  const requests = Array.from({ length: 30 }, (_, index) => asked(`r${index}`, { max_tokens: 128_000 }))
  const created = await ask(requests, { behaviour: 'tokens=128000' })
  const long = await ask(
    Array.from({ length: 90 }, (_, index) => asked(`r${index}`, { max_tokens: 128_000 })),
    { behaviour: 'tokens=128000' },
  )
  nowMs = 60_000
  const short = await messages('GET', `${batches}/${digText(created.json, 'id')}`)
  assert.equal(dig(short.json, 'request_counts.succeeded'), 30)
  const counts = dig((await messages('GET', `${batches}/${digText(long.json, 'id')}`)).json, 'request_counts')
  assert.equal(digNumber(counts, 'succeeded') + digNumber(counts, 'expired'), 90)
  assert.ok(digNumber(counts, 'expired') > 10, JSON.stringify(counts))
})
