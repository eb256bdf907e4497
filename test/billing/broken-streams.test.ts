import assert from 'node:assert/strict'
import { after, afterEach, test } from '../support/suite.ts'
import type { Step } from '../support/upstream-script.ts'
import { lastChunk, sized } from '../support/wire-bytes.ts'
import {
  audioChat,
  created,
  delta,
  event,
  hi,
  json,
  partialImage,
  startCutBench,
  streamHead,
  usd,
} from './cut-bench.ts'

const bench = await startCutBench()
after(() => bench.close())
afterEach(async () => {
  bench.upstream.forget()
  await bench.assertBalanced()
})

test('an image stream that upstream breaks is charged the image that it has shown, by size and quality', async () => {
  const body = { model: 'gpt-image-2', prompt: 'a cat', stream: true, n: 2 }
  for (const [more, tokens] of [
    [{ size: '1024x1024', quality: 'low' }, 272],
    [{ size: '1536x1024', quality: 'medium' }, 1_584],
    [{ size: '2048x2048', quality: 'high' }, 16_640],
    [{}, 6_240],
    [{ size: 'auto', quality: 'auto' }, 6_240],
  ] as const) {
    const steps: Step[] = [{ send: streamHead }, partialImage, { reset: true }]
    const call = await bench.begin('/v1/images/generations', { ...body, ...more }, steps)
    await call.client.closed()
    const record = await call.record()
    assert.equal(record['estimated'], true)
    assert.equal((record['usage'] as Record<string, number>)['output_tokens'], tokens, JSON.stringify(more))
  }
})

test('a response that upstream breaks in the middle of an image is charged the image', async () => {
  const item = { type: 'image_generation_call', id: 'ig_1', status: 'in_progress' }
  const tools = [{ type: 'image_generation', size: '1024x1024', quality: 'high' }]
  const call = await bench.begin(
    '/v1/responses',
    { model: 'gpt-5', input: 'draw', stream: true, store: false, tools },
    [
      { send: streamHead },
      created(),
      event({ type: 'response.output_item.added', output_index: 0, item }),
      { reset: true },
    ],
  )
  await call.client.closed()
  const record = await call.record()
  // 4,160 × $30/M for the image, and the whole context, since the tool's input to the model is not in the request.
  assert.ok(usd(record) >= 0.1248, String(record['cost_usd']))
  assert.equal(record['estimated'], true)
})

test('a stored response that upstream breaks is asked for as well, and one it does not know is estimated', async () => {
  for (const [answer, cost] of [
    [
      json({
        id: 'resp_1',
        model: 'gpt-5',
        status: 'completed',
        usage: { input_tokens: 8, output_tokens: 100 },
      }),
      0.00101,
    ],
    [{ send: sized('HTTP/1.1 404 Not Found', ['Content-Type: application/json'], '{"error":{}}') }, null],
  ] as const) {
    const steps: Step[] = [{ send: streamHead }, created(), delta('Hello'), { reset: true }]
    const call = await bench.begin('/v1/responses', { model: 'gpt-5', input: 'hi', stream: true }, steps)
    bench.upstream.queue([answer])
    await call.client.closed()
    const record = await call.record()
    assert.equal(record['estimated'], cost === null)
    if (cost !== null) assert.equal(usd(record), cost)
    else assert.ok(usd(record) > 0)
  }
})

/** Upstream gives up in the middle of a stream, says so, and ends the stream as if it were whole. */
const givesUp: readonly Step[] = [
  event({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }),
  { send: lastChunk() },
]

test('an image stream that ends in an error is charged by size and quality if it has shown an image', async () => {
  const body = { model: 'gpt-image-2', prompt: 'a cat', stream: true, size: '1024x1024', quality: 'low' }
  const shownImage = event({ type: 'image_generation.partial_image', b64_json: 'x'.repeat(20_000) })
  for (const [shown, tokens] of [
    [[shownImage], 272],
    [[], 0],
  ] as const) {
    const call = await bench.begin('/v1/images/generations', body, [
      { send: streamHead },
      ...shown,
      ...givesUp,
    ])
    const record = await call.record()
    assert.equal((record['usage'] as Record<string, number>)['output_tokens'], tokens)
    assert.equal(usd(record) > 0, tokens > 0)
  }
})

test('a stored response that ends in an error instead of its usage is asked for as well', async () => {
  const steps: Step[] = [{ send: streamHead }, created(), delta('Hello'), ...givesUp]
  const call = await bench.begin('/v1/responses', { model: 'gpt-5', input: 'hi', stream: true }, steps)
  const usage = { input_tokens: 8, output_tokens: 100 }
  bench.upstream.queue([json({ id: 'resp_1', model: 'gpt-5', status: 'failed', usage })])
  const record = await call.record()
  assert.deepEqual([record['estimated'], usd(record)], [false, 0.00101])
})

test('a response on a stored context that ends in an error is charged what its request carried', async () => {
  const call = await bench.begin(
    '/v1/responses',
    { model: 'gpt-5', input: 'go on', stream: true, store: false, previous_response_id: 'resp_0' },
    [{ send: streamHead }, created(), delta('Hello'), ...givesUp],
  )
  const usage = (await call.record())['usage'] as Record<string, number>
  assert.ok((usage['input_tokens'] ?? 0) < 100)
})

test('a response that ends in an error after its tools have run is charged, though it has said nothing yet', async () => {
  const item = { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search' } }
  const call = await bench.begin(
    '/v1/responses',
    { model: 'gpt-5', input: 'look', stream: true, store: false, tools: [{ type: 'web_search' }] },
    [
      { send: streamHead },
      created(),
      event({
        type: 'response.output_item.added',
        output_index: 0,
        item: { ...item, status: 'in_progress' },
      }),
      event({ type: 'response.output_item.done', output_index: 0, item }),
      ...givesUp,
    ],
  )
  // $0.01 for the search, and the context that it was read in.
  const record = await call.record()
  assert.ok(usd(record) > 0.01, String(record['cost_usd']))
})

test('a message that ends in an error while it thinks is not charged for the silence', async () => {
  const thought = Promise.withResolvers<void>()
  const body = { model: 'claude-opus-5-5', max_tokens: 50_000, messages: hi, stream: true }
  const call = await bench.begin('/v1/messages', body, [
    { send: streamHead },
    event({
      type: 'message_start',
      message: { id: 'm', model: 'claude-opus-5-5', usage: { input_tokens: 9, output_tokens: 1 } },
    }),
    event({ type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '' } }),
    { pause: thought.promise },
    ...givesUp,
  ])
  await call.client.received('content_block')
  bench.step(60_000)
  thought.resolve()
  const usage = (await call.record())['usage'] as Record<string, number>
  assert.deepEqual([usage['input_tokens'], usage['output_tokens']], [9, 1])
})

test('an audio chat that upstream breaks is charged by the length of the audio', async () => {
  const audio = Buffer.alloc(48_000).toString('base64')
  const call = await bench.begin('/v1/chat/completions', audioChat, [
    { send: streamHead },
    event({ id: 'c', model: 'gpt-audio', choices: [{ index: 0, delta: { audio: { data: audio } } }] }),
    { reset: true },
  ])
  await call.client.closed()
  const record = await call.record()
  // The audio is a second long.
  const tokens = (record['usage'] as Record<string, number>)['output_tokens'] ?? 0
  assert.ok(tokens >= 10 && tokens <= 25, String(tokens))
})
