import assert from 'node:assert/strict'
import { afterEach, closeAfter, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { startGatedBench } from './gated-bench.ts'

const bench = await startGatedBench()
const { gateway, upstream } = bench
closeAfter(bench)
afterEach(() => bench.assertBalanced())

/** A cap below the hold of any call. */
const CAP = { monthly_budget_usd: 0.0001 }

type Call = Readonly<Record<string, unknown>>

async function ask(path: string, key = gateway.adminKey): Promise<{ status: number; text: string }> {
  const response = await fetch(gateway.url + path, { headers: { authorization: `Bearer ${key}` } })
  return { status: response.status, text: await response.text() }
}

const list = async (query: string, path = '/gateway/v1/requests') =>
  JSON.parse((await ask(`${path}?${query}`)).text) as { data: Call[]; has_more: boolean; next: string }

async function waiting(keyId: string, count: number): Promise<Call[]> {
  let calls: Call[] = []
  await until(`${count} calls wait`, async () => {
    calls = (await list('state=waiting', `/v1/keys/${keyId}/requests`)).data
    return calls.length === count
  })
  return calls
}

test('a waiting call is shown in the log and on its key until it starts', async () => {
  const { id, key } = await gateway.createKey('waits', CAP)
  const first = await bench.send('holds', key)
  const running = await upstream.next()
  assert.equal((await bench.record(id))['month_waiting'], 0)
  const second = await bench.send('waits', key, { surface: 'chat' })
  const [call] = await waiting(id, 1)
  assert.ok(call !== undefined)
  const { id: requestId, started_at, user_agent, ...rest } = call
  assert.deepEqual(rest, {
    ...{ account_id: 'default', key_name: call['key_name'] },
    ...{ object: 'request', key_id: id, state: 'waiting', ended_at: null, method: 'POST' },
    ...{ object_id: null, parent_id: null, socket_id: null, session_id: null, person_id: null },
    ...{ path: '/v1/chat/completions', surface: 'chat', model: 'gpt-6-luna', model_served: null },
    ...{ status: null, stop_reason: null, streamed: false, estimated: false, unpriced: false },
    ...{ overrun: false, priced_as_requested: false, usage: null, cost_usd: null, list_cost_usd: null },
    ...{ lost_list_cost_usd: 0, balance_usd: null, upstream_ms: null, overhead_ms: null },
    ...{ price_version: null, upstream_request_id: null, client_ip: '127.0.0.1' },
    ...{ bytes_in: 0, bytes_out: 0, credited: false, code: null },
  })
  assert.equal(user_agent, null)
  assert.ok(Date.parse(String(started_at)) <= Date.now())

  // A lookup of a waiting call answers at once; for a call in flight it would wait for 30 seconds.
  assert.deepEqual(JSON.parse((await ask(`/gateway/v1/requests/${requestId}`)).text), call)
  assert.deepEqual(JSON.parse((await ask(`/gateway/v1/requests/${requestId}`, key)).text), call)
  assert.equal((await ask(`/gateway/v1/requests/${requestId}`, gateway.apiKey)).status, 404)
  assert.equal((await bench.record(id))['month_waiting'], 1)
  assert.equal(JSON.parse((await ask('/v1/keys/me', key)).text).month_waiting, 1)
  const { data } = await list('search=waits', '/v1/keys')
  assert.equal(data[0]?.['month_waiting'], 1)
  const newest = await list('limit=1')
  assert.deepEqual(newest.data, [call], 'the log of all states has it, too')
  const page = await list(`limit=1&after=${newest.next}`)
  assert.equal(page.data[0]?.['state'], 'in_flight')

  running.finish(1)
  ;(await upstream.next()).finish(1)
  assert.equal((await first.reply).status, 200)
  assert.equal((await second.reply).requestId, requestId)
  assert.equal((await bench.record(id))['month_waiting'], 0)
  assert.deepEqual(await waiting(id, 0), [])
  assert.equal(JSON.parse((await ask(`/gateway/v1/requests/${requestId}`)).text).state, 'settled')
})

test('a client that leaves ends the wait of its call', async () => {
  const { id, key } = await gateway.createKey('leaves', CAP)
  const first = await bench.send('stays', key)
  const running = await upstream.next()
  const second = await bench.send('leaves', key)
  const [call] = await waiting(id, 1)
  second.leave()
  await waiting(id, 0)
  assert.equal((await bench.record(id))['month_waiting'], 0)
  assert.equal((await ask(`/gateway/v1/requests/${call?.['id']}`)).status, 404)
  running.finish(1)
  assert.equal((await first.reply).status, 200)
})
