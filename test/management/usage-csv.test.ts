import assert from 'node:assert/strict'
import { startBillingBench } from '../billing/bench-of-one.ts'
import { clockAt } from '../limits/clock-at.ts'
import { closeAfter, test } from '../support/suite.ts'
import { words } from '../support/words.ts'
import { askOf, assertRefused } from './own-client.ts'
import { readCsv } from './read-csv.ts'

const clock = clockAt('2026-11-30T12:00:00Z')
const bench = await startBillingBench({ clock })
const { gateway } = bench
closeAfter(bench)
const ask = askOf(gateway)

for (const name of ['=1+1', 'comma, "quote"']) await call((await gateway.createKey(name)).key, 'gpt-4o-mini')
for (const model of ['@x', 'a\r\nb,"c"']) await call(gateway.apiKey, model)

async function call(key: string, model: string): Promise<void> {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] }),
  })
  await response.arrayBuffer()
}

async function csv(query: string, headers: Record<string, string> = {}, key = gateway.adminKey) {
  const response = await fetch(`${gateway.url}/v1/usage${query}`, {
    headers: { authorization: `Bearer ${key}`, ...headers },
  })
  const bytes = Buffer.from(await response.arrayBuffer())
  return { status: response.status, headers: response.headers, bytes, rows: readCsv(bytes.toString()) }
}

const FIGURES = words(`
  requests input_tokens output_tokens cache_read_tokens cache_write_tokens cost_usd list_cost_usd
  savings_usd credited_usd unpriced_requests estimated_requests
`)

test('GET /v1/usage 200: CSV is a named file of its type, without caching', async () => {
  const { status, headers } = await csv('?format=csv&start=2026-11-02')
  assert.equal(status, 200)
  assert.equal(headers.get('content-type'), 'text/csv; charset=utf-8')
  assert.equal(
    headers.get('content-disposition'),
    'attachment; filename="usage-2026-11-02-to-2026-11-30.csv"',
  )
  assert.equal(headers.get('cache-control'), 'no-store')
  assert.match(headers.get('x-svc-request-id') ?? '', /^req_/)
})

for (const grouping of ['', 'model', 'key,model,day']) {
  test(`GET /v1/usage 200: by ${grouping || 'nothing'}, CSV and JSON agree`, async () => {
    const query = grouping === '' ? '' : `group_by=${grouping}`
    const { rows } = await csv(`?format=csv&${query}`)
    const { body } = await ask('GET', `/v1/usage?${query}`)
    const data = body['data'] as readonly Record<string, unknown>[]
    const [head = [], ...cells] = rows
    const named = [
      ['day', ['day']],
      ['model', ['model']],
      ['key', ['key', 'key_name', 'metadata']],
    ] as const
    const dimensions = named.flatMap(([name, columns]) => (grouping.includes(name) ? columns : []))
    assert.deepEqual(head, [...dimensions, ...FIGURES])
    assert.equal(cells.length, data.length)
    for (const [i, bucket] of data.entries()) {
      const row = Object.fromEntries(head.map((name, column) => [name, cells[i]?.[column] ?? '']))
      for (const [name, value] of Object.entries(bucket)) {
        if (typeof value === 'number') assert.equal(Number(row[name]), value, name)
        else if (name === 'metadata') assert.deepEqual(JSON.parse(String(row[name])), value)
        else assert.ok(row[name] === value || row[name] === `'${value}`, `${name}: ${row[name]}`)
      }
    }
  })
}

test('GET /v1/usage 200: CSV is complete without a limit and stops at a given limit', async () => {
  const all = (await csv('?format=csv&group_by=model,key')).rows
  assert.deepEqual((await csv('?format=csv&group_by=model,key&limit=3')).rows, all.slice(0, 4))
  const { body } = await ask('GET', '/v1/usage?group_by=model,key&limit=3')
  const rest = await csv(`?format=csv&group_by=model,key&after=${body['next']}`)
  assert.deepEqual(rest.rows.slice(1), all.slice(4))
})

test('GET /v1/usage 400: errors are JSON even if CSV was requested', async () => {
  const answer = await ask('GET', '/v1/usage?start=x', { headers: { accept: 'text/csv' } })
  assertRefused(answer, 400, { code: 'bad_request', param: 'start' })
})
