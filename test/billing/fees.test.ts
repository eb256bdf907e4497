import assert from 'node:assert/strict'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { after, afterEach, test } from '../support/suite.ts'
import { chunked, sized } from '../support/wire-bytes.ts'
import { startBillingBench } from './bench-of-one.ts'

/** Fees besides tokens, and replies without a telling content type, over real sockets. */

const upstream = await ScriptedUpstream.start()
const bench = await startBillingBench({ messagesUrl: upstream.url, chatUrl: `${upstream.url}/v1` })
after(async () => {
  await bench.close()
  await upstream.close()
})
afterEach(() => bench.assertBalanced())

const JSON_LINE = 'Content-Type: application/json'
const EVENTS_LINE = 'Content-Type: text/event-stream'
const OK = 'HTTP/1.1 200 OK'

const document = (body: object, line = JSON_LINE): Buffer => sized(OK, [line], JSON.stringify(body))
const events = (...list: readonly (object | string)[]): Buffer =>
  chunked(
    OK,
    [EVENTS_LINE],
    list.map((event) => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`),
  )

const chat = { surface: 'chat' } as const
const MESSAGES = [{ role: 'user', content: 'Hi' }]
const usage = { prompt_tokens: 1_000, completion_tokens: 100 }

function completion(model: string): object {
  return { id: 'c', model, choices: [{ index: 0, message: { content: 'Hi' }, finish_reason: 'stop' }], usage }
}

test('a chat of a search model costs one search more, by the size of its context; an unknown size is flagged', async () => {
  // 1,000 × $2.50/M + 100 × $10/M, or 1,000 × $0.15/M + 100 × $0.60/M, and the search.
  for (const [model, size, listUsd, unpriced] of [
    ['gpt-4o-search-preview', 'low', '0.0335', false],
    ['gpt-4o-search-preview', 'medium', '0.0385', false],
    ['gpt-4o-search-preview', 'high', '0.0535', false],
    ['gpt-4o-search-preview', null, '0.0385', false],
    ['gpt-4o-search-preview', 'vast', '0.0535', true],
    ['gpt-4o-mini-search-preview', 'low', '0.02521', false],
    ['gpt-4o-mini-search-preview', undefined, '0.02771', false],
    ['gpt-5-search-api', 'high', '0.01225', false],
  ] as const) {
    upstream.queue([{ send: document(completion(`${model}-2025-03-11`)) }])
    const options = size === undefined ? {} : { web_search_options: { search_context_size: size } }
    const reply = await bench.call('/v1/chat/completions', { model, messages: MESSAGES, ...options }, chat)
    assert.equal(reply.header('x-svc-list-cost-usd'), listUsd, `${model} ${size}`)
    assert.equal((await bench.record(reply.requestId))['unpriced'], unpriced, `${model} ${size}`)
  }
})

test('each container of a response costs a session, streamed or not', async () => {
  const call = (id: string, container: string) => ({
    type: 'code_interpreter_call',
    id,
    container_id: container,
  })
  const final = (...containers: readonly [string, string]) => ({
    id: 'r',
    model: 'gpt-5.6-sol',
    status: 'completed',
    output: [call('a', containers[0]), call('b', containers[1]), call('c', containers[0])],
    usage: { input_tokens: 1_000, output_tokens: 100 },
  })
  const inEvents = final('cntr_3', 'cntr_4')
  const body = {
    model: 'gpt-5.6-sol',
    input: 'Hi',
    tools: [{ type: 'code_interpreter', container: { type: 'auto' } }],
  }
  upstream.queue(
    [{ send: document(final('cntr_1', 'cntr_2')) }],
    [
      {
        send: events(
          ...inEvents.output.map((item, i) => ({
            type: 'response.output_item.added',
            output_index: i,
            item,
          })),
          { type: 'response.completed', response: inEvents },
        ),
      },
    ],
  )
  const whole = await bench.call('/v1/responses', body, chat)
  // 1,000 × $4/M + 100 × $20/M + 2 × $0.03
  assert.equal(whole.header('x-svc-list-cost-usd'), '0.066')
  const streamed = await bench.call('/v1/responses', { ...body, stream: true }, chat)
  assert.equal(streamed.trailer('x-svc-list-cost-usd'), '0.066')
})

test('a response in the background pays for its container once, with the calls that use the container later', async () => {
  const ran = { type: 'code_interpreter_call', id: 'ci_1', container_id: 'cntr_background' }
  const body = { model: 'gpt-5.6-sol', input: 'Hi', tools: [{ type: 'code_interpreter' }] }
  const made = { id: 'resp_container', object: 'response', model: 'gpt-5.6-sol', background: true }
  const done = { output: [ran], usage: { input_tokens: 1_000, output_tokens: 100 }, status: 'completed' }
  upstream.queue([{ send: document({ ...made, status: 'queued' }) }])
  const first = await bench.call('/v1/responses', { ...body, background: true }, chat)
  upstream.queue([{ send: document({ ...made, ...done }) }])
  await bench.call('/v1/responses/resp_container', undefined, { ...chat, method: 'GET' })
  // 1,000 × $4/M + 100 × $20/M, and $0.03
  assert.equal((await bench.record(first.requestId))['list_cost_usd'], 0.036)
  upstream.queue([{ send: document({ ...made, ...done, id: 'resp_next', background: false }) }])
  const next = await bench.call('/v1/responses', body, chat)
  assert.equal(next.header('x-svc-list-cost-usd'), '0.006')
})

test('code that a message had run is flagged, since nobody says for how long, unless it is free', async () => {
  const message = {
    type: 'message',
    model: 'claude-opus-5',
    content: [{ type: 'server_tool_use', id: 's', name: 'bash_code_execution', input: {} }],
    container: { id: 'container_1' },
    stop_reason: 'end_turn',
    usage: { input_tokens: 1_000, output_tokens: 100 },
  }
  const code = { type: 'code_execution_20260120', name: 'code_execution' }
  for (const [tools, unpriced] of [
    [[code], true],
    [[code, { type: 'web_search_20260209', name: 'web_search' }], false],
  ] as const) {
    upstream.queue([{ send: document(message) }])
    const body = { model: 'claude-opus-5', max_tokens: 200, messages: MESSAGES, tools }
    const reply = await bench.call('/v1/messages', body)
    // 1,000 × $5/M + 100 × $25/M
    assert.equal(reply.header('x-svc-list-cost-usd'), '0.0075')
    assert.equal((await bench.record(reply.requestId))['unpriced'], unpriced)
  }
})

test('a refusal without content pays for the searches before it, and for nothing else', async () => {
  upstream.queue([
    {
      send: document({
        type: 'message',
        model: 'claude-opus-5',
        content: [],
        stop_reason: 'refusal',
        usage: { input_tokens: 9_000, output_tokens: 3, server_tool_use: { web_search_requests: 3 } },
      }),
    },
  ])
  const reply = await bench.call('/v1/messages', {
    model: 'claude-opus-5',
    max_tokens: 9,
    messages: MESSAGES,
  })
  // 3 × $10/1,000
  assert.equal(reply.header('x-svc-list-cost-usd'), '0.03')
})

test('the fees of a response count however long the lists of tools are that a server of the client gives', async () => {
  const body = {
    model: 'gpt-4.1',
    input: 'hi',
    tools: [
      { type: 'mcp', server_label: 'x', server_url: 'https://example.com' },
      { type: 'code_interpreter', container: { type: 'auto' } },
    ],
  }
  const ran = { type: 'code_interpreter_call', id: 'ci_1', container_id: 'cntr_1' }
  const list = (tool: object) => ({ type: 'mcp_list_tools', id: 'l_1', tools: Array(8_000).fill(tool) })
  const answer = (...output: readonly object[]) =>
    document({ id: 'r', model: 'gpt-4.1', output, usage: { input_tokens: 1_000, output_tokens: 1_000 } })

  for (const [i, tool] of [{ input_schema: { a: 'x'.repeat(300) } }, { other: 'x'.repeat(300) }].entries()) {
    upstream.queue([
      { send: answer(list({ name: 'n', ...tool }), { ...ran, container_id: `cntr_long_${i}` }) },
    ])
    const reply = await bench.call('/v1/responses', body, chat)
    // 1,000 × $2/M + 1,000 × $8/M + 1 × $0.03
    assert.equal(reply.header('x-svc-list-cost-usd'), '0.04')
    assert.equal((await bench.record(reply.requestId))['estimated'], false)
  }

  // A list that is too long even so is not silently left out: the call is estimated.
  upstream.queue([{ send: answer(...Array(40_000).fill({ type: 'mcp_call' }), ran) }])
  const unread = await bench.call('/v1/responses', body, chat)
  assert.equal((await bench.record(unread.requestId))['estimated'], true)
})
