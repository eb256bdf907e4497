import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startGateway } from '../support/gateway.ts'

const gateway = await startGateway({ messagesUrl: 'http://127.0.0.1:9' })
after(() => gateway.close())

for (const path of ['/healthz', '/readyz']) {
  test(`GET ${path} 200: without a key`, async () => {
    const response = await fetch(gateway.url + path)
    assert.equal(response.status, 200)
    assert.deepEqual(await response.json(), { status: 'ok' })
    assert.match(String(response.headers.get('x-svc-request-id')), /^req_/)
    assert.equal(response.headers.get('cache-control'), 'no-store')
  })
}

test('an admin key cannot call models, and is told so', async () => {
  const response = await fetch(`${gateway.url}/v1/models`, {
    headers: { authorization: `Bearer ${gateway.adminKey}` },
  })
  assert.equal(response.status, 401)
  assert.match(await response.text(), /admin key/)
})
