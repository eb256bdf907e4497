import assert from 'node:assert/strict'
import { startSimulator } from '../../simulator/start-simulator.ts'
import { callLine } from '../../src/cli/serve-output.ts'
import { terminalStyle } from '../../src/cli/terminal.ts'
import type { EndedCall } from '../../src/telemetry/call-log.ts'
import { closeAfter, test } from '../support/suite.ts'
import { type ServingProcess, serveTollgate } from '../support/tollgate-process.ts'

const plain = terminalStyle({}, {}, false)

const CALL: EndedCall = {
  ...{ requestId: 'req_1', keyId: 'key_1', surface: 'messages', headers: [], upstream: null },
  ...{ endedAtMs: Date.UTC(2026, 10, 15, 12, 34, 56), method: 'POST', path: '/v1/messages', endpoint: null },
  ...{ modelAsked: null, modelServed: 'claude-haiku-5-5', status: 200, code: null, cut: false },
  ...{ costNanos: 1_250_000n, ms: 412 },
  tokens: { input: 12, output: 30, cacheRead: 0, cacheWrite: 0 },
}

test('a call line has time, method and path, model, status, tokens, cost and milliseconds', () => {
  const line = (more: Partial<EndedCall> = {}) => callLine({ ...CALL, ...more }, plain)
  assert.equal(
    line(),
    '12:34:56  POST /v1/messages  claude-haiku-5-5  200  12 in, 30 out  0.00125 USD  412 ms',
  )
  assert.equal(
    line({ tokens: { input: 12, output: 30, cacheRead: 5, cacheWrite: 7 } }),
    '12:34:56  POST /v1/messages  claude-haiku-5-5  200  12 + 5 cached + 7 to cache in, 30 out  0.00125 USD  412 ms',
  )
  assert.equal(
    line({ status: 402, code: 'budget_exceeded', modelServed: null, tokens: null, costNanos: 0n, ms: 1 }),
    '12:34:56  POST /v1/messages  -  402 budget_exceeded  0 USD  1 ms',
  )
  assert.match(line({ status: null }), / {2}no answer {2}/)
  const hostile = line({ path: '/\x1b[2J\n', modelServed: '\x07\u202e' })
  assert.ok(!/[\x00-\x1f\u202e]/.test(hostile), hostile)
})

const simulator = await startSimulator()
closeAfter(simulator)

const pretendTerminal = new URL('../support/pretend-terminal.ts', import.meta.url).href

async function serve(environment: Readonly<Record<string, string>>, columns: number | null) {
  const terminal =
    columns === null
      ? {}
      : { NODE_OPTIONS: `--import=${pretendTerminal}`, PRETEND_TERMINAL: JSON.stringify({ columns }) }
  return await serveTollgate({ TOLLGATE_MESSAGES_URL: simulator.messagesUrl, ...terminal, ...environment })
}

async function call({ url }: ServingProcess, key: string): Promise<number> {
  const response = await fetch(`${url}/v1/messages`, {
    method: 'POST',
    headers: {
      ...{ 'x-api-key': key, 'anthropic-version': '2023-06-01' },
      'x-simulator': 'usage={"input_tokens":7,"output_tokens":5}',
    },
    body: '{"model":"claude-haiku-5-5","max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}',
  })
  await response.arrayBuffer()
  return response.status
}

test('on a terminal the gateway prints a line per call and refusal, and none for its own endpoints', async () => {
  await using tollgate = await serve({ NO_COLOR: '1' }, 120)
  assert.equal(await call(tollgate, await tollgate.createKey({ name: 'a' })), 200)
  assert.equal(await call(tollgate, await tollgate.createKey({ name: 'b', monthly_budget_usd: 0 })), 402)
  const printed = await tollgate.printed(/ 402 budget_exceeded {2}0 USD {2}\d+ ms\n/)
  const lines = printed.split('\n').filter((line) => / ms$/.test(line))
  assert.equal(lines.length, 2)
  assert.match(
    lines[0] ?? '',
    /^\d\d:\d\d:\d\d {2}POST \/v1\/messages {2}claude-haiku-5-5 {2}200 {2}7 in, 5 out {2}0\.0000032 USD {2}\d+ ms$/,
  )
})
