import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startSimulator } from '../../simulator/start-simulator.ts'
import { startGateway } from '../support/gateway.ts'
import { exchange } from '../support/raw-client.ts'
import { sized } from '../support/wire-bytes.ts'
import { movableClock } from './movable-clock.ts'
import { askOf, assertRefused, assertUnstored, NO_SUCH_KEY } from './own-client.ts'

const clock = movableClock()
const simulator = await startSimulator({ messagesKey: 'pm' })
const gateway = await startGateway({ messagesUrl: simulator.messagesUrl, messagesKey: 'pm', clock })
after(async () => {
  await gateway.close()
  await simulator.close()
})
const ask = askOf(gateway)

/** A call that costs money, settled when its answer is whole. */
async function spend(key: string): Promise<void> {
  const response = await fetch(`${gateway.url}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': key, 'anthropic-version': '2023-06-01' },
    body: '{"model":"claude-opus-4-8","max_tokens":10,"messages":[{"role":"user","content":"hello"}]}',
  })
  assert.equal(response.status, 200, await response.text())
}

test('GET /v1/keys/{id} 200: the record, without the secret', async () => {
  const { key, ...created } = await gateway.createKey('shown', { monthly_budget_usd: 5 })
  const answer = await ask('GET', `/v1/keys/${created.id}`)
  assert.equal(answer.status, 200)
  assertUnstored(answer)
  assert.deepEqual(answer.body, created)
  assert.ok(!JSON.stringify(answer.body).includes(key))
})

test('GET /v1/keys/{id} 200: what the key has spent this month, and when it was last used', async () => {
  const { id, key } = await gateway.createKey('spender')
  await spend(key)
  const { body } = await ask('GET', `/v1/keys/${id}`)
  assert.ok(Number(body['month_spend_usd']) > 0)
  assert.equal(body['month_held_usd'], 0)
  assert.notEqual(body['last_used_at'], null)
  const { body: balance } = await ask('GET', '/gateway/v1/balance')
  assert.equal(balance['charged_usd'], body['month_spend_usd'])
})

test('GET /v1/keys/{id} 200: expired from the instant of its expiry on, and spent is what it spent', async () => {
  const { id } = await gateway.createKey('short', {
    expires_at: new Date(clock.nowMs() + 1_000_000).toISOString(),
  })
  assert.equal((await ask('GET', `/v1/keys/${id}`)).body['status'], 'usable')
  clock.advance(1_000_000)
  const { body } = await ask('GET', `/v1/keys/${id}`)
  assert.equal(body['status'], 'expired')
  assert.equal(body['revoked_at'], null)
})

test('GET /v1/keys/{id} 200: a body that comes with it is ignored, and the connection goes on', async () => {
  const { id } = await gateway.createKey('with a body')
  const lines = ['Host: h', `Authorization: Bearer ${gateway.adminKey}`]
  const get = (body: string) => sized(`GET /v1/keys/${id} HTTP/1.1`, lines, body)
  for (const body of ['', '{', 'x'.repeat(100_000)]) {
    assert.equal((await exchange(gateway, get(body))).status, 200)
  }
})

for (const [what, id] of [
  ['there is no such key', NO_SUCH_KEY],
  ['an id that cannot be one', 'key_none'],
  ['an id that would be another one, decoded', 'key%5f'],
] as const) {
  test(`GET /v1/keys/{id} 404: ${what}`, async () => {
    assertRefused(await ask('GET', `/v1/keys/${id}`), 404, { code: 'not_found', message: /no key/ })
  })
}

test('GET /v1/keys/{id} 400: a query parameter', async () => {
  const answer = await ask('GET', `/v1/keys/${NO_SUCH_KEY}?expand=1`)
  assertRefused(answer, 400, { code: 'bad_request', param: 'expand' })
})
