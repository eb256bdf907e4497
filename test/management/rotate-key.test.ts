import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startGateway } from '../support/gateway.ts'
import { movableClock } from './movable-clock.ts'
import { askOf, assertRefused, assertUnstored, NO_SUCH_KEY } from './own-client.ts'

const clock = movableClock()
const gateway = await startGateway({ messagesUrl: 'http://127.0.0.1:9', clock })
after(() => gateway.close())
const ask = askOf(gateway)
const rotate = (id: string, json?: unknown, headers: Record<string, string> = {}) =>
  ask('POST', `/v1/keys/${id}/rotate`, { headers, ...(json === undefined ? {} : { json }) })
const show = async (id: string) => (await ask('GET', `/v1/keys/${id}`)).body

const limits = {
  monthly_budget_usd: 7.25,
  allowed_models: ['m', 'n'],
  log_requests: true,
  expires_at: '2100-01-01T00:00:00.000Z',
}

test('POST /v1/keys/{id}/rotate 201: a new key with the same limits, and the old one goes on', async () => {
  const old = await gateway.createKey('service', limits)
  const answer = await rotate(old.id)
  assert.equal(answer.status, 201)
  assertUnstored(answer)
  assert.equal(answer.headers.get('idempotent-replayed'), null)
  const { id, key, name, rotated_from, status, month_spend_usd, last_used_at } = answer.body
  assert.notEqual(id, old.id)
  assert.notEqual(key, old.key)
  assert.deepEqual([name, rotated_from, status], ['service', old.id, 'usable'])
  assert.deepEqual([month_spend_usd, last_used_at], [0, null])
  for (const [field, value] of Object.entries(limits)) assert.deepEqual(answer.body[field], value)
  assert.deepEqual(
    [answer.body['prefix'], answer.body['last4']],
    [String(key).slice(0, 16), String(key).slice(-4)],
  )
  const { key: secret, ...unchanged } = old
  assert.equal(typeof secret, 'string')
  assert.deepEqual(await show(old.id), unchanged)
  for (const each of [old.key, String(key)]) {
    assert.equal((await ask('GET', '/v1/keys/me', { key: each })).status, 200)
  }
})

test('POST /v1/keys/{id}/rotate 201: the old key ends when it was told to, the new one does not', async () => {
  const old = await gateway.createKey('service')
  const before = clock.nowMs()
  const { body } = await rotate(old.id, { old_expires_in_seconds: 3_600 })
  const expires = Date.parse(String((await show(old.id))['expires_at']))
  assert.ok(expires >= before + 3_600_000 && expires <= clock.nowMs() + 3_600_000)
  assert.equal(body['expires_at'], null)
  assert.equal((await show(old.id))['status'], 'usable')
  clock.advance(3_600_000)
  assert.equal((await show(old.id))['status'], 'expired')
  assert.equal((await show(String(body['id'])))['status'], 'usable')
})

test('POST /v1/keys/{id}/rotate 201: 0 seconds end the old key at once', async () => {
  const old = await gateway.createKey('service')
  assert.equal((await rotate(old.id, { old_expires_in_seconds: 0 })).status, 201)
  assert.equal((await ask('GET', '/v1/keys/me', { key: old.key })).status, 401)
})

test('POST /v1/keys/{id}/rotate 201: the old key never lives longer for it', async () => {
  const expires_at = new Date(clock.nowMs() + 60_000).toISOString()
  const old = await gateway.createKey('short', { expires_at })
  assert.equal((await rotate(old.id, { old_expires_in_seconds: 31_536_000 })).status, 201)
  assert.equal((await show(old.id))['expires_at'], expires_at)
})

test('POST /v1/keys/{id}/rotate 201: repeated with its Idempotency-Key, it makes no second key', async () => {
  const old = await gateway.createKey('rotated once')
  const headers = { 'idempotency-key': 'rotate once' }
  const first = await rotate(old.id, { old_expires_in_seconds: 60 }, headers)
  const { expires_at } = await show(old.id)
  clock.advance(1_000)
  const second = await rotate(old.id, { old_expires_in_seconds: 60 }, headers)
  assert.equal(second.status, 201)
  assert.equal(second.headers.get('idempotent-replayed'), 'true')
  assertUnstored(second)
  const { key, ...record } = first.body
  assert.equal(typeof key, 'string')
  assert.deepEqual(second.body, record)
  assert.equal((await show(old.id))['expires_at'], expires_at)
  // A repetition succeeds also when its first attempt has ended the old key.
  clock.advance(60_000)
  assert.equal((await show(old.id))['status'], 'expired')
  assert.deepEqual((await rotate(old.id, { old_expires_in_seconds: 60 }, headers)).body, record)
})

test('POST /v1/keys/{id}/rotate 409: an Idempotency-Key that was used for something else', async () => {
  const old = await gateway.createKey('rotated')
  const headers = { 'idempotency-key': 'rotate this' }
  assert.equal((await rotate(old.id, {}, headers)).status, 201)
  const answer = await rotate(old.id, { old_expires_in_seconds: 1 }, headers)
  assertRefused(answer, 409, { code: 'conflict', param: 'Idempotency-Key' })
  assert.equal((await show(old.id))['expires_at'], null)
})

test('POST /v1/keys/{id}/rotate 409: a revoked key', async () => {
  const { id } = await gateway.createKey('revoked')
  await gateway.revokeKey(id)
  assertRefused(await rotate(id), 409, { code: 'conflict', message: /is revoked/ })
})

test('POST /v1/keys/{id}/rotate 409: an expired key', async () => {
  const expires_at = new Date(clock.nowMs() + 1_000).toISOString()
  const { id } = await gateway.createKey('expired', { expires_at })
  clock.advance(1_000)
  assertRefused(await rotate(id), 409, { code: 'conflict', message: /has expired/ })
})

test('POST /v1/keys/{id}/rotate 404: there is no such key', async () => {
  assertRefused(await rotate(NO_SUCH_KEY), 404, { code: 'not_found' })
})

const field = 'old_expires_in_seconds'
const untouched = await gateway.createKey('untouched')
for (const [what, text, param] of [
  ['seconds below 0', `{"${field}":-1}`, field],
  ['seconds beyond a year', `{"${field}":31536001}`, field],
  ['half a second', `{"${field}":0.5}`, field],
  ['seconds that are a text', `{"${field}":"60"}`, field],
  ['seconds that are null', `{"${field}":null}`, field],
  ['a field that does not exist', '{"name":"x"}', 'name'],
  ['a body that is no JSON', '{', null],
  ['a body that is a list', '[]', null],
] as const) {
  test(`POST /v1/keys/{id}/rotate 400: ${what}`, async () => {
    const answer = await ask('POST', `/v1/keys/${untouched.id}/rotate`, { text })
    assertRefused(answer, 400, { code: 'bad_request', param })
  })
}

test('POST /v1/keys/{id}/rotate 400: a query parameter', async () => {
  const answer = await ask('POST', `/v1/keys/${untouched.id}/rotate?x=1`)
  assertRefused(answer, 400, { code: 'bad_request', param: 'x' })
})

test('POST /v1/keys/{id}/rotate 400: an Idempotency-Key that is none', async () => {
  const answer = await rotate(untouched.id, {}, { 'idempotency-key': '' })
  assertRefused(answer, 400, { code: 'bad_request', param: 'Idempotency-Key' })
})

test('POST /v1/keys/{id}/rotate 400: of all this no key was made', async () => {
  const { body } = await ask('GET', '/v1/keys?search=untouched')
  assert.equal((body['data'] as unknown[]).length, 1)
})

test('POST /v1/keys/{id}/rotate 413: a body beyond 64 KiB', async () => {
  const answer = await ask('POST', `/v1/keys/${untouched.id}/rotate`, { text: ' '.repeat(70_000) })
  assertRefused(answer, 413, { code: 'body_too_large' })
})
