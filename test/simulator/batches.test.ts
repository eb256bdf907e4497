import assert from 'node:assert/strict'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
import { afterEach, beforeEach, test } from '../support/suite.ts'
import { dig, digNumber, digText } from './dig.ts'
import { anthropicHeaders, chatBody, messageBody, postJson, type Sent, send } from './wire-client.ts'

let simulator: Simulator
let nowMs = 0
beforeEach(async () => {
  nowMs = 0
  simulator = await startSimulator({ clock: () => nowMs })
})
afterEach(() => simulator.close())

const batches = '/v1/messages/batches'
const sent = { headers: anthropicHeaders }
const messages = (method: string, path: string) => send(simulator, method, path, anthropicHeaders)
const ask = (requests: unknown) => postJson(simulator, batches, { requests }, sent)
const asked = (id: string, more: object = {}) => ({ custom_id: id, params: messageBody(more) })
const linesOf = (text: string): unknown[] =>
  text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
const resultsOf = async (batch: unknown) =>
  linesOf(await (await fetch(digText(batch, 'results_url'), sent)).text())

test('a Message Batch ends after its time, with a result for every request', async () => {
  const requests = [asked('one'), asked('two', { model: 'claude-nope' }), asked('three', { stream: true })]
  const created = await ask(requests)
  const id = digText(created.json, 'id')
  assert.match(id, /^msgbatch_01\w{22}$/)
  assert.equal(dig(created.json, 'processing_status'), 'in_progress')
  assert.equal(dig(created.json, 'request_counts.processing'), 3)
  nowMs = 7_059
  assert.deepEqual((await messages('GET', `${batches}/${id}`)).json, created.json)
  assert.equal((await messages('GET', `${batches}/${id}/results`)).status, 404)
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

const chat = '/v1/chat/completions'
const line = (custom_id: string, body: object, url = chat) => ({ custom_id, method: 'POST', url, body })
const startBatch = async (lines: readonly unknown[], endpoint = chat): Promise<unknown> => {
  const form = new FormData()
  form.set('purpose', 'batch')
  form.set('file', new Blob([lines.map((each) => JSON.stringify(each)).join('\n')]), 'in.jsonl')
  const response = await fetch(`${simulator.chatUrl}/files`, { method: 'POST', body: form })
  const input_file_id = digText(await response.json(), 'id')
  const body = { input_file_id, endpoint, completion_window: '24h' }
  return (await postJson(simulator, '/v1/batches', body)).json
}
const findBatch = async (batch: unknown) =>
  (await send(simulator, 'GET', `/v1/batches/${digText(batch, 'id')}`)).json
const fileLines = async (id: unknown) =>
  linesOf(await (await fetch(`${simulator.chatUrl}/files/${id}/content`)).text())

test('a Chat batch goes through its states and leaves a file of answers and one of errors', async () => {
  const wrong = line('two', chatBody({ model: 'gpt-nope' }))
  const created = await startBatch([line('one', chatBody()), wrong, line('three', chatBody())])
  assert.equal(dig(created, 'status'), 'validating')
  nowMs = 7_059
  assert.equal(dig(await findBatch(created), 'status'), 'in_progress')
  nowMs = 7_060
  const batch = await findBatch(created)
  assert.equal(dig(batch, 'status'), 'completed')
  assert.deepEqual(dig(batch, 'request_counts'), { total: 3, completed: 2, failed: 1 })
  const answers = await fileLines(dig(batch, 'output_file_id'))
  assert.deepEqual(
    answers.map((answer) => [dig(answer, 'custom_id'), dig(answer, 'response.status_code')]),
    [
      ['one', 200],
      ['three', 200],
    ],
  )
  assert.ok(digNumber(answers[0], 'response.body.usage.completion_tokens') > 0)
  const [failed] = await fileLines(dig(batch, 'error_file_id'))
  assert.equal(dig(failed, 'response.status_code'), 404)
  assert.equal(dig(failed, 'response.body.error.code'), 'model_not_found')
  const late = await postJson(simulator, `/v1/batches/${digText(batch, 'id')}/cancel`, {})
  assert.equal(late.status, 409)
})

const bodyWith = (more: object = {}) => ({ model: 'gpt-6.1-sol', input: 'Tell me about tollgates.', ...more })
const create = (more: object = {}, sent: Sent = {}) =>
  postJson(simulator, '/v1/responses', bodyWith(more), sent)
const find = (id: string) => send(simulator, 'GET', `/v1/responses/${id}`)

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
