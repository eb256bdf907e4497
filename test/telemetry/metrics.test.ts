import assert from 'node:assert/strict'
import type { CallPoint } from '../../src/http-calls/gateway.ts'
import { parseUsd } from '../../src/kernel/money.ts'
import { METRICS } from '../../src/telemetry/metric-table.ts'
import { assertBalanced, startBillingBench } from '../billing/bench-of-one.ts'
import { type Family, readOpenMetrics, sumOf } from '../support/open-metrics.ts'
import { closeAfter, test } from '../support/suite.ts'

/** The point of the next call at which `meetDefect` throws, like a defect. */
let defectAt: CallPoint | null = null
function meetDefect(point: CallPoint): void {
  if (point !== defectAt) return
  defectAt = null
  throw new Error('a defect that this test has made')
}

const bench = await startBillingBench({
  reached: meetDefect,
  env: { TOLLGATE_DISCOUNT: '0.137' },
  settings: { budgetWaitMs: 0 },
})
closeAfter(bench)
const { gateway } = bench

type Json = Record<string, unknown>

async function scrapeText(): Promise<string> {
  const response = await fetch(`${gateway.url}/metrics`, {
    headers: { authorization: `Bearer ${gateway.adminKey}` },
  })
  assert.equal(response.status, 200)
  assert.equal(
    response.headers.get('content-type'),
    'application/openmetrics-text; version=1.0.0; charset=utf-8',
  )
  return await response.text()
}

const scrape = async (): Promise<ReadonlyMap<string, Family>> => readOpenMetrics(await scrapeText())

const message = (more: Json = {}) => ({
  model: 'claude-haiku-5-5',
  max_tokens: 20,
  messages: [{ role: 'user', content: 'Hi' }],
  ...more,
})
const completion = (more: Json = {}) => ({
  model: 'gpt-6-luna',
  messages: [{ role: 'user', content: 'Hi' }],
  ...more,
})

const cached = `usage=${JSON.stringify({ input_tokens: 7, output_tokens: 5, cache_read_input_tokens: 11, cache_creation_input_tokens: 13 })}`

async function callEverything(): Promise<void> {
  for (let round = 0; round < 3; round += 1) {
    await bench.call('/v1/messages', message(), { simulate: cached })
    await bench.call('/v1/messages', message({ stream: true }))
    await bench.call('/v1/chat/completions', completion(), { surface: 'chat' })
    await bench.call('/v1/chat/completions', completion({ stream: true }), { surface: 'chat' })
  }
  await bench.call('/v1/messages', message(), { simulate: 'status=429' })
  await bench.call('/v1/chat/completions', completion(), { surface: 'chat', simulate: 'status=500' })
  await bench.call('/v1/messages', message(), { simulate: 'reset' })
  await bench.call('/v1/messages', message({ model: 'claude-fable-x' }))
  await bench.call('/v1/models', undefined, { method: 'GET' })
  const poor = await gateway.createKey('poor', { monthly_budget_usd: 0 })
  const picky = await gateway.createKey('picky', { allowed_models: ['gpt-6-luna'] })
  assert.equal((await bench.call('/v1/messages', message(), { key: poor.key })).status, 402)
  assert.equal((await bench.call('/v1/messages', message(), { key: picky.key })).status, 403)
  assert.equal((await bench.call('/v1/messages', message(), { key: 'svc_live_none' })).status, 401)
  assert.equal((await bench.call('/v1/%2e%2e/messages', message())).status, 400)
  // Requests to our own API are not calls, and neither are their refusals.
  assert.equal((await fetch(`${gateway.url}/v1/keys`)).status, 401)
  await assertBalanced(gateway)
}

const nanos = (usd: unknown): bigint => parseUsd(String(usd)) ?? assert.fail(`not an amount: ${usd}`)
const usdOf = (amount: bigint): number => Number(amount) / 1e9

test('metrics match the request log and the usage report for calls of every kind', async () => {
  await callEverything()
  const families = await scrape()
  const log = (await gateway.manage('GET', '/gateway/v1/requests?limit=1000'))['data'] as Json[]
  const usage = (await gateway.manage('GET', '/v1/usage?group_by=model'))['data'] as Json[]
  const modelOf = (call: Json) => String(call['model_served'] ?? call['model'] ?? '')
  const label = (model: string) => (/^(claude-haiku|gpt-6)/.test(model) ? model : 'other')
  const classOf = ({ status }: Json) => (status === null ? 'none' : `${Math.trunc(Number(status) / 100)}xx`)

  const byLabels = Map.groupBy(log, (call) =>
    JSON.stringify({ surface: call['surface'], model: label(modelOf(call)), status_class: classOf(call) }),
  )
  const counted = families.get('tollgate_calls')?.samples ?? []
  const samples = counted.map(({ labels, value }) => [JSON.stringify(labels), value] as const)
  assert.deepEqual(
    samples.toSorted(),
    [...byLabels].map(([labels, calls]) => [labels, calls.length] as const).toSorted(),
  )
  assert.deepEqual([...new Set(counted.map(({ labels }) => labels['status_class']))].sort(), [
    '2xx',
    '4xx',
    '5xx',
    'none',
  ])

  const models = [...new Set(log.map((call) => label(modelOf(call))))]
  for (const surface of ['messages', 'chat']) {
    for (const model of models) {
      const calls = log.filter((call) => call['surface'] === surface && label(modelOf(call)) === model)
      const sum = (member: string) => calls.reduce((all, call) => all + nanos(call[member]), 0n)
      const of = (name: string, labels = {}) => sumOf(families, name, { surface, model, ...labels })
      assert.equal(of('tollgate_cost_usd_total'), usdOf(sum('cost_usd')))
      assert.equal(of('tollgate_list_cost_usd_total'), usdOf(sum('list_cost_usd')))
      for (const kind of ['input', 'output', 'cache_read', 'cache_write']) {
        const tokens = calls.map((call) => Number((call['usage'] as Json)[`${kind}_tokens`]))
        const all = tokens.reduce((total, count) => total + count, 0)
        assert.equal(of('tollgate_tokens_total', { kind }), all, `${surface} ${model} ${kind}`)
      }
    }
  }
  assert.ok(sumOf(families, 'tollgate_tokens_total', { kind: 'cache_write' }) >= 39)
  // The report has settled calls; all others cost nothing.
  for (const model of models) {
    const rows = usage.filter((row) => label(String(row['model'])) === model)
    const cost = rows.reduce((all, row) => all + nanos(row['cost_usd']), 0n)
    assert.equal(sumOf(families, 'tollgate_cost_usd_total', { model }), usdOf(cost))
    const unpriced = rows.reduce((all, row) => all + Number(row['unpriced_requests']), 0)
    assert.equal(sumOf(families, 'tollgate_unpriced_calls_total', { model }), unpriced)
  }
  assert.equal(sumOf(families, 'tollgate_unpriced_calls_total'), 1)

  for (const surface of ['messages', 'chat']) {
    const calls = log.filter((call) => call['surface'] === surface).length
    assert.equal(sumOf(families, 'tollgate_overhead_seconds_count', { surface }), calls)
    assert.equal(sumOf(families, 'tollgate_upstream_seconds_count', { surface }), calls)
  }
})

test('a refused request counts as a refusal by code, not as a call', async () => {
  const before = await scrape()
  const refusals = async (asked: () => Promise<{ readonly status: number }>, status: number) => {
    assert.equal((await asked()).status, status)
    const after = await scrape()
    assert.equal(sumOf(after, 'tollgate_calls_total'), sumOf(before, 'tollgate_calls_total'))
    return (code: string) =>
      sumOf(after, 'tollgate_refusals_total', { code }) - sumOf(before, 'tollgate_refusals_total', { code })
  }
  const unknown = await refusals(() => bench.call('/v1/messages', message(), { key: 'nonsense' }), 401)
  assert.equal(unknown('invalid_api_key'), 1)
  const misspelled = await refusals(() => bench.call('/v1/Messages', message()), 404)
  assert.equal(misspelled('endpoint_not_metered'), 1)
  const twice = await refusals(
    () => bench.call('/v1/messages', '{"model":"claude-haiku-5-5","model":"claude-haiku-5-5"}'),
    400,
  )
  assert.equal(twice('bad_request'), 1)
  const all = sumOf(await scrape(), 'tollgate_refusals_total')
  assert.equal(all - sumOf(before, 'tollgate_refusals_total'), 3)
})

test('every metric of the table is exposed with its type, its labels and only known labels', async () => {
  const families = await scrape()
  for (const { name, type, labels } of METRICS) {
    const family = families.get(type === 'counter' ? name.replace(/_total$/, '') : name)
    assert.ok(family !== undefined, name)
    assert.equal(family.type, type, name)
    assert.ok(family.samples.length > 0, `${name} has no sample`)
    for (const sample of family.samples) {
      const own = Object.keys(sample.labels).filter((label) => label !== 'le')
      assert.deepEqual(own.toSorted(), labels.toSorted(), name)
    }
  }
  const others = [...families.keys()].filter((name) => !name.startsWith('tollgate_'))
  assert.ok(others.includes('process_resident_memory_bytes'))
  assert.ok(
    !others.some((name) => /_active_|_eventloop_/.test(name)),
    'these functions iterate over every handle',
  )
})

test('metrics contain no key, key id, request id or unlisted model name', async () => {
  const { id, key } = await gateway.createKey('named key')
  await bench.call('/v1/messages', message({ model: 'secret-project-model' }), { key })
  await bench.call('/v1/messages', message({ model: `${key}` }))
  const text = await scrapeText()
  for (const secret of [id, key, gateway.apiKey, 'named key', 'secret-project-model', 'claude-fable-x'])
    assert.ok(!text.includes(secret), secret)
  assert.doesNotMatch(text, /(?:key|req|adm)_[0-9A-Z]{20}|svc_(?:live|admin)_/)
})

test('gauges show calls in flight, their holds and connections', async () => {
  const limited = await gateway.createKey('limited', { monthly_budget_usd: 1 })
  const gone = new AbortController()
  const stream = await fetch(`${gateway.url}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': limited.key, 'anthropic-version': '2023-06-01', 'x-simulator': 'drip=60000' },
    body: JSON.stringify(message({ stream: true })),
    signal: gone.signal,
  })
  const families = await scrape()
  gone.abort()
  await stream.text().catch(() => '')
  assert.equal(sumOf(families, 'tollgate_calls_in_flight'), 1)
  assert.ok(sumOf(families, 'tollgate_held_usd') > 0)
  const busy = { surface: 'messages', state: 'busy' }
  assert.equal(sumOf(families, 'tollgate_upstream_connections', busy), 1)
  await assertBalanced(gateway)
  const quiet = await scrape()
  assert.equal(sumOf(quiet, 'tollgate_calls_in_flight'), 0)
  assert.equal(sumOf(quiet, 'tollgate_held_usd'), 0)
})

for (const [point, stream] of [
  ['before_settle', false],
  ['before_settle', true],
  ['settled', false],
  ['settled', true],
] as const) {
  const where = `${point} of ${stream ? 'a stream' : 'a message'}`
  test(`a defect at the point ${where} leaves a call that is counted once, with its cost`, async () => {
    const before = await scrape()
    defectAt = point
    const reply = await bench.call('/v1/messages', message({ stream }))
    // A stream that has begun breaks.
    assert.equal(reply.status, stream ? 200 : 500)
    await assertBalanced(gateway)
    const record = await bench.record(reply.requestId)
    const after = await scrape()
    const moved = (name: string, labels = {}) => sumOf(after, name, labels) - sumOf(before, name, labels)
    assert.equal(record['state'], 'settled')
    assert.ok(Number(record['cost_usd']) > 0)
    assert.equal(moved('tollgate_calls_total'), 1)
    assert.equal(moved('tollgate_calls_total', { status_class: 'none' }), 0)
    assert.equal(
      Math.round(moved('tollgate_cost_usd_total') * 1e9),
      Math.round(Number(record['cost_usd']) * 1e9),
    )
    assert.equal(moved('tollgate_refusals_total', { code: 'internal_error' }), 1)
  })
}
