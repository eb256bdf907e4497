import assert from 'node:assert/strict'
import { clockAt } from '../limits/clock-at.ts'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { afterEach, closeAfter, test } from '../support/suite.ts'
import { sized } from '../support/wire-bytes.ts'
import { startBillingBench } from './bench-of-one.ts'

const upstream = await ScriptedUpstream.start()
const clock = clockAt('2026-11-12T12:00:00.000Z')
const { urls } = upstream
const bench = await startBillingBench({ ...urls, clock })
closeAfter(bench, upstream)
afterEach(() => bench.assertBalanced())

const document = (body: object): Buffer =>
  sized('HTTP/1.1 200 OK', ['Content-Type: application/json'], JSON.stringify(body))

const chat = { surface: 'chat' } as const
const MESSAGES = [{ role: 'user', content: 'Hi' }]
const usage = { prompt_tokens: 1_000, completion_tokens: 100 }

function completion(model: string): object {
  return { id: 'c', model, choices: [{ index: 0, message: { content: 'Hi' }, finish_reason: 'stop' }], usage }
}

test('a search model adds one search per call, by context size, and an unknown size is flagged', async () => {
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

test('a container is charged once in 20 minutes, also by background responses', async () => {
  const ran = { type: 'code_interpreter_call', id: 'ci_1', container_id: 'cntr_background' }
  const body = { model: 'gpt-5.6-sol', input: 'Hi', tools: [{ type: 'code_interpreter' }] }
  const done = { output: [ran], usage: { input_tokens: 1_000, output_tokens: 100 }, status: 'completed' }
  // 1,000 × $4/M + 100 × $20/M, and $0.03 for the container.
  for (const [i, [background, afterMs, usd]] of (
    [
      [true, 0, 0.036],
      [false, 0, 0.006],
      [true, 20 * 60_000 - 1, 0.006],
      [true, 1, 0.036],
      [false, 20 * 60_000, 0.036],
    ] as const
  ).entries()) {
    clock.advance(afterMs)
    const made = { id: `resp_${i}`, object: 'response', model: 'gpt-5.6-sol', background }
    if (background) upstream.queue([{ send: document({ ...made, status: 'queued' }) }])
    upstream.queue([{ send: document({ ...made, ...done }) }])
    const { requestId } = await bench.call('/v1/responses', { ...body, background }, chat)
    if (background) await bench.call(`/v1/responses/${made.id}`, undefined, { ...chat, method: 'GET' })
    assert.equal((await bench.record(requestId))['list_cost_usd'], usd, String(i))
  }
})

test('code execution in a message is flagged, since its duration is unknown, unless it is free', async () => {
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
