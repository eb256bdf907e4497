import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startGateway } from '../support/gateway.ts'
import { movableClock } from './movable-clock.ts'
import { askOf } from './own-client.ts'
import { testRevocation } from './revocation-cases.ts'

const clock = movableClock()
const gateway = await startGateway({ messagesUrl: 'http://127.0.0.1:9', clock })
after(() => gateway.close())
const ask = askOf(gateway)

testRevocation(gateway, clock, 'DELETE', '/v1/keys/{id}')

test('DELETE /v1/keys/{id} 200: a body that comes with it is ignored', async () => {
  const { id } = await gateway.createKey('with a body')
  assert.equal((await ask('DELETE', `/v1/keys/${id}`, { text: '{' })).status, 200)
})
