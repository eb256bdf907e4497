import assert from 'node:assert/strict'
import { Histogram } from '../../src/kernel/histogram.ts'
import type { CallClosing } from '../../src/ledger/call.ts'
import { NOTHING_USED } from '../../src/ledger/call-columns.ts'
import { CallCounts } from '../../src/telemetry/call-counts.ts'
import { METRICS, type MetricSources } from '../../src/telemetry/metric-table.ts'
import { bookWith, shippedBook } from '../pricing/worked-example.ts'
import { test } from '../support/suite.ts'

const closing = (more: Partial<CallClosing> = {}): CallClosing => ({
  ...NOTHING_USED,
  ...{ requestId: 'req_1', state: 'settled', atMs: 0, status: 200, modelServed: 'claude-haiku-5-5' },
  ...more,
})
const TIMES = { overheadMs: 0.4, upstreamMs: 800 }

const sourcesOf = (counts: CallCounts): MetricSources => ({
  counts,
  load: { batchCalls: new Histogram([1]), commitSeconds: new Histogram([1]), waiting: 3, events: new Map() },
  inFlight: { count: 1 },
  waitingCalls: { count: 2 },
  store: {
    sumHeld: () => Promise.reject(new Error('busy')),
    countDeferred: async () => 0,
    countWaiting: async () => 0,
  },
  webhookFailures: () => 0,
  connections: () => null,
  nowMs: () => 0,
  eventLoopDelay: () => 0,
})

async function samplesOf(counts: CallCounts, name: string) {
  const metric = METRICS.find((each) => each.name === name)
  assert.ok(metric !== undefined && metric.type !== 'histogram')
  return await metric.read(sourcesOf(counts))
}

test('a reloaded price book changes the labels of later calls and keeps earlier counts', () => {
  const counts = new CallCounts(shippedBook)
  counts.countSettlement('messages', null, closing({ modelServed: 'new-model' }), TIMES)
  const rates = { standard: { input: '1', output: '2' } }
  counts.useBook(bookWith({ models: [{ id: 'new-model', provider: 'anthropic', mode: 'chat', rates }] }))
  counts.countSettlement('messages', null, closing({ modelServed: 'new-model' }), TIMES)
  assert.deepEqual([...counts.surfaces.messages.models.keys()], ['other', 'new-model'])
})

test('a hundred thousand small amounts sum exactly', async () => {
  const counts = new CallCounts(shippedBook)
  for (let i = 0; i < 100_000; i += 1)
    counts.countSettlement('messages', null, closing({ costNanos: 100_000_001n, listNanos: 1n }), TIMES)
  const [cost] = (await samplesOf(counts, 'tollgate_cost_usd_total')) ?? []
  assert.equal(cost?.value, 10_000.0001)
  const [list] = (await samplesOf(counts, 'tollgate_list_cost_usd_total')) ?? []
  assert.equal(list?.value, 0.0001)
})

test('a status is counted by its first digit, and a missing or invalid one as none', () => {
  const counts = new CallCounts(shippedBook)
  for (const status of [200, 299, 304, 404, 529, 600, 999, null, 101])
    counts.countSettlement('messages', null, closing({ status }), TIMES)
  assert.deepEqual(counts.surfaces.messages.models.get('claude-haiku-5-5')?.calls, [3, 1, 2, 1, 1, 1])
})

test('a figure that the store does not provide has no sample', async () => {
  assert.equal(await samplesOf(new CallCounts(shippedBook), 'tollgate_held_usd'), null)
})

test('a histogram bucket includes its bound', () => {
  const histogram = new Histogram([1, 10])
  for (const value of [0, 1, 1.5, 10, 11, 1_000]) histogram.observe(value)
  assert.deepEqual(histogram.read(), { atMost: [2, 4], count: 6, sum: 1_023.5 })
})
