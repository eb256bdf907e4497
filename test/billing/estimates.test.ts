import assert from 'node:assert/strict'
import { afterEach, closeAfter, test } from '../support/suite.ts'
import type { Step } from '../support/upstream-script.ts'
import { lastChunk, sized } from '../support/wire-bytes.ts'
import {
  created,
  delta,
  event,
  hi,
  json,
  type LeftCall,
  never,
  partialImage,
  startCutBench,
  streamHead,
  upstreamNoticed,
  usd,
} from './cut-bench.ts'

const bench = await startCutBench()
closeAfter(bench)
afterEach(async () => {
  bench.upstream.clear()
  await bench.assertBalanced()
})

type Record_ = Record<string, unknown>
const usageOf = (record: Record_) => record['usage'] as Record<string, number>

/** A JSON call whose client leaves after this many milliseconds, before upstream has answered. */
async function leaveDocument(body: Record_, ms: number): Promise<Record_> {
  const call = await bench.begin('/v1/chat/completions', body, [{ pause: never }])
  await call.received.whenComplete
  bench.step(ms)
  call.client.leave()
  await upstreamNoticed(call)
  return await call.record()
}

test('a JSON call whose client leaves is billed for the time upstream worked, whatever the model', async () => {
  const body = { model: 'gpt-4.1', max_tokens: 2_000, messages: hi }
  const record = await leaveDocument(body, 10_000)
  assert.equal(record['estimated'], true)
  // Ten seconds at 0.05 tokens per millisecond.
  const { output_tokens: output = 0 } = usageOf(record)
  assert.ok(output >= 500 && output < 700, String(output))
  assert.equal(usageOf(await leaveDocument({ ...body, max_tokens: 100 }, 10_000))['output_tokens'], 100)
})

test('a stream whose client leaves before the first output is billed input and no output', async () => {
  const body = { model: 'o4-mini', messages: hi, stream: true }
  const call = await bench.begin('/v1/chat/completions', body, [{ pause: never }])
  await call.received.whenComplete
  bench.step(30_000)
  call.client.leave()
  const usage = usageOf(await call.record())
  assert.equal(usage['output_tokens'], 0)
  assert.ok((usage['input_tokens'] ?? 0) > 10)
})

async function breakOff(body: Record_): Promise<Record_> {
  const call: LeftCall = await bench.begin(
    '/v1/responses',
    { model: 'gpt-5', stream: true, store: false, ...body },
    [{ send: streamHead }, created(), delta('x'.repeat(400)), { reset: true }],
  )
  await call.client.closed()
  return await call.record()
}

test('a call that upstream breaks costs what it delivered, and the rest of its hold is lost', async () => {
  const record = await breakOff({ input: 'go on', previous_response_id: 'resp_unknown' })
  assert.equal(record['estimated'], true)
  assert.equal(usageOf(record)['output_tokens'], 100, 'the silence of a broken call is not charged')
  assert.ok(Number(record['lost_list_cost_usd']) > 0)
  const input = usageOf(record)['input_tokens'] ?? 0
  assert.ok(input > 10 && input < 100, `${input} tokens for what the request carried, not the whole window`)
})

test('a broken image stream is charged the partial image it showed, by size and quality', async () => {
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

test('a stored response that upstream breaks is polled, and estimated if upstream does not know it', async () => {
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

/** Upstream fails mid-stream, sends an error, and ends the stream normally. */
const givesUp: readonly Step[] = [
  event({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }),
  { send: lastChunk() },
]

test('an error event before any output is free even if input was stated; a broken connection is not', async () => {
  const start = event({
    type: 'message_start',
    message: { id: 'm', model: 'claude-haiku-5-5', usage: { input_tokens: 1_000, output_tokens: 1 } },
  })
  const block = event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } })
  const text = event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } })
  for (const [steps, isFree] of [
    [givesUp, true],
    [[start, ...givesUp], true],
    [[start, block, ...givesUp], true],
    [[start, block, text, ...givesUp], false],
    [[start, { reset: true }], false],
  ] as const) {
    const body = { model: 'claude-haiku-5-5', max_tokens: 9, messages: hi, stream: true }
    const call = await bench.begin('/v1/messages', body, [{ send: streamHead }, ...steps])
    const record = await call.record()
    assert.deepEqual([usd(record) === 0, record['estimated']], [isFree, !isFree], JSON.stringify(steps))
  }
})
