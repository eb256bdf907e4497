import assert from 'node:assert/strict'
import { startBillingBench } from '../billing/bench-of-one.ts'
import { closeAfter, test } from '../support/suite.ts'
import { askOf, assertRefused, assertUnstored } from './own-client.ts'

const bench = await startBillingBench()
const { gateway } = bench
closeAfter(bench)
const ask = askOf(gateway)
const PATH = '/gateway/v1/credits'
const credit = (json: unknown, headers: Record<string, string> = {}) => ask('POST', PATH, { json, headers })
const balance = async () => (await ask('GET', '/gateway/v1/balance')).body
const nanosOf = (value: unknown): number => Math.round(Number(value) * 1e9)
const NONE = 'req_01ARZ3NDEKTSV4RRFFQ69G5FAV'

async function call(simulate = 'usage={"input_tokens":1000,"output_tokens":10}') {
  const response = await send(simulate)
  await response.arrayBuffer()
  return {
    id: String(response.headers.get('x-svc-request-id')),
    costUsd: Number(response.headers.get('x-svc-cost-usd')),
  }
}

function send(simulate: string, more: object = {}, signal: AbortSignal | null = null): Promise<Response> {
  return fetch(`${gateway.url}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': gateway.apiKey, 'anthropic-version': '2023-06-01', 'x-simulator': simulate },
    body: JSON.stringify({
      model: 'claude-haiku-5-5',
      max_tokens: 20,
      messages: [{ role: 'user', content: 'Hello' }],
      ...more,
    }),
    signal,
  })
}

test('POST /gateway/v1/credits 201: credits the listed calls back in one ledger entry', async () => {
  const before = await balance()
  const [one, two] = [await call(), await call('usage={"input_tokens":7,"output_tokens":3}')]
  assert.ok(one.costUsd > 0 && two.costUsd > 0 && one.costUsd !== two.costUsd)

  const answer = await credit({ request_ids: [two.id, one.id], reason: 'stolen' })
  assert.equal(answer.status, 201)
  assertUnstored(answer)
  const { credited, already_credited, not_credited, ...entry } = answer.body
  assert.deepEqual([credited, already_credited, not_credited], [[two.id, one.id], [], []])
  const { id, created_at, amount_usd, actor, ...rest } = entry
  assert.match(String(id), /^crd_[0-9A-HJKMNP-TV-Z]{26}$/)
  assert.ok(Date.parse(String(created_at)) > 0)
  assert.equal(nanosOf(amount_usd), nanosOf(one.costUsd + two.costUsd))
  assert.equal((actor as Record<string, unknown>)['kind'], 'admin_key')
  assert.deepEqual(rest, {
    ...{ object: 'credit', account_id: 'default', kind: 'credit_back', reason: 'stolen' },
    balance_after_usd: before['balance_usd'],
  })
  const now = await balance()
  assert.equal(now['balance_usd'], before['balance_usd'])
  assert.equal(nanosOf(now['charged_usd']), nanosOf(before['charged_usd']) + nanosOf(amount_usd))
  assert.equal(now['enforced'], false, 'credited calls do not enforce credit')

  const record = (await ask('GET', `/gateway/v1/requests/${one.id}`)).body
  assert.deepEqual([record['credited'], record['cost_usd']], [true, one.costUsd])
  const listed = (await ask('GET', `${PATH}?limit=1`)).body
  assert.deepEqual(listed['data'], [entry])
})

const reason = 'r'

test('POST /gateway/v1/credits 400: neither an amount nor calls, or both', async () => {
  const before = await balance()
  const wanted = {
    code: 'bad_request',
    param: 'amount_usd',
    message: /amount_usd or request_ids is required/,
  }
  assertRefused(await credit({ reason }), 400, wanted)
  const both = await credit({ reason, amount_usd: 1, request_ids: [NONE] })
  assertRefused(both, 400, { code: 'bad_request', param: 'request_ids', message: /cannot be used together/ })
  assert.deepEqual(await balance(), before)
})

test('POST /gateway/v1/credits 404: the account has none of the calls; 409 if it has one', async () => {
  const free = await call('status=500')
  const unknown = await credit({ reason, request_ids: [NONE] })
  assertRefused(unknown, 404, { code: 'not_found', message: /no call with such an id/ })
  assertRefused(await credit({ reason, request_ids: [NONE, free.id] }), 409, { code: 'conflict' })
})
