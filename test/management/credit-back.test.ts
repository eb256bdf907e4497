import assert from 'node:assert/strict'
import { startSimulator } from '../../simulator/start-simulator.ts'
import { limits } from '../../src/kernel/limits.ts'
import { openApiDocument } from '../../src/management/openapi.ts'
import { routes } from '../../src/management/router.ts'
import { startGateway } from '../support/gateway.ts'
import { after, test } from '../support/suite.ts'
import { Documented } from './documented.ts'
import { askOf, assertRefused, assertUnstored } from './own-client.ts'

const simulator = await startSimulator({ messagesKey: 'pm' })
const gateway = await startGateway({ messagesUrl: simulator.messagesUrl, messagesKey: 'pm' })
after(async () => {
  await gateway.close()
  await simulator.close()
})
const ask = askOf(gateway)
const PATH = '/gateway/v1/credits'
const credit = (json: unknown, headers: Record<string, string> = {}) => ask('POST', PATH, { json, headers })
const balance = async () => (await ask('GET', '/gateway/v1/balance')).body
const nanosOf = (value: unknown): number => Math.round(Number(value) * 1e9)
const NONE = 'req_01ARZ3NDEKTSV4RRFFQ69G5FAV'

interface Made {
  readonly id: string
  readonly costUsd: number
}

/** A call through the gateway, with the cost that its client saw. */
async function call(simulate = 'usage={"input_tokens":1000,"output_tokens":10}'): Promise<Made> {
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

const outcomes = (body: Readonly<Record<string, unknown>>) =>
  (body['data'] as Record<string, unknown>[]).map((each) => [each['request_id'], each['outcome']])

test('POST /gateway/v1/credits 201: gives back what the listed calls cost, and says it call by call', async () => {
  const before = await balance()
  const [one, two] = [await call(), await call('usage={"input_tokens":7,"output_tokens":3}')]
  assert.ok(one.costUsd > 0 && two.costUsd > 0 && one.costUsd !== two.costUsd)

  const answer = await credit({ request_ids: [two.id, one.id], reason: 'stolen' })
  assert.equal(answer.status, 201)
  assertUnstored(answer)
  const { data, ...rest } = answer.body
  const entries = data as Record<string, unknown>[]
  assert.deepEqual(
    entries.map(({ credit_id: _, ...entry }) => entry),
    [two, one].map(({ id, costUsd }) => ({ request_id: id, outcome: 'credited', amount_usd: costUsd })),
  )
  for (const { credit_id: id } of entries) assert.match(String(id), /^crd_[0-9A-HJKMNP-TV-Z]{26}$/)
  assert.notEqual(entries[0]?.['credit_id'], entries[1]?.['credit_id'])
  const { credited_usd: creditedUsd, ...words } = rest
  assert.equal(nanosOf(creditedUsd), nanosOf(one.costUsd + two.costUsd))
  assert.deepEqual(words, {
    object: 'credit_back',
    reason: 'stolen',
    balance_usd: before['balance_usd'],
  })
  const now = await balance()
  assert.equal(now['balance_usd'], before['balance_usd'])
  assert.equal(nanosOf(now['charged_usd']), nanosOf(before['charged_usd']) + nanosOf(creditedUsd))
  assert.equal(now['enforced'], false, 'money that came back is no prepayment')

  const record = (await ask('GET', `/gateway/v1/requests/${one.id}`)).body
  assert.deepEqual([record['credited'], record['cost_usd']], [true, one.costUsd])
})

test("POST /gateway/v1/credits 201: the key's month stays as it was", async () => {
  const { id } = await call()
  const before = (await ask('GET', '/v1/keys/me', { key: gateway.apiKey })).body['month_spend_usd']
  await credit({ request_ids: [id], reason: 'stolen' })
  const { body } = await ask('GET', '/v1/keys/me', { key: gateway.apiKey })
  assert.ok(Number(before) > 0)
  assert.equal(body['month_spend_usd'], before)
})

test('POST /gateway/v1/credits 201: calls that give nothing back say why, and keep none of the others', async () => {
  const credited = await call()
  await credit({ request_ids: [credited.id], reason: 'stolen' })
  const failed = await call('status=500')
  const paid = await call()
  const gone = new AbortController()
  const stream = await send('drip=60000', { stream: true }, gone.signal)
  const open = String(stream.headers.get('x-svc-request-id'))
  const before = await balance()

  const ids = [NONE, credited.id, failed.id, open, paid.id]
  const { status, body } = await credit({ request_ids: ids, reason: 'stolen' })
  assert.equal(status, 201)
  assert.deepEqual(outcomes(body), [
    [NONE, 'not_found'],
    [credited.id, 'already_credited'],
    [failed.id, 'nothing_to_credit'],
    [open, 'in_flight'],
    [paid.id, 'credited'],
  ])
  for (const entry of (body['data'] as Record<string, unknown>[]).slice(0, 4)) {
    assert.deepEqual([entry['credit_id'], entry['amount_usd']], [null, 0])
  }
  assert.equal(body['credited_usd'], paid.costUsd)
  const now = await balance()
  assert.equal(nanosOf(now['credited_usd']), nanosOf(before['credited_usd']) + nanosOf(paid.costUsd))
  gone.abort()
})

test('POST /gateway/v1/credits 201: repeated with its Idempotency-Key, it answers as it did at first', async () => {
  const [one, two] = [await call(), await call()]
  await credit({ request_ids: [two.id], reason: 'stolen' })
  const body = { request_ids: [one.id, two.id, NONE], reason: 'stolen' }
  const headers = { 'idempotency-key': 'case 7' }
  const answers = await Promise.all(Array.from({ length: 5 }, () => credit(body, headers)))
  assert.equal(answers.filter((each) => each.headers.get('idempotent-replayed') === null).length, 1)
  for (const answer of answers) {
    assert.equal(answer.status, 201)
    assertUnstored(answer)
    assert.deepEqual(answer.body, answers[0]?.body)
  }
  assert.deepEqual(outcomes(answers[0]?.body ?? {}), [
    [one.id, 'credited'],
    [two.id, 'already_credited'],
    [NONE, 'not_found'],
  ])
  const again = await credit(body)
  assert.deepEqual(
    outcomes(again.body).map(([, outcome]) => outcome),
    ['already_credited', 'already_credited', 'not_found'],
    'without a name it is a request of its own',
  )
})

test('POST /gateway/v1/credits 409: an Idempotency-Key that was used for other calls, or for a top-up', async () => {
  const { id } = await call()
  const headers = { 'idempotency-key': 'case 8' }
  assert.equal((await credit({ request_ids: [NONE], reason: 'r' }, headers)).status, 201)
  for (const body of [
    { request_ids: [id], reason: 'r' },
    { request_ids: [NONE], reason: 'another' },
    { amount_usd: 1, reason: 'r' },
  ]) {
    assertRefused(await credit(body, headers), 409, { code: 'conflict', param: 'Idempotency-Key' })
  }
  const { body } = await ask('GET', `/gateway/v1/requests/${id}`)
  assert.equal(body['credited'], false)
})

test('POST /gateway/v1/credits 201: as many calls at once as are allowed fit into one request', async () => {
  const request_ids = Array.from({ length: limits.creditBackCallsMax }, (_, i) => idOf(i))
  const { status, body } = await credit({ request_ids, reason: 'r'.repeat(500) })
  assert.equal(status, 201)
  assert.equal((body['data'] as unknown[]).length, request_ids.length)
})

const idOf = (i: number): string => `req_${String(i).padStart(26, '0')}`
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

test('the document takes an amount or calls, and neither both nor none of them', () => {
  const made: unknown = JSON.parse(
    JSON.stringify(openApiDocument(routes, { version: '0', servicePrefix: 'svc' })),
  )
  const documented = new Documented(made as Record<string, unknown>)
  const schema = documented.operation(`POST ${PATH}`).requestBody?.content['application/json']?.schema
  documented.assertConforms(schema, { reason, amount_usd: 1 })
  documented.assertConforms(schema, { reason, request_ids: [NONE] })
  for (const wrong of [
    { reason },
    { reason, amount_usd: 1, request_ids: [NONE] },
    { reason, request_ids: [NONE, NONE] },
    { reason, request_ids: [] },
  ]) {
    assert.throws(() => documented.assertConforms(schema, wrong))
  }
})

test('POST /gateway/v1/credits 403: an API key gives nothing back, not even its own calls', async () => {
  const { id } = await call()
  const answer = await ask('POST', PATH, { json: { request_ids: [id], reason }, key: gateway.apiKey })
  assertRefused(answer, 403, { code: 'admin_key_required' })
})
