import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startGateway } from '../support/gateway.ts'
import { movableClock } from './movable-clock.ts'
import { askOf, assertRefused, assertUnstored } from './own-client.ts'

const clock = movableClock()
const gateway = await startGateway({ clock })
after(() => gateway.close())
const ask = askOf(gateway)

test('GET /v1/keys/me 200: the key that asks, as an admin sees it', async () => {
  const { id, key } = await gateway.createKey('me', { monthly_budget_usd: 2, allowed_models: ['m'] })
  const answer = await ask('GET', '/v1/keys/me', { key })
  assert.equal(answer.status, 200)
  assertUnstored(answer)
  assert.deepEqual(answer.body, (await ask('GET', `/v1/keys/${id}`)).body)
})

test('GET /v1/keys/me 200: by x-api-key too', async () => {
  const { id, key } = await gateway.createKey('me')
  const response = await fetch(`${gateway.url}/v1/keys/me`, { headers: { 'x-api-key': key } })
  assert.equal(response.status, 200)
  assert.equal(((await response.json()) as { id: string }).id, id)
})

test('GET /v1/keys/me 404: an admin key has no record', async () => {
  const answer = await ask('GET', '/v1/keys/me')
  assertRefused(answer, 404, { code: 'not_found', message: /admin key has no record/ })
})

test('GET /v1/keys/me 400: a query parameter', async () => {
  const answer = await ask('GET', '/v1/keys/me?x=1', { key: gateway.apiKey })
  assertRefused(answer, 400, { code: 'bad_request', param: 'x' })
})

test('GET /v1/keys/me 401: a key that was revoked or has expired', async () => {
  const revoked = await gateway.createKey('revoked')
  await gateway.revokeKey(revoked.id)
  const answer = await ask('GET', '/v1/keys/me', { key: revoked.key })
  assertRefused(answer, 401, { code: 'invalid_api_key', message: /was revoked/ })
  const expires_at = new Date(clock.nowMs() + 5_000).toISOString()
  const expired = await gateway.createKey('expired', { expires_at })
  clock.advance(5_000)
  const late = await ask('GET', '/v1/keys/me', { key: expired.key })
  assertRefused(late, 401, { code: 'invalid_api_key', message: /has expired/ })
})

for (const method of ['PATCH', 'DELETE', 'POST']) {
  test(`${method} /v1/keys/me 405: only to be read, and "me" is the id of no key`, async () => {
    const answer = await ask(method, '/v1/keys/me')
    assertRefused(answer, 405, { code: 'method_not_allowed', message: /has GET, HEAD, not/ })
    assert.equal(answer.headers.get('allow'), 'GET, HEAD')
  })
}
