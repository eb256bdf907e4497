import assert from 'node:assert/strict'
import { asBilled, type BilledReply } from '../billing/bench-of-one.ts'
import { exchange } from '../support/raw-client.ts'
import { afterEach, closeAfter, test } from '../support/suite.ts'
import { clockAt } from './clock-at.ts'
import { bodyOf, startGatedBench } from './gated-bench.ts'

const clock = clockAt('2026-12-20T12:00:00.000Z')
const bench = await startGatedBench({ clock, settings: { budgetWaitMs: 0 } })
const { gateway } = bench
closeAfter(bench)
afterEach(() => bench.assertBalanced())

const CAP_USD = 0.0001

type Found = { readonly status: number; readonly body: Record<string, unknown> }

async function ask(path: string, key = gateway.adminKey): Promise<Found> {
  const response = await fetch(gateway.url + path, { headers: { authorization: `Bearer ${key}` } })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

const lookUp = (requestId: string, key?: string) => ask(`/gateway/v1/requests/${requestId}`, key)

async function listed(query: string, path = '/gateway/v1/requests'): Promise<string[]> {
  const { status, body } = await ask(`${path}?limit=1000&${query}`)
  assert.equal(status, 200, JSON.stringify(body))
  return (body['data'] as { id: string }[]).map(({ id }) => id)
}

async function post(key: string, path: string, body: string, lines: readonly string[] = []) {
  const head = [
    ...[`POST ${path} HTTP/1.1`, 'Host: gateway', `Authorization: Bearer ${key}`],
    ...['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`, ...lines],
  ]
  return asBilled(await exchange(gateway, `${head.join('\r\n')}\r\n\r\n${body}`))
}

const codeIn = ({ body }: BilledReply): string => JSON.parse(body.toString()).error.code

const CHAT = '/v1/chat/completions'
const LUNA = bodyOf('chat')
/** A body large enough that the key is checked before the body is read. */
const LARGE = JSON.stringify({
  model: 'gpt-6-luna',
  messages: [{ role: 'user', content: 'x'.repeat(100_000) }],
})

interface Case {
  readonly what: string
  readonly fields?: Readonly<Record<string, unknown>>
  readonly path?: string
  readonly body?: string
  readonly revoked?: true
  readonly code: string
  readonly status: number
  readonly model?: string | null
}

const cases: readonly Case[] = [
  { what: 'a cap of 0', fields: { monthly_budget_usd: 0 }, code: 'budget_exceeded', status: 402 },
  {
    what: 'a model outside the list',
    fields: { allowed_models: ['claude-haiku-5-5'] },
    code: 'model_not_allowed',
    status: 403,
  },
  {
    what: 'a model without a price',
    fields: { monthly_budget_usd: 1 },
    body: '{"model":"nobody-1","messages":[]}',
    ...{ code: 'model_not_priced', status: 400, model: 'nobody-1' },
  },
  { what: 'a revoked key', revoked: true, code: 'invalid_api_key', status: 401 },
  {
    what: 'a revoked key with a large body',
    ...{ revoked: true, body: LARGE, code: 'invalid_api_key', status: 401, model: null },
  },
  {
    what: 'an ambiguous body',
    body: '{"model":"a","model":"b","messages":[]}',
    code: 'bad_request',
    status: 400,
  },
  {
    what: 'an endpoint that mints credentials',
    ...{ path: '/v1/realtime/client_secrets', body: '{}', code: 'minting_refused', status: 404, model: null },
  },
  {
    what: 'another spelling of an endpoint',
    ...{ path: '/v1/v1/chat/completions', code: 'endpoint_not_metered', status: 404, model: null },
  },
]

for (const { what, fields = {}, path = CHAT, body = LUNA, revoked, code, status, model } of cases) {
  test(`a call refused for ${what} can be looked up at once by its request id`, async () => {
    const { id, key } = await gateway.createKey(what, fields)
    if (revoked) await gateway.revokeKey(id)
    const reply = await post(key, path, body, ['User-Agent: probe/1'])
    assert.equal(codeIn(reply), code)
    assert.equal(reply.status, status)
    const { status: found, body: record } = await lookUp(reply.requestId)
    assert.equal(found, 200)
    const { started_at, ended_at, overhead_ms, model: asked, ...rest } = record
    assert.deepEqual(rest, {
      ...{
        id: reply.requestId,
        object: 'request',
        account_id: 'default',
        key_id: id,
        key_name: what,
        state: 'refused',
        method: 'POST',
        path,
      },
      ...{ object_id: null, parent_id: null, socket_id: null, session_id: null, person_id: null },
      ...{ surface: 'chat', model_served: null, status, stop_reason: null, code },
      ...{ streamed: false, estimated: false, unpriced: false, overrun: false, priced_as_requested: false },
      usage: { input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0 },
      ...{ cost_usd: 0, list_cost_usd: 0, lost_list_cost_usd: 0, balance_usd: null, upstream_ms: null },
      ...{ price_version: null, upstream_request_id: null, client_ip: '127.0.0.1', user_agent: 'probe/1' },
      ...{ bytes_in: 0, bytes_out: 0, credited: false },
    })
    if (model !== undefined) assert.equal(asked, model)
    assert.ok(Date.parse(String(started_at)) <= Date.parse(String(ended_at)))
    assert.equal(typeof overhead_ms, 'number')
    assert.deepEqual(await listed('state=refused', `/v1/keys/${id}/requests`), [reply.requestId])
    assert.equal((await bench.record(id))['month_spend_usd'], 0)
  })
}

test('a call refused after a wait keeps its request id and its time of arrival', async () => {
  await using patient = await startGatedBench({ clock })
  const { id, key } = await patient.gateway.createKey('waits', { monthly_budget_usd: CAP_USD })
  const { reply } = await patient.send('spends all', key)
  const running = await patient.upstream.next()
  const arrived = new Date(clock.nowMs()).toISOString()
  const waiting = await patient.send('waits', key)
  await patient.storeAnswered()
  clock.advance(5_000)
  running.finish(1_000)
  assert.equal((await reply).status, 200)
  const refused = await waiting.reply
  assert.equal(codeIn(refused), 'budget_exceeded')
  const path = `/v1/keys/${id}/requests?state=refused`
  const { data } = (await patient.gateway.manage('GET', path)) as { data: Record<string, unknown>[] }
  assert.deepEqual(
    data.map((call) => [call['id'], call['code'], call['started_at'], call['ended_at']]),
    [[refused.requestId, 'budget_exceeded', arrived, new Date(clock.nowMs()).toISOString()]],
  )
  await patient.assertBalanced()
})

test('an API key can look up only its own refusals', async () => {
  const mine = await gateway.createKey('mine', { allowed_models: ['claude-haiku-5-5'] })
  const yours = await gateway.createKey('yours')
  const reply = await post(mine.key, CHAT, LUNA)
  assert.equal((await lookUp(reply.requestId, mine.key)).body['code'], 'model_not_allowed')
  assert.equal((await lookUp(reply.requestId, yours.key)).status, 404)
})
