import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startGateway } from '../support/gateway.ts'
import { exchange } from '../support/raw-client.ts'
import { message } from '../support/wire-bytes.ts'
import { movableClock } from './movable-clock.ts'
import { askOf } from './own-client.ts'
import { testRevocation } from './revocation-cases.ts'

const clock = movableClock()
const gateway = await startGateway({ messagesUrl: 'http://127.0.0.1:9', clock })
after(() => gateway.close())
const ask = askOf(gateway)

testRevocation(gateway, clock, 'POST', '/v1/keys/{id}/revoke')

for (const [what, text] of [
  ['an empty object', '{}'],
  ['a field', '{"reason":"leaked"}'],
  ['a body that is no JSON', '{'],
  ['a body that is a list', '[]'],
  ['a body beyond 64 KiB', ' '.repeat(70_000)],
] as const) {
  test(`POST /v1/keys/{id}/revoke 200: ${what} does not keep it from being done`, async () => {
    const { id, key } = await gateway.createKey('to be revoked')
    assert.equal((await ask('POST', `/v1/keys/${id}/revoke`, { text })).status, 200)
    assert.equal((await ask('GET', '/v1/keys/me', { key })).status, 401)
  })
}

test('POST /v1/keys/{id}/revoke 200: it does not wait for a body that never comes', async () => {
  const { id } = await gateway.createKey('without its body')
  const lines = ['Host: h', `Authorization: Bearer ${gateway.adminKey}`, 'Content-Length: 12']
  const reply = await exchange(gateway, message(`POST /v1/keys/${id}/revoke HTTP/1.1`, lines))
  assert.equal(reply.status, 200)
})

for (const [what, name] of [
  ['one', 'revoke it'],
  ['an empty one', ''],
  ['one of 256 characters', 'x'.repeat(256)],
] as const) {
  test(`POST /v1/keys/{id}/revoke 200: its Idempotency-Key is not looked at: ${what}`, async () => {
    const headers = { 'idempotency-key': name }
    for (const { id } of [await gateway.createKey('one'), await gateway.createKey('another')]) {
      const answer = await ask('POST', `/v1/keys/${id}/revoke`, { headers })
      assert.deepEqual([answer.status, answer.body['status']], [200, 'revoked'])
      assert.equal(answer.headers.get('idempotent-replayed'), null)
    }
  })
}
