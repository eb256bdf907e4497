import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startGateway } from '../support/gateway.ts'
import { connect } from '../support/raw-client.ts'

// Port 9 is for discarding, and nobody listens there.
const gateway = await startGateway({ chatUrl: 'http://127.0.0.1:9/v1', settings: { bodyIdleTimeoutMs: 200 } })
after(() => gateway.close())

const head = (length: number) =>
  `POST /v1/files HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${gateway.apiKey}\r\nContent-Length: ${length}\r\n\r\n`

test('an upload that upstream cannot be reached for is answered, and nothing of it lives on when the client goes', async () => {
  for (let round = 0; round < 5; round++) {
    const client = await connect(gateway)
    const reply = await client.request(Buffer.concat([Buffer.from(head(50_000_000)), Buffer.alloc(1_000)]))
    assert.equal(reply.status, 502)
    client.leave()
  }
  const health = await fetch(`${gateway.url}/healthz`)
  assert.equal(health.status, 200)
  await health.body?.cancel()
})
