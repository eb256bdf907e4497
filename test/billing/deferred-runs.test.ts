import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { until } from '../support/until.ts'
import { startBillingBench } from './bench-of-one.ts'

/** Upstream works by this clock; the gateway polls by its own. */
let workMs = 0
const bench = await startBillingBench({ settings: { budgetWaitMs: 0 } }, { clock: () => workMs })
after(() => bench.close())

const weather = { type: 'function', function: { name: 'get_weather', parameters: { type: 'object' } } }
const options = { surface: 'chat', lines: ['OpenAI-Beta: assistants=v2'] } as const
const admin = (path: string) => bench.gateway.manage('GET', path)
const recordOf = (id: string) => admin(`/gateway/v1/requests/${id}`)

async function create(path: string, body: object): Promise<string> {
  return JSON.parse((await bench.call(path, body, options)).body.toString()).id
}
const assistantId = await create('/v1/assistants', { model: 'gpt-4o', tools: [weather] })
/** The model costs $2.50 a million tokens of input, $10 of output. */
const LIMITS = { max_prompt_tokens: 4_000, max_completion_tokens: 1_000 }
const RUN = { assistant_id: assistantId, model: 'gpt-4o', ...LIMITS }
const TOKENS = 'tokens=80'

interface Made {
  readonly path: string
  readonly requestId: string
}

/** A run that was begun on a thread of its own, and its call, which is open. */
async function made(more: object = {}, simulate = TOKENS, key?: string): Promise<Made> {
  const thread = await create('/v1/threads', { messages: [{ role: 'user', content: 'Tell me about gates' }] })
  const path = `/v1/threads/${thread}/runs`
  const sent = { ...options, simulate, ...(key === undefined ? {} : { key }) }
  const reply = await bench.call(path, { ...RUN, ...more }, sent)
  assert.equal(reply.status, 200, reply.body.toString())
  const { state, object_id } = await recordOf(reply.requestId)
  assert.equal(state, 'deferred')
  return { path: `${path}/${object_id}`, requestId: reply.requestId }
}

const look = async (path: string, simulate?: string) => {
  const sent = { ...options, method: 'GET', ...(simulate === undefined ? {} : { simulate }) }
  return JSON.parse((await bench.call(path, undefined, sent)).body.toString())
}

/** The record of a run, once a client has seen it completed. */
async function settled({ path, requestId }: Made) {
  workMs += 3_600_000
  const { usage } = await look(path)
  const record = await recordOf(requestId)
  assert.equal(record['state'], 'settled')
  return { ...record, usage, counted: record['usage'] } as Record<string, unknown> & {
    usage: Record<string, number>
  }
}

const outputOf = (usage: unknown) => (usage as Record<string, number>)['output_tokens']
const priceOf = ({ prompt_tokens = 0, completion_tokens = 0 }: Record<string, number>) =>
  (prompt_tokens * 2_500 + completion_tokens * 10_000) / 1e9

test('a run stays open with its hold, and is settled by its usage when the gateway finds it done', async () => {
  const { id: keyId, key } = await bench.gateway.createKey('capped', { monthly_budget_usd: 1 })
  const { path, requestId } = await made({}, TOKENS, key)
  assert.equal((await admin(`/v1/keys/${keyId}`))['month_held_usd'], 0.02)
  workMs += 3_600_000
  await until('it is settled', async () => (await recordOf(requestId))['state'] === 'settled')
  const { usage } = await look(path)
  assert.equal(usage.completion_tokens, 80)
  const { cost_usd, usage: counted, model_served } = await recordOf(requestId)
  assert.deepEqual([cost_usd, outputOf(counted), model_served], [priceOf(usage), 80, 'gpt-4o'])
  const { month_held_usd, month_spend_usd } = await admin(`/v1/keys/${keyId}`)
  assert.deepEqual([month_held_usd, month_spend_usd], [0, cost_usd])
  await bench.assertBooksBalance()
})

test("a client's own look settles it, and a run without a model goes by that of its assistant", async () => {
  const run = await made({ model: undefined })
  const { cost_usd, usage, model_served } = await settled(run)
  assert.deepEqual([cost_usd, model_served], [priceOf(usage), 'gpt-4o'])
  await look(run.path)
  assert.equal((await recordOf(run.requestId))['cost_usd'], cost_usd)
})

test('a run that waits for its tools is not settled, and their outputs cost no call of their own', async () => {
  const run = await made({}, 'call=get_weather')
  workMs += 60_000
  const { status, required_action } = await look(run.path)
  assert.equal(status, 'requires_action')
  assert.equal((await recordOf(run.requestId))['state'], 'deferred')
  const calls = required_action.submit_tool_outputs.tool_calls as { id: string }[]
  const outputs = { tool_outputs: calls.map(({ id }) => ({ tool_call_id: id, output: 'Rain' })) }
  const submitted = await bench.call(`${run.path}/submit_tool_outputs`, outputs, options)
  assert.deepEqual([submitted.status, submitted.header('x-svc-cost-usd')], [200, '0'])
  const { cost_usd, usage } = await settled(run)
  assert.equal(cost_usd, priceOf(usage))
})

test('a stream that shows the final run is settled there', async () => {
  const thread = { messages: [{ role: 'user', content: 'Hello' }] }
  const body = { ...RUN, thread, stream: true }
  const reply = await bench.call('/v1/threads/runs', body, { ...options, simulate: TOKENS })
  const { state, cost_usd, object_id, usage } = await recordOf(reply.requestId)
  assert.deepEqual([state, outputOf(usage)], ['settled', 80])
  assert.match(String(object_id), /^run_/)
  assert.ok(Number(cost_usd) > 0)
  assert.equal(reply.trailer('x-svc-cost-usd'), String(cost_usd))
  await bench.assertBooksBalance()
})

test('a stream that ends with tools to be run is deferred, and settled by the stream that goes on', async () => {
  const run = await made({ stream: true }, 'call=get_weather')
  const { required_action } = await look(run.path)
  const calls = required_action.submit_tool_outputs.tool_calls as { id: string }[]
  const tool_outputs = calls.map(({ id }) => ({ tool_call_id: id, output: 'Rain' }))
  const more = await bench.call(`${run.path}/submit_tool_outputs`, { tool_outputs, stream: true }, options)
  assert.match(more.body.toString(), /thread\.run\.completed/)
  const { state, cost_usd } = await recordOf(run.requestId)
  assert.equal(state, 'settled')
  assert.equal(cost_usd, priceOf((await look(run.path)).usage))
})

test('a stream that is left or breaks leaves a run that goes on, and is paid', async () => {
  const run = await made({ stream: true }, `${TOKENS};cut=event:8`)
  const { cost_usd, usage, counted } = await settled(run)
  assert.deepEqual([cost_usd, outputOf(counted)], [priceOf(usage), 80])
})

test('runs that are cancelled, expired, failed or incomplete cost what they say that they have used', async () => {
  const cancelled = await made()
  workMs += 1_850
  await bench.call(`${cancelled.path}/cancel`, '{}', options)
  assert.equal((await recordOf(cancelled.requestId))['state'], 'deferred')
  const ends = [
    [cancelled, 'cancelled'],
    [await made({}, 'call=get_weather'), 'expired'],
    [await made({}, 'refusal'), 'failed'],
    [await made({ max_completion_tokens: 256 }, 'tokens=400'), 'incomplete'],
  ] as const
  for (const [run, end] of ends) {
    const { stop_reason, cost_usd, usage } = await settled(run)
    assert.deepEqual([stop_reason, cost_usd], [end, priceOf(usage)])
    assert.ok(Number(cost_usd) > 0, end)
  }
  await bench.assertBooksBalance()
})

test('a thread that is deleted while it runs is paid for what it has used by then', async () => {
  const going = await startBillingBench({}, { hurry: 1 })
  try {
    const post = async (path: string, body: object, simulate = TOKENS) => {
      const reply = await going.call(path, body, { ...options, simulate })
      return { ...(JSON.parse(reply.body.toString()) as { id: string }), requestId: reply.requestId }
    }
    const { id: assistant_id } = await post('/v1/assistants', { model: 'gpt-4o' })
    const { id } = await post('/v1/threads', { messages: [{ role: 'user', content: 'Hello' }] })
    // An id that is a prefix of the thread's id names another thread, and its deletion touches nothing.
    const { requestId } = await post(`/v1/threads/${id}/runs`, { assistant_id }, 'tokens=4000')
    const other = id.slice(0, -1)
    for (const thread of [other, id]) {
      await going.call(`/v1/threads/${thread}`, undefined, { ...options, method: 'DELETE' })
      const { state } = await going.gateway.manage('GET', `/gateway/v1/requests/${requestId}`)
      assert.equal(state, thread === other ? 'deferred' : 'settled')
    }
    const { stop_reason, cost_usd } = await going.record(requestId)
    assert.equal(stop_reason, 'cancelled')
    assert.ok(Number(cost_usd) > 0)
    await going.assertBooksBalance()
  } finally {
    await going.close()
  }
})

test('a run that nothing limits holds all that is left, and another one waits for it', async () => {
  const { id: keyId, key } = await bench.gateway.createKey('capped', { monthly_budget_usd: 1 })
  const run = await made({ max_prompt_tokens: undefined }, TOKENS, key)
  assert.equal((await admin(`/v1/keys/${keyId}`))['month_held_usd'], 1)
  const other = await bench.call('/v1/threads/runs', { ...RUN, thread: {} }, { ...options, key })
  assert.equal(other.status, 429)
  await settled(run)
  assert.equal((await admin(`/v1/keys/${keyId}`))['month_held_usd'], 0)
})
