import assert from 'node:assert/strict'
import { startBillingBench } from '../billing/bench-of-one.ts'
import { closeAfter, test } from '../support/suite.ts'
import { askOf, assertRefused, assertUnstored } from './own-client.ts'

const bench = await startBillingBench()
const { gateway } = bench
closeAfter(bench)
const ask = askOf(gateway)
const other = await gateway.createKey('somebody else')

const called = await fetch(`${gateway.url}/v1/messages`, {
  method: 'POST',
  headers: { 'x-api-key': gateway.apiKey, 'anthropic-version': '2023-06-01', 'user-agent': 'tester' },
  body: '{"model":"claude-opus-4-8","max_tokens":10,"messages":[{"role":"user","content":"hello"}]}',
})
assert.equal(called.status, 200, await called.clone().text())
const costUsd = Number(called.headers.get('x-svc-cost-usd'))
const id = String(called.headers.get('x-svc-request-id'))
await called.arrayBuffer()
const path = `/gateway/v1/requests/${id}`

for (const [who, key] of [
  ['the key that made the call', gateway.apiKey],
  ['an admin key', gateway.adminKey],
] as const) {
  test(`GET /gateway/v1/requests/{id} 200: to ${who}, with the figures of its response`, async () => {
    const answer = await ask('GET', path, { key })
    assert.equal(answer.status, 200)
    assertUnstored(answer)
    const { body } = answer
    assert.deepEqual(
      [body['id'], body['object'], body['state'], body['path'], body['user_agent']],
      [id, 'request', 'settled', '/v1/messages', 'tester'],
    )
    assert.ok(costUsd > 0)
    assert.equal(body['cost_usd'], costUsd)
  })
}

test('GET /gateway/v1/requests/{id}: wait is a number of seconds from 0 to 30', async () => {
  const { adminKey: key } = gateway
  assert.equal((await ask('GET', `${path}?wait=0`, { key })).status, 200)
  for (const wait of ['31', '-1', 'x', '0.5'])
    assertRefused(await ask('GET', `${path}?wait=${wait}`, { key }), 400, {
      code: 'bad_request',
      param: 'wait',
    })
})

test('GET /gateway/v1/requests/{id} 404: to another key, as if it did not exist', async () => {
  const theirs = await ask('GET', path, { key: other.key })
  const none = await ask('GET', '/gateway/v1/requests/req_01ARZ3NDEKTSV4RRFFQ69G5FAV', { key: other.key })
  assertRefused(theirs, 404, { code: 'not_found' })
  assert.deepEqual(theirs.body['error'], none.body['error'])
})
