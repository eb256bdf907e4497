import assert from 'node:assert/strict'
import { after, afterEach, test } from 'node:test'
import { withDeadline } from '../support/deadline.ts'
import { connect, type RawConnection } from '../support/raw-client.ts'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import type { ReceivedRequest, Step } from '../support/upstream-script.ts'
import { chunk, lastChunk, message, sized } from '../support/wire-bytes.ts'
import { type BillingBench, startBillingBench } from './bench-of-one.ts'

/** A clock whose durations are what the test says, so that a silence has a length. */
let steppedMs = 0
const clock = { nowMs: () => Date.now(), monotonicMs: () => performance.now() + steppedMs }

const upstream = await ScriptedUpstream.start()
const bench = await startBillingBench({ messagesUrl: upstream.url, chatUrl: `${upstream.url}/v1`, clock })
const finishing = await startBillingBench({
  messagesUrl: upstream.url,
  chatUrl: `${upstream.url}/v1`,
  settings: { onLeave: 'finish' },
})
after(async () => {
  await Promise.all([bench.close(), finishing.close()])
  await upstream.close()
})
afterEach(async () => {
  upstream.forget()
  steppedMs = 0
  await bench.assertBooksBalance()
})

const never = new Promise<never>(() => {})
const streamHead = message('HTTP/1.1 200 OK', [
  'Content-Type: text/event-stream',
  'Transfer-Encoding: chunked',
])

const event = (data: Record<string, unknown>): Step => ({
  send: chunk(`event: ${String(data['type'] ?? 'message')}\ndata: ${JSON.stringify(data)}\n\n`),
})
const json = (body: unknown): Step => ({
  send: sized('HTTP/1.1 200 OK', ['Content-Type: application/json'], JSON.stringify(body)),
})

interface LeftCall {
  readonly client: RawConnection
  readonly received: ReceivedRequest
  record(): Promise<Record<string, unknown>>
}

let calls = 0

/** Starts a call that upstream answers with these steps, and gives the connection back while it runs. */
async function begin(path: string, body: unknown, steps: readonly Step[], at: BillingBench = bench) {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const agent = `leaver-${++calls}`
  const client = await connect(at.gateway)
  upstream.queue(steps)
  const arrival = upstream.nextRequest()
  const lines = [
    `POST ${path} HTTP/1.1`,
    'Host: gateway',
    `x-api-key: ${at.gateway.apiKey}`,
    ...(path === '/v1/messages' ? ['anthropic-version: 2023-06-01'] : []),
    `User-Agent: ${agent}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(text)}`,
  ]
  await client.send(Buffer.from(`${lines.join('\r\n')}\r\n\r\n${text}`))
  client.read({ method: 'POST' }).catch(() => undefined)
  const received = await arrival
  const call: LeftCall = {
    client,
    received,
    async record() {
      const list = await at.gateway.manage('GET', '/gateway/v1/requests?limit=10')
      const found = (list['data'] as Record<string, unknown>[]).find((each) => each['user_agent'] === agent)
      return await at.record(String(found?.['id']))
    },
  }
  return call
}

/** A stream whose client leaves when it has seen `mark`; upstream goes on with `rest` when it is told that it left. */
async function leaveAt(
  mark: string,
  path: string,
  body: unknown,
  before: readonly Step[],
  rest: readonly Step[],
  at?: BillingBench,
): Promise<LeftCall> {
  const left = Promise.withResolvers<void>()
  const call = await begin(
    path,
    body,
    [{ send: streamHead }, ...before, { pause: left.promise }, ...rest],
    at,
  )
  await call.client.received(mark)
  call.client.leave()
  await call.client.closed()
  left.resolve()
  return call
}

const hi = [{ role: 'user', content: 'hi' }]
const usd = (record: Record<string, unknown>): number => Number(record['cost_usd'])

const imageDone = event({
  type: 'image_generation.completed',
  usage: {
    input_tokens: 50,
    output_tokens: 6_500,
    input_tokens_details: { text_tokens: 50, image_tokens: 0 },
  },
})
const partialImage = event({
  type: 'image_generation.partial_image',
  b64_json: 'x'.repeat(2_000),
  partial_image_index: 2,
})

test('an image stream that is left at its last partial image is read to its end and billed by its usage', async () => {
  const call = await leaveAt(
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

test('an image stream that upstream breaks is charged by size and quality', async () => {
  const body = { model: 'gpt-image-2', prompt: 'a cat', stream: true, n: 2 }
  for (const [more, tokens] of [
    [{ size: '1024x1024', quality: 'low' }, 272],
    [{ size: '1536x1024', quality: 'medium' }, 1_584],
    [{ size: '2048x2048', quality: 'high' }, 16_640],
    [{}, 6_240],
    [{ size: 'auto', quality: 'auto' }, 6_240],
  ] as const) {
    const steps: Step[] = [{ send: streamHead }, partialImage, { reset: true }]
    const call = await begin('/v1/images/generations', { ...body, ...more }, steps)
    await call.client.closed()
    const record = await call.record()
    assert.equal(record['estimated'], true)
    assert.equal(
      (record['usage'] as Record<string, number>)['output_tokens'],
      2 * tokens,
      JSON.stringify(more),
    )
  }
})

const created = (more: Record<string, unknown> = {}): Step =>
  event({
    type: 'response.created',
    response: {
      id: 'resp_1',
      object: 'response',
      model: 'gpt-5',
      status: 'in_progress',
      usage: null,
      ...more,
    },
  })
const completed = (usage: Record<string, unknown>, more: Record<string, unknown> = {}): Step =>
  event({
    type: 'response.completed',
    response: { id: 'resp_1', model: 'gpt-5', status: 'completed', usage, output: [], ...more },
  })
const delta = (text: string): Step =>
  event({ type: 'response.output_text.delta', output_index: 0, delta: text })

test('a response that is left after its image tool began is read to its end', async () => {
  const item = { type: 'image_generation_call', id: 'ig_1', status: 'in_progress' }
  const call = await leaveAt(
    'ig_1',
    '/v1/responses',
    { model: 'gpt-5', input: 'draw', stream: true, store: false, tools: [{ type: 'image_generation' }] },
    [created(), event({ type: 'response.output_item.added', output_index: 0, item })],
    [
      completed(
        { input_tokens: 100, output_tokens: 50 },
        { tool_usage: { image_gen: { input_tokens: 10, output_tokens: 6_000 } } },
      ),
      { send: lastChunk() },
    ],
  )
  const record = await call.record()
  assert.equal(record['estimated'], false)
  // 100 × $1.25/M + 50 × $10/M of gpt-5; 10 × $5/M + 6,000 × $30/M of gpt-image-2.
  assert.equal(String(record['cost_usd']), '0.180675')
})

test('a response that upstream breaks in the middle of an image is charged the image', async () => {
  const item = { type: 'image_generation_call', id: 'ig_1', status: 'in_progress' }
  const tools = [{ type: 'image_generation', size: '1024x1024', quality: 'high' }]
  const call = await begin(
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
  // 4,160 × $30/M for the image, and the whole context: what the tool gives the model to read is not in the request.
  assert.ok(usd(record) >= 0.1248, String(record['cost_usd']))
  assert.equal(record['estimated'], true)
})

test('a stored response that is left is cancelled, asked for, and settled by what upstream says', async () => {
  const call = await leaveAt(
    'Hello',
    '/v1/responses',
    { model: 'gpt-5', input: 'hi', stream: true },
    [created(), delta('Hello')],
    [{ pause: never }],
  )
  const working = { id: 'resp_1', model: 'gpt-5', status: 'in_progress', usage: null, output: [] }
  const done = { ...working, status: 'incomplete', usage: { input_tokens: 1_000, output_tokens: 27_000 } }
  upstream.queue([json(working)], [json(done)])
  const question = await upstream.nextRequest()
  assert.equal(question.requestLine, 'GET /v1/responses/resp_1 HTTP/1.1')
  const record = await call.record()
  assert.equal(record['estimated'], false)
  // 1,000 × $1.25/M + 27,000 × $10/M.
  assert.equal(String(record['cost_usd']), '0.27125')
  assert.equal(call.received.peerClosedEarly, true, 'the generation itself was cancelled')
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
    const call = await begin('/v1/responses', { model: 'gpt-5', input: 'hi', stream: true }, steps)
    upstream.queue([answer])
    await call.client.closed()
    const record = await call.record()
    assert.equal(record['estimated'], cost === null)
    if (cost !== null) assert.equal(usd(record), cost)
    else assert.ok(usd(record) > 0)
  }
})

test('what goes upstream to ask for a stored response carries the provider’s credential and nothing of the client’s', async () => {
  const call = await leaveAt(
    'Hello',
    '/v1/responses',
    { model: 'gpt-5', input: 'hi', stream: true },
    [created(), delta('Hello')],
    [{ pause: never }],
  )
  upstream.queue([
    json({ id: 'resp_1', status: 'completed', model: 'gpt-5', usage: { input_tokens: 1, output_tokens: 1 } }),
  ])
  const { headerLines } = await upstream.nextRequest()
  assert.ok(headerLines.includes('Authorization: Bearer pc'))
  assert.ok(!headerLines.some((line) => /leaver-|svc_live/i.test(line)))
  await call.record()
})

test('reasoning out of sight is charged by the silence and the rate that the model has shown', async () => {
  const body = { model: 'o4-mini', input: 'think', stream: true, store: false, max_output_tokens: 50_000 }
  const usage = { input_tokens: 10, output_tokens: 1_000 }
  // A complete call of ten seconds and 1,000 tokens: a hundred tokens a second.
  const finished = Promise.withResolvers<void>()
  const complete = await begin('/v1/responses', body, [
    { send: streamHead },
    created(),
    { pause: finished.promise },
    completed(usage),
    { send: lastChunk() },
  ])
  await complete.client.received('resp_1')
  steppedMs += 10_000
  finished.resolve()
  assert.equal((await complete.record())['estimated'], false)

  const left = await begin('/v1/responses', body, [{ send: streamHead }, created(), { pause: never }])
  await left.client.received('resp_1')
  steppedMs += 60_000
  left.client.leave()
  const record = await left.record()
  const tokens = (record['usage'] as Record<string, number>)['output_tokens'] ?? 0
  assert.ok(tokens > 5_500 && tokens <= 6_000, `${tokens} for a minute at a hundred a second`)
  assert.equal(record['estimated'], true)

  const limited = await begin('/v1/responses', { ...body, max_output_tokens: 700 }, [
    { send: streamHead },
    created(),
    { pause: never },
  ])
  await limited.client.received('resp_1')
  steppedMs += 60_000
  limited.client.leave()
  assert.equal(((await limited.record())['usage'] as Record<string, number>)['output_tokens'], 700)
})

test('a plain generation that is left is cancelled, and silence costs nothing where the model does not reason', async () => {
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
    const call = await begin(path, body, [{ send: streamHead }, before, { pause: never }])
    await call.client.received('Hello')
    steppedMs += 60_000
    call.client.leave()
    const record = await call.record()
    await withDeadline(call.received.whenPeerClosed, () => 'upstream was not told')
    const tokens = (record['usage'] as Record<string, number>)['output_tokens'] ?? 0
    assert.ok(tokens >= 1 && tokens <= 2, `${path}: ${tokens}`)
    assert.equal(record['estimated'], true)
  }
})

test('thinking blocks show that a Messages model reasons, though it was not asked to', async () => {
  const call = await begin(
    '/v1/messages',
    { model: 'claude-opus-5-5', max_tokens: 50_000, messages: hi, stream: true },
    [
      { send: streamHead },
      event({
        type: 'message_start',
        message: { id: 'm', model: 'claude-opus-5-5', usage: { input_tokens: 9, output_tokens: 1 } },
      }),
      event({ type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '' } }),
      { pause: never },
    ],
  )
  await call.client.received('content_block')
  steppedMs += 60_000
  call.client.leave()
  const usage = (await call.record())['usage'] as Record<string, number>
  assert.equal(usage['input_tokens'], 9)
  assert.ok((usage['output_tokens'] ?? 0) > 2_000, String(usage['output_tokens']))
})

const audioChat = {
  model: 'gpt-audio',
  modalities: ['text', 'audio'],
  audio: { voice: 'alloy', format: 'pcm16' },
  messages: hi,
  stream: true,
  stream_options: { include_usage: true },
}
const context = 'x'.repeat(300)

/** Calls whose use cannot be told from what was delivered: path, body, what was delivered, the usage at the end, its cost. */
const unseen: Readonly<
  Record<string, readonly [path: string, body: unknown, before: readonly Step[], end: Step, usd: string]>
> = {
  'a response that goes on from another': [
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
  'a response after web searches': [
    '/v1/responses',
    { model: 'gpt-5', input: 'hi', stream: true, store: false, tools: [{ type: 'web_search' }] },
    [
      created(),
      event({
        type: 'response.output_item.added',
        output_index: 0,
        item: { type: 'web_search_call', id: 'ws_Hello' },
      }),
    ],
    completed(
      { input_tokens: 1_000, output_tokens: 10 },
      { tool_usage: { web_search: { num_requests: 10 } } },
    ),
    '0.10135',
  ],
  'a chat with audio': [
    '/v1/chat/completions',
    audioChat,
    [
      event({
        id: 'c',
        model: 'gpt-audio',
        choices: [{ index: 0, delta: { audio: { data: 'AAAA', id: 'Hello' } } }],
      }),
    ],
    event({
      id: 'c',
      model: 'gpt-audio',
      choices: [],
      usage: { prompt_tokens: 10, completion_tokens: 400, completion_tokens_details: { audio_tokens: 400 } },
    }),
    '0.025625',
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
  test(`${name} is read to its end though its client left, and billed by its usage`, async () => {
    const call = await leaveAt('Hello', path, body, before, [end, { send: lastChunk() }])
    const record = await call.record()
    assert.equal(record['estimated'], false)
    assert.equal(String(record['cost_usd']), cost)
    assert.equal(call.received.peerClosedEarly, false)
  })
}

test('a JSON call with tools that upstream runs is read to its end though its client left before the answer', async () => {
  const left = Promise.withResolvers<void>()
  const call = await begin(
    '/v1/responses',
    { model: 'gpt-5', input: 'hi', store: false, tools: [{ type: 'web_search' }] },
    [
      { pause: left.promise },
      json({
        id: 'resp_1',
        model: 'gpt-5',
        status: 'completed',
        usage: { input_tokens: 1_000, output_tokens: 10 },
      }),
    ],
  )
  call.client.leave()
  await call.client.closed()
  left.resolve()
  const record = await call.record()
  assert.equal(record['estimated'], false)
  assert.equal(String(record['cost_usd']), '0.00135')
})

test('a response on a stored context that upstream breaks is charged the input side of its hold', async () => {
  const call = await begin(
    '/v1/responses',
    { model: 'gpt-5', input: 'go on', stream: true, store: false, previous_response_id: 'resp_0' },
    [{ send: streamHead }, created(), delta('Hello'), { reset: true }],
  )
  await call.client.closed()
  const usage = (await call.record())['usage'] as Record<string, number>
  // The context window of gpt-5.
  assert.equal(usage['input_tokens'], 400_000)
})

test('an audio chat that upstream breaks is charged by the length of the audio', async () => {
  const audio = Buffer.alloc(48_000).toString('base64')
  const call = await begin('/v1/chat/completions', audioChat, [
    { send: streamHead },
    event({ id: 'c', model: 'gpt-audio', choices: [{ index: 0, delta: { audio: { data: audio } } }] }),
    { reset: true },
  ])
  await call.client.closed()
  const record = await call.record()
  // A second of it.
  const tokens = (record['usage'] as Record<string, number>)['output_tokens'] ?? 0
  assert.ok(tokens >= 10 && tokens <= 25, String(tokens))
})

test('with streams.on_leave "finish" a plain generation is read to its end as well', async () => {
  const call = await leaveAt(
    'Hello',
    '/v1/chat/completions',
    { model: 'gpt-4o', messages: hi, stream: true, stream_options: { include_usage: true } },
    [event({ id: 'c', model: 'gpt-4o', choices: [{ index: 0, delta: { content: 'Hello' } }] })],
    [
      event({ id: 'c', model: 'gpt-4o', choices: [], usage: { prompt_tokens: 8, completion_tokens: 900 } }),
      { send: lastChunk() },
    ],
    finishing,
  )
  const record = await call.record()
  assert.equal(record['estimated'], false)
  assert.equal(String(record['cost_usd']), '0.00902')
})

test('an error that its client does not wait for is not read on', async () => {
  const call = await begin('/v1/images/generations', { model: 'gpt-image-2', prompt: 'x' }, [
    {
      send: message(
        'HTTP/1.1 429 Too Many Requests',
        ['Content-Type: application/json', 'Content-Length: 1000'],
        'too fast',
      ),
    },
    { pause: never },
  ])
  await call.client.received('too fast')
  call.client.leave()
  await withDeadline(call.received.whenPeerClosed, () => 'upstream was not told')
  assert.equal(usd(await call.record()), 0)
})

test('an answer without usage to a body that cannot be read is charged the output side of the hold', async () => {
  const call = await begin('/v1/chat/completions', `\u{feff}{"model":"gpt-4o","n":1,"x":"${context}"}`, [
    json({ id: 'c', model: 'gpt-4o', choices: [{ index: 0, message: { content: 'Hello' } }] }),
  ])
  const record = await call.record()
  assert.equal(record['estimated'], true)
  assert.equal((record['usage'] as Record<string, number>)['output_tokens'], 16_384)
})
