import assert from 'node:assert/strict'
import { after, afterEach, test } from 'node:test'
import { lastChunk } from '../support/wire-bytes.ts'
import { created, delta, event, hi, json, never, startCutBench, upstreamTold, usd } from './cut-bench.ts'

const bench = await startCutBench()
after(() => bench.close())
afterEach(async () => {
  bench.upstream.forget()
  await bench.assertBooksBalance()
})

const PROSE = 'word '.repeat(8_000)
const word = event({ id: 'c', model: 'gpt-4.1', choices: [{ index: 0, delta: { content: 'Hello' } }] })
const schema = { type: 'object', properties: { a: { enum: [PROSE] } } }

const places: readonly (readonly [string, Record<string, unknown>])[] = [
  ['a refusal', { messages: [{ role: 'assistant', refusal: PROSE }, ...hi] }],
  [
    'the schema of an answer',
    { messages: hi, response_format: { type: 'json_schema', json_schema: { name: 'x', schema } } },
  ],
  [
    'the names of a tool',
    {
      messages: hi,
      tools: [{ type: 'function', function: { name: 'f', parameters: { properties: { [PROSE]: {} } } } }],
    },
  ],
]
for (const [place, more] of places) {
  test(`a chat that is left pays for a prompt that stands in ${place}`, async () => {
    const body = { model: 'gpt-4.1', stream: true, ...more }
    const call = await bench.leaveAt('Hello', '/v1/chat/completions', body, [word], [{ send: lastChunk() }])
    // 8,000 tokens are $0.016.
    const cost = usd(await call.record())
    assert.ok(cost > 0.008 && cost < 0.02, String(cost))
  })
}

test('a response that is left pays for the context that it was given encrypted', async () => {
  const input = [{ type: 'compaction', encrypted_content: 'A'.repeat(80_000) }, ...hi]
  const body = { model: 'gpt-4.1', stream: true, store: false, input }
  const call = await bench.leaveAt('Hello', '/v1/responses', body, [created(), delta('Hello')], [])
  const cost = usd(await call.record())
  // gpt-5 answers: 80,000 bytes are some 10,000 to 20,000 tokens, at $1.25/M.
  assert.ok(cost > 0.01 && cost < 0.03, String(cost))
})

const compacted = {
  input_tokens: 2_000,
  output_tokens: 1_000,
  iterations: [
    { type: 'compaction', input_tokens: 180_000, output_tokens: 3_500 },
    { type: 'message', input_tokens: 2_000, output_tokens: 1_000 },
  ],
}
const start = event({
  type: 'message_start',
  message: { id: 'm', model: 'claude-opus-5', usage: { input_tokens: 2_000, output_tokens: 1 } },
})
const summing = {
  model: 'claude-opus-5',
  max_tokens: 1_000,
  stream: true,
  messages: [{ role: 'user', content: PROSE }],
  context_management: {
    edits: [{ type: 'compact_20260112', trigger: { type: 'input_tokens', value: 30_000 } }],
  },
}
const answered = [
  event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: compacted }),
  event({ type: 'message_stop' }),
  { send: lastChunk() },
]
const text = [
  event({ type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } }),
  event({ type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'Hello' } }),
]

test('a message that is left while its context may be summed up is read to its end', async () => {
  const call = await bench.leaveAt('message_start', '/v1/messages', summing, [start], [...text, ...answered])
  // 182,000 × $5/M + 4,500 × $25/M.
  assert.equal(String((await call.record())['cost_usd']), '1.0225')
})

test('a message that is left after its context was summed up is read to its end', async () => {
  const block = event({ type: 'content_block_start', index: 0, content_block: { type: 'compaction' } })
  const call = await bench.leaveAt('Hello', '/v1/messages', summing, [start, block, ...text], answered)
  assert.equal(String((await call.record())['cost_usd']), '1.0225')
})

test('a message whose context was not summed up is cancelled when it is left', async () => {
  const call = await bench.leaveAt('Hello', '/v1/messages', summing, [start, ...text], [{ pause: never }])
  await upstreamTold(call)
  assert.equal((await call.record())['estimated'], true)
})

test('a response that is left after its context was summed up is read to its end', async () => {
  const item = { type: 'compaction', id: 'cmp_1' }
  const body = {
    model: 'gpt-5',
    stream: true,
    store: false,
    input: PROSE,
    context_management: [{ type: 'compaction', compact_threshold: 1_000 }],
  }
  const call = await bench.leaveAt(
    'Hello',
    '/v1/responses',
    body,
    [created(), event({ type: 'response.output_item.added', output_index: 0, item }), delta('Hello')],
    [
      event({
        type: 'response.completed',
        response: { id: 'r', model: 'gpt-5', usage: { input_tokens: 180_000, output_tokens: 5_000 } },
      }),
      { send: lastChunk() },
    ],
  )
  // 180,000 × $1.25/M + 5,000 × $10/M.
  assert.equal(String((await call.record())['cost_usd']), '0.275')
})

test('a reply that repeats a deeply nested schema is billed by its usage', async () => {
  const parameters = JSON.parse(`${'{"a":'.repeat(400)}1${'}'.repeat(400)}`) as unknown
  const tools = [{ type: 'function', name: 'f', parameters }]
  bench.upstream.queue([
    json({
      id: 'r',
      model: 'gpt-4.1',
      output: [],
      tools,
      usage: { input_tokens: 10_000, output_tokens: 500 },
    }),
  ])
  const reply = await bench.call(
    '/v1/responses',
    { model: 'gpt-4.1', input: 'hi', tools },
    { surface: 'chat' },
  )
  assert.equal(reply.header('x-svc-cost-usd'), '0.024')
})
