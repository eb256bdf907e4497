import assert from 'node:assert/strict'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
import { countTokens } from '../../simulator/text.ts'
import { afterEach, beforeEach, test } from '../support/suite.ts'
import { dig, digList, digText } from './dig.ts'
import { postJson, type Sent, send } from './wire-client.ts'

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
const find = (id: string) => send(simulator, 'GET', `/v1/responses/${id}`)
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
