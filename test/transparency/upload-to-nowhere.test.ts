import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { closedPort } from '../support/closed-port.ts'
import { startGateway } from '../support/gateway.ts'
import { connect } from '../support/raw-client.ts'
import { after, test } from '../support/suite.ts'

const gateway = await startGateway({ chatUrl: `http://127.0.0.1:${await closedPort()}/v1` })
after(() => gateway.close())

const head = (key: string, length: number) =>
  `POST /v1/files HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${key}\r\nContent-Length: ${length}\r\n\r\n`

test('an upload that upstream cannot be reached for is answered, and nothing of it lives on when the client goes', async () => {
  for (let round = 0; round < 5; round++) {
    const client = await connect(gateway)
    const reply = await client.request(
      Buffer.concat([Buffer.from(head(gateway.apiKey, 50_000_000)), Buffer.alloc(1_000)]),
    )
    assert.equal(reply.status, 502)
    client.leave()
  }
  const health = await fetch(`${gateway.url}/healthz`)
  assert.equal(health.status, 200)
  await health.body?.cancel()
})

for (const [size, sentBytes] of [
  ['in the middle', 1_000],
  // While upstream has no room the client's timeout does not run; afterwards it runs again.
  ['after upstream had to make room for it', 2_000_000],
] as const) {
  test(`an upload that stops ${size} is answered 408, and upstream never has it whole`, () =>
    stopAfter(sentBytes))
}

async function stopAfter(sentBytes: number): Promise<void> {
  const ended = Promise.withResolvers<boolean>()
  const upstream = createServer((req) => {
    req.on('error', () => {})
    req.resume().on('close', () => ended.resolve(req.complete))
  })
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
  const chatUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`
  const impatient = await startGateway({ chatUrl, settings: { bodyIdleTimeoutMs: 200 } })
  try {
    const client = await connect(impatient)
    const reply = await client.request(
      Buffer.concat([Buffer.from(head(impatient.apiKey, 5_000_000)), Buffer.alloc(sentBytes)]),
    )
    assert.equal(reply.status, 408)
    assert.match(reply.body.toString(), /"code":"request_timeout"/)
    assert.equal(await ended.promise, false)
    client.leave()
  } finally {
    await impatient.close()
    upstream.closeAllConnections()
    upstream.close()
  }
}
