import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startGateway } from '../support/gateway.ts'
import { movableClock } from './movable-clock.ts'
import { askOf, assertRefused, NO_SUCH_KEY } from './own-client.ts'
import { testRevocation } from './revocation-cases.ts'

const clock = movableClock()
const gateway = await startGateway({ messagesUrl: 'http://127.0.0.1:9', clock })
after(() => gateway.close())
const ask = askOf(gateway)

testRevocation(gateway, clock, 'POST', '/v1/keys/{id}/revoke')

test('POST /v1/keys/{id}/revoke 200: with an empty object', async () => {
  const { id } = await gateway.createKey('object')
  assert.equal((await ask('POST', `/v1/keys/${id}/revoke`, { json: {} })).status, 200)
})

for (const [what, text, param] of [
  ['a field', '{"reason":"leaked"}', 'reason'],
  ['a body that is no JSON', '{', null],
  ['a body that is a list', '[]', null],
] as const) {
  test(`POST /v1/keys/{id}/revoke 400: ${what}, and the key stays`, async () => {
    const { id, key } = await gateway.createKey('stays')
    const answer = await ask('POST', `/v1/keys/${id}/revoke`, { text })
    assertRefused(answer, 400, { code: 'bad_request', param })
    assert.equal((await ask('GET', '/v1/keys/me', { key })).status, 200)
  })
}

test('POST /v1/keys/{id}/revoke 400: an Idempotency-Key that is none', async () => {
  const answer = await ask('POST', `/v1/keys/${NO_SUCH_KEY}/revoke`, { headers: { 'idempotency-key': '' } })
  assertRefused(answer, 400, { code: 'bad_request', param: 'Idempotency-Key' })
})

test('POST /v1/keys/{id}/revoke 200: with an Idempotency-Key it is as repeatable as without', async () => {
  const { id } = await gateway.createKey('named command')
  const headers = { 'idempotency-key': 'revoke it' }
  const first = await ask('POST', `/v1/keys/${id}/revoke`, { headers })
  assert.deepEqual((await ask('POST', `/v1/keys/${id}/revoke`, { headers })).body, first.body)
})

test('POST /v1/keys/{id}/revoke 413: a body beyond 64 KiB', async () => {
  const answer = await ask('POST', `/v1/keys/${NO_SUCH_KEY}/revoke`, { text: ' '.repeat(70_000) })
  assertRefused(answer, 413, { code: 'body_too_large' })
})
