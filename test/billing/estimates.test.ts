import assert from 'node:assert/strict'
import { after, afterEach, test } from '../support/suite.ts'
import { lastChunk } from '../support/wire-bytes.ts'
import {
  completed,
  created,
  delta,
  event,
  hi,
  json,
  type LeftCall,
  never,
  startCutBench,
  streamHead,
  upstreamTold,
} from './cut-bench.ts'

const bench = await startCutBench()
after(() => bench.close())
afterEach(async () => {
  bench.upstream.forget()
  await bench.assertBalanced()
})

type Record_ = Record<string, unknown>
const usageOf = (record: Record_) => record['usage'] as Record<string, number>

/** A JSON call that its client leaves after so many milliseconds, before upstream has answered. */
async function leaveDocument(body: Record_, ms: number): Promise<Record_> {
  const call = await bench.begin('/v1/chat/completions', body, [{ pause: never }])
  await call.received.whenComplete
  bench.step(ms)
  call.client.leave()
  await upstreamTold(call)
  return await call.record()
}

test('a JSON call that its client leaves pays for the time that upstream worked, whatever the model', async () => {
  const body = { model: 'gpt-4.1', max_tokens: 2_000, messages: hi }
  const record = await leaveDocument(body, 10_000)
  assert.equal(record['estimated'], true)
  // Ten seconds at 0.05 tokens a millisecond.
  const { output_tokens: output = 0 } = usageOf(record)
  assert.ok(output >= 500 && output < 700, String(output))
  assert.equal(usageOf(await leaveDocument({ ...body, max_tokens: 100 }, 10_000))['output_tokens'], 100)
})

test('a stream that its client leaves in upstream’s queue pays its input and no output', async () => {
  const body = { model: 'o4-mini', messages: hi, stream: true }
  const call = await bench.begin('/v1/chat/completions', body, [{ pause: never }])
  await call.received.whenComplete
  bench.step(30_000)
  call.client.leave()
  const usage = usageOf(await call.record())
  assert.equal(usage['output_tokens'], 0)
  assert.ok((usage['input_tokens'] ?? 0) > 10)
})

test('a tool that was only declared does not keep a call running that its client has left', async () => {
  const body = {
    model: 'gpt-5',
    input: 'hi',
    stream: true,
    store: false,
    tools: [{ type: 'web_search' }],
    reasoning: { effort: 'none' },
  }
  const left = await bench.leaveAt(
    'Hello',
    '/v1/responses',
    body,
    [created(), delta('Hello')],
    [{ pause: never }],
  )
  await upstreamTold(left)
  const record = await left.record()
  assert.equal(record['estimated'], true)
  assert.equal(usageOf(record)['output_tokens'], 2)
})

/** A response that upstream breaks off after some text. */
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

test('the context that a broken call continues is charged as it was recorded here', async () => {
  const body = { model: 'gpt-5', input: 'begin', stream: true, store: false }
  const first = await bench.begin('/v1/responses', body, [
    { send: streamHead },
    created({ id: 'resp_known' }),
    completed({ input_tokens: 3_000, output_tokens: 500 }, { id: 'resp_known' }),
    { send: lastChunk() },
  ])
  await first.client.received('response.completed')
  await first.record()
  const record = await breakOff({ input: 'go on', previous_response_id: 'resp_known' })
  const input = usageOf(record)['input_tokens'] ?? 0
  assert.ok(input > 3_500 && input < 3_600, String(input))
})

test('the bytes of an image in a broken call are not taken for text', async () => {
  const image_url = `data:image/png;base64,${'iVBORw0KGgo'.repeat(40_000)}`
  const content = [
    { type: 'input_image', image_url },
    { type: 'input_text', text: 'Who is this?' },
  ]
  const record = await breakOff({ input: [{ role: 'user', content }] })
  assert.ok((usageOf(record)['input_tokens'] ?? 0) < 200, String(usageOf(record)['input_tokens']))
})

test('a container is charged once, however many turns use it', async () => {
  const item = { type: 'code_interpreter_call', id: 'ci_1', container_id: 'cntr_1', code: '1' }
  const costs: string[] = []
  for (let turn = 0; turn < 2; turn++) {
    const body = { id: `resp_${turn}`, model: 'gpt-5', status: 'completed', output: [item] }
    const call = await bench.begin('/v1/responses', { model: 'gpt-5', input: 'run' }, [
      json({ ...body, usage: { input_tokens: 1_000, output_tokens: 0 } }),
    ])
    await call.client.received('cntr_1')
    costs.push(String((await call.record())['cost_usd']))
  }
  // 1,000 × $1.25/M, and $0.03 for the container.
  assert.deepEqual(costs, ['0.03125', '0.00125'])
})

test('a cancelled call is charged its input with the share that this key’s calls had cached', async () => {
  const chunk = (more: Record_) => event({ id: 'c', model: 'gpt-4.1-mini', ...more })
  const body = {
    model: 'gpt-4.1-mini',
    messages: [{ role: 'user', content: 'x'.repeat(4_000) }],
    stream: true,
  }
  const hello = chunk({ choices: [{ index: 0, delta: { content: 'Hello' } }] })
  for (const cached_tokens of [900, 800, 950]) {
    const usage = { prompt_tokens: 1_000, completion_tokens: 2, prompt_tokens_details: { cached_tokens } }
    const call = await bench.begin('/v1/chat/completions', body, [
      { send: streamHead },
      hello,
      chunk({ choices: [], usage }),
      { send: lastChunk() },
    ])
    await call.client.received('Hello')
    await call.record()
  }
  const left = await bench.leaveAt('Hello', '/v1/chat/completions', body, [hello], [{ pause: never }])
  const usage = usageOf(await left.record())
  const [input = 0, cached = 0] = [usage['input_tokens'], usage['cache_read_tokens']]
  assert.ok(cached > 700 && cached <= 800, `${cached} of 80 % cached`)
  assert.ok(input >= 150 && input <= 250, `${input} of 20 % not cached`)
})
