import assert from 'node:assert/strict'
import { createCallLog, type EndedCall, logLine } from '../../src/telemetry/call-log.ts'
import { test } from '../support/suite.ts'

const CALL: EndedCall = {
  ...{ requestId: 'req_1', keyId: 'key_1', surface: 'messages', method: 'POST', path: '/v1/messages' },
  ...{
    endpoint: null,
    modelAsked: 'claude-haiku-5-5',
    modelServed: null,
    status: 200,
    code: null,
    cut: false,
  },
  ...{ tokens: { input: 12, output: 30, cacheRead: 5, cacheWrite: 7 }, costNanos: 1_250_000n },
  ...{ endedAtMs: Date.UTC(2026, 10, 15, 12, 34, 56, 7), ms: 412.6, headers: [], upstream: null },
}

const read = (more: Partial<EndedCall> = {}) => JSON.parse(logLine({ ...CALL, ...more })) as unknown

test('a log line names the caller, the call, its outcome, cost and time', () => {
  assert.deepEqual(read(), {
    ...{ level: 30, time: '2026-11-15T12:34:56.007Z', request: 'req_1', key: 'key_1', surface: 'messages' },
    ...{ method: 'POST', endpoint: null, model: 'claude-haiku-5-5', status: 200, code: null },
    ...{ input_tokens: 12, output_tokens: 30, cache_read_tokens: 5, cache_write_tokens: 7 },
    ...{ cost_usd: 0.00125, ms: 413, msg: 'call' },
  })
  assert.deepEqual(read({ tokens: null, keyId: null, status: 402, code: 'budget_exceeded', costNanos: 0n }), {
    ...{ level: 30, time: '2026-11-15T12:34:56.007Z', request: 'req_1', key: null, surface: 'messages' },
    ...{ method: 'POST', endpoint: null, model: 'claude-haiku-5-5', status: 402, code: 'budget_exceeded' },
    ...{ cost_usd: 0, ms: 413, msg: 'call' },
  })
})

test('lines are written in batches, each once and in order, and a batch taken is not written again', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const written: string[] = []
  const calls = createCallLog({ write: (text) => written.push(text) })
  const ids = (): string[] => written.join('').match(/req_\d+/g) ?? []
  calls.observe({ ...CALL, requestId: 'req_1' })
  calls.observe({ ...CALL, requestId: 'req_2' })
  assert.equal(written.length, 0)
  t.mock.timers.tick(100)
  assert.deepEqual(ids(), ['req_1', 'req_2'])
  assert.equal(written.length, 1)
  for (let i = 3; i <= 1_000; i += 1) calls.observe({ ...CALL, requestId: `req_${i}` })
  assert.ok(written.length > 2 && ids().length < 1_000, 'a full batch of lines does not wait for the timer')
  written.push(calls.take())
  t.mock.timers.tick(1_000)
  assert.deepEqual(
    ids(),
    Array.from({ length: 1_000 }, (_, i) => `req_${i + 1}`),
  )
  assert.equal(calls.take(), '')
})
