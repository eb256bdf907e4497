import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startGateway } from '../support/gateway.ts'
import { badKeyBodies } from './bad-key-fields.ts'
import { movableClock } from './movable-clock.ts'
import { askOf, assertRefused, assertUnstored, NO_SUCH_KEY } from './own-client.ts'

const clock = movableClock()
const gateway = await startGateway({ messagesUrl: 'http://127.0.0.1:9', clock })
after(() => gateway.close())
const ask = askOf(gateway)

const limits = {
  name: 'before',
  monthly_budget_usd: 5,
  allowed_models: ['m'],
  log_requests: true,
  expires_at: '2100-01-01T00:00:00.000Z',
}
const limited = () => gateway.createKey('before', limits)

const edits: readonly [what: string, fields: Readonly<Record<string, unknown>>][] = [
  ['the name', { name: 'after' }],
  ['the budget', { monthly_budget_usd: 0.000000001 }],
  ['the budget, away', { monthly_budget_usd: null }],
  ['the budget, to nothing', { monthly_budget_usd: 0 }],
  ['the models', { allowed_models: ['n', 'o'] }],
  ['the models, away', { allowed_models: null }],
  ['the log', { log_requests: false }],
  ['the expiry', { expires_at: '2090-12-31T23:59:59.999Z' }],
  ['the expiry, away', { expires_at: null }],
  [
    'everything',
    { name: 'a', monthly_budget_usd: null, allowed_models: null, log_requests: false, expires_at: null },
  ],
  ['nothing', {}],
]
for (const [what, fields] of edits) {
  test(`PATCH /v1/keys/{id} 200: changes ${what} and leaves the rest`, async () => {
    const { key, ...before } = await limited()
    const answer = await ask('PATCH', `/v1/keys/${before.id}`, { json: fields })
    assert.equal(answer.status, 200)
    assertUnstored(answer)
    assert.deepEqual(answer.body, { ...before, ...fields })
    assert.deepEqual((await ask('GET', `/v1/keys/${before.id}`)).body, answer.body)
    assert.equal((await ask('GET', '/v1/keys/me', { key })).status, 200)
  })
}

test('PATCH /v1/keys/{id} 200: an absent body changes nothing', async () => {
  const { key: _, ...before } = await limited()
  const answer = await ask('PATCH', `/v1/keys/${before.id}`)
  assert.deepEqual([answer.status, answer.body], [200, before])
})

const target = await limited()
for (const { what, text, param, message } of badKeyBodies('')) {
  test(`PATCH /v1/keys/{id} 400: ${what}`, async () => {
    const answer = await ask('PATCH', `/v1/keys/${target.id}`, { text })
    assertRefused(answer, 400, { code: 'bad_request', param, message })
  })
}

test('PATCH /v1/keys/{id} 400: one bad field, and none of the good ones is changed', async () => {
  const { key: _, ...before } = await limited()
  const json = { name: 'half', monthly_budget_usd: 1, expires_at: '2020-01-01T00:00:00Z' }
  const answer = await ask('PATCH', `/v1/keys/${before.id}`, { json })
  assertRefused(answer, 400, { code: 'bad_request', param: 'expires_at' })
  assert.deepEqual((await ask('GET', `/v1/keys/${before.id}`)).body, before)
})

test('PATCH /v1/keys/{id} 400: a query parameter', async () => {
  const answer = await ask('PATCH', `/v1/keys/${target.id}?name=x`, { json: {} })
  assertRefused(answer, 400, { code: 'bad_request', param: 'name' })
})

test('PATCH /v1/keys/{id} 404: there is no such key', async () => {
  const answer = await ask('PATCH', `/v1/keys/${NO_SUCH_KEY}`, { json: { name: 'x' } })
  assertRefused(answer, 404, { code: 'not_found' })
})

test('PATCH /v1/keys/{id} 409: a revoked key stays as it is', async () => {
  const { id } = await limited()
  await gateway.revokeKey(id)
  const before = await ask('GET', `/v1/keys/${id}`)
  const answer = await ask('PATCH', `/v1/keys/${id}`, { json: { expires_at: null, name: 'alive' } })
  assertRefused(answer, 409, { code: 'conflict', message: /is revoked/ })
  assert.deepEqual((await ask('GET', `/v1/keys/${id}`)).body, before.body)
})

test('PATCH /v1/keys/{id} 409: an expired key does not come back', async () => {
  const expires_at = new Date(clock.nowMs() + 60_000).toISOString()
  const { id } = await gateway.createKey('short', { expires_at })
  clock.advance(60_000)
  for (const json of [{ expires_at: null }, { expires_at: '2100-01-01T00:00:00Z' }, {}]) {
    const answer = await ask('PATCH', `/v1/keys/${id}`, { json })
    assertRefused(answer, 409, { code: 'conflict', message: /has expired/ })
  }
  assert.equal((await ask('GET', `/v1/keys/${id}`)).body['status'], 'expired')
})

test('PATCH /v1/keys/{id} 413: a body beyond 64 KiB', async () => {
  const answer = await ask('PATCH', `/v1/keys/${target.id}`, { json: { name: 'x'.repeat(70_000) } })
  assertRefused(answer, 413, { code: 'body_too_large' })
})
