import assert from 'node:assert/strict'
import { afterEach, closeAfter, test } from '../support/suite.ts'
import type { Step } from '../support/upstream-script.ts'
import { lastChunk } from '../support/wire-bytes.ts'
import {
  completed,
  created,
  delta,
  event,
  hi,
  json,
  never,
  partialImage,
  startCutBench,
  streamHead,
  upstreamNoticed,
} from './cut-bench.ts'

const bench = await startCutBench()
closeAfter(bench)
afterEach(async () => {
  bench.upstream.clear()
  await bench.assertBalanced()
})

const imageDone = event({
  type: 'image_generation.completed',
  usage: {
    input_tokens: 50,
    output_tokens: 6_500,
    input_tokens_details: { text_tokens: 50, image_tokens: 0 },
  },
})
test('an image stream left at its last partial image is read to its end and billed by its usage', async () => {
  const call = await bench.leaveAt(
    'partial_image_index',
    '/v1/images/generations',
    { model: 'gpt-image-2', prompt: 'a cat', stream: true },
    [partialImage],
    [imageDone, { send: lastChunk() }],
  )
  const record = await call.record()
  // 50 × $5/M + 6,500 × $30/M.
  assert.equal(String(record['cost_usd']), '0.19525')
  assert.equal(record['estimated'], false)
})

test('a stored response that is left is cancelled, polled, and billed by upstream’s answer', async () => {
  const call = await bench.leaveAt(
    'Hello',
    '/v1/responses',
    { model: 'gpt-5', input: 'hi', stream: true },
    [created(), delta('Hello')],
    [{ pause: never }],
  )
  const working = { id: 'resp_1', model: 'gpt-5', status: 'in_progress', usage: null, output: [] }
  const done = { ...working, status: 'incomplete', usage: { input_tokens: 1_000, output_tokens: 27_000 } }
  bench.upstream.queue([json(working)], [json(done)])
  const question = await bench.upstream.nextRequest()
  assert.equal(question.requestLine, 'GET /v1/responses/resp_1 HTTP/1.1')
  const record = await call.record()
  assert.equal(record['estimated'], false)
  // 1,000 × $1.25/M + 27,000 × $10/M.
  assert.equal(String(record['cost_usd']), '0.27125')
  assert.equal(call.received.peerClosedEarly, true, 'the generation itself was cancelled')
})

test('a plain generation that is left is cancelled, and silence without reasoning costs nothing', async () => {
  for (const [path, body, before] of [
    [
      '/v1/chat/completions',
      { model: 'gpt-4o', messages: hi, stream: true, stream_options: { include_usage: true } },
      event({ id: 'c', model: 'gpt-4o', choices: [{ index: 0, delta: { content: 'Hello' } }], usage: null }),
    ],
    [
      '/v1/messages',
      { model: 'claude-haiku-5-5', max_tokens: 50_000, messages: hi, stream: true },
      event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } }),
    ],
    [
      '/v1/responses',
      { model: 'gpt-5', input: 'hi', stream: true, store: false, reasoning: { effort: 'none' } },
      delta('Hello'),
    ],
  ] as const) {
    const call = await bench.begin(path, body, [{ send: streamHead }, before, { pause: never }])
    await call.client.received('Hello')
    bench.step(60_000)
    call.client.leave()
    const record = await call.record()
    await upstreamNoticed(call)
    const tokens = (record['usage'] as Record<string, number>)['output_tokens'] ?? 0
    assert.ok(tokens >= 1 && tokens <= 2, `${path}: ${tokens}`)
    assert.equal(record['estimated'], true)
  }
})

const thinks = (more: readonly Step[]): readonly Step[] => [
  event({
    type: 'message_start',
    message: { id: 'm', model: 'claude-opus-5-5', usage: { input_tokens: 9, output_tokens: 1 } },
  }),
  event({ type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '' } }),
  ...more,
]
const summary = (number: number) =>
  event({
    type: 'content_block_delta',
    index: 0,
    delta: { type: 'thinking_delta', thinking: `In short, ${number}.` },
  })
const answer = event({
  type: 'content_block_delta',
  index: 1,
  delta: { type: 'text_delta', text: 'Yes. <<END>>' },
})
const THINKING = { model: 'claude-opus-5-5', max_tokens: 50_000, messages: hi, stream: true }

test('summarised thinking is charged by its duration, not by the summary', async () => {
  const steps = Array.from({ length: 20 }, () => Promise.withResolvers<void>())
  const shown = steps.flatMap(({ promise }, i) => [{ pause: promise }, summary(i)])
  const call = await bench.begin('/v1/messages', THINKING, [
    { send: streamHead },
    ...thinks([]),
    ...shown,
    answer,
    { pause: never },
  ])
  // A delta every 750 ms leaves no gap that would count by itself.
  await call.client.received('content_block_start')
  for (const [i, { resolve }] of steps.entries()) {
    bench.step(750)
    resolve()
    await call.client.received(`In short, ${i}.`)
  }
  await call.client.received('<<END>>')
  call.client.leave()
  const usage = (await call.record())['usage'] as Record<string, number>
  // 15 seconds at the rate of an unknown model: 50 tokens a second.
  assert.ok((usage['output_tokens'] ?? 0) >= 700, String(usage['output_tokens']))
})

/** Path, body, delivered events without usage, the event with usage, its cost. */
const unseen: Readonly<
  Record<string, readonly [path: string, body: unknown, before: readonly Step[], end: Step, usd: string]>
> = {
  'a continued response': [
    '/v1/responses',
    { model: 'gpt-5', input: 'go on', stream: true, store: false, previous_response_id: 'resp_0' },
    [created(), delta('Hello')],
    completed({ input_tokens: 1_900_000, output_tokens: 10 }),
    '2.3751',
  ],
  'a message after web searches': [
    '/v1/messages',
    {
      model: 'claude-haiku-5-5',
      max_tokens: 100,
      messages: hi,
      stream: true,
      tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 10 }],
    },
    [
      event({
        type: 'message_start',
        message: { id: 'm', model: 'claude-haiku-5-5', usage: { input_tokens: 9, output_tokens: 1 } },
      }),
      event({
        type: 'content_block_start',
        index: 0,
        content_block: { type: 'server_tool_use', name: 'web_search', id: 'srvtoolu_Hello', input: {} },
      }),
    ],
    event({
      type: 'message_delta',
      delta: { stop_reason: 'end_turn' },
      usage: { input_tokens: 90_000, output_tokens: 100, server_tool_use: { web_search_requests: 10 } },
    }),
    // 90,000 × $0.10/M + 100 × $0.50/M + 10 × $0.01.
    '0.10905',
  ],
  'a chat with an image to look at': [
    '/v1/chat/completions',
    {
      model: 'gpt-4o',
      messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://a.b/c.png' } }] }],
      stream: true,
      stream_options: { include_usage: true },
    },
    [event({ id: 'c', model: 'gpt-4o', choices: [{ index: 0, delta: { content: 'Hello' } }] })],
    event({ id: 'c', model: 'gpt-4o', choices: [], usage: { prompt_tokens: 1_000, completion_tokens: 5 } }),
    '0.00255',
  ],
}

for (const [name, [path, body, before, end, cost]] of Object.entries(unseen)) {
  test(`${name} is read to its end after its client left, and billed by its usage`, async () => {
    const call = await bench.leaveAt('Hello', path, body, before, [end, { send: lastChunk() }])
    const record = await call.record()
    assert.equal(record['estimated'], false)
    assert.equal(String(record['cost_usd']), cost)
    assert.equal(call.received.peerClosedEarly, false)
  })
}

const message = { id: 'm', model: 'claude-haiku-5-5', usage: { input_tokens: 1_000, output_tokens: 1 } }
const shown: readonly Step[] = [
  event({ type: 'message_start', message }),
  event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
  event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } }),
  event({ type: 'content_block_stop', index: 0 }),
]
const stated: readonly Step[] = [
  event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 200 } }),
  event({ type: 'message_stop' }),
]

for (const [when, mark, before, rest] of [
  ['after the last content but before the final usage', 'content_block_stop', shown, stated],
  ['after the terminal event', 'message_stop', [...shown, ...stated], []],
] as const)
  test(`leaving ${when} is billed upstream’s usage`, async () => {
    const body = { model: 'claude-haiku-5-5', max_tokens: 4_000, messages: hi, stream: true }
    const call = await bench.leaveAt(mark, '/v1/messages', body, before, [...rest, { send: lastChunk() }])
    const record = await call.record()
    assert.equal(record['estimated'], false)
    // 1,000 × $0.10/M + 200 × $0.50/M.
    assert.equal(String(record['cost_usd']), '0.0002')
  })

test('with streams.on_leave "finish", a plain generation is read to its end too', async () => {
  const finishing = await startCutBench({ settings: { onLeave: 'finish' } })
  const call = await finishing.leaveAt(
    'Hello',
    '/v1/chat/completions',
    { model: 'gpt-4o', messages: hi, stream: true, stream_options: { include_usage: true } },
    [event({ id: 'c', model: 'gpt-4o', choices: [{ index: 0, delta: { content: 'Hello' } }] })],
    [
      event({ id: 'c', model: 'gpt-4o', choices: [], usage: { prompt_tokens: 8, completion_tokens: 900 } }),
      { send: lastChunk() },
    ],
  )
  const record = await call.record()
  assert.equal(record['estimated'], false)
  assert.equal(String(record['cost_usd']), '0.00902')
  await finishing.close()
})
