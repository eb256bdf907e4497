import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Worker } from 'node:worker_threads'
import { closedPort } from '../support/closed-port.ts'
import { startGateway } from '../support/gateway.ts'
import { assertOwnError } from '../support/own-error.ts'
import { startPair } from '../support/pair.ts'
import { connect, exchange } from '../support/raw-client.ts'
import { closeAfter, test } from '../support/suite.ts'
import { providerKeys, surfaces } from '../support/surfaces.ts'
import type { Script } from '../support/upstream-script.ts'
import { chunk, lastChunk, message, noise, sized } from '../support/wire-bytes.ts'

const pair = await startPair()
closeAfter(pair)

test('an unreachable upstream is a 502 in the shape of the surface, each time', async (t) => {
  const url = `http://127.0.0.1:${await closedPort()}`
  const gateway = await startGateway({
    messagesUrl: url,
    messagesKey: providerKeys.messages,
    chatUrl: `${url}/v1`,
    chatKey: providerKeys.chat,
  })
  t.after(() => gateway.close())
  for (const surface of surfaces) {
    for (let time = 0; time < 3; time++) {
      const lines = ['Host: h', ...surface.lines(gateway.apiKey)]
      const reply = await exchange(
        gateway,
        sized(`POST ${surface.readEndpoint} HTTP/1.1`, lines, surface.jsonBody),
      )
      assertOwnError(reply, surface, 502, 'upstream_unreachable')
    }
  }
})

const ok = 'HTTP/1.1 200 OK\r\n'
const failures: Record<string, Script> = {
  'a reset before the head': [{ reset: true }],
  'a close before the head': [{ close: true }],
  'a close within the status line': [{ send: 'HTTP/1.' }, { close: true }],
  'a close within the head': [{ send: `${ok}Content-Type: te` }, { close: true }],
  'a reset within the head': [{ send: `${ok}Content-Type: te` }, { pause: 0 }, { reset: true }],
  'a close after an interim reply': [{ send: message('HTTP/1.1 103 Early Hints', []) }, { close: true }],
  'a reset right after the request head': { early: [{ reset: true }] },
  'bytes that are not HTTP': [{ send: 'SSH-2.0-OpenSSH_9.2\r\n\r\n' }],
  'a length and chunks': [
    { send: `${ok}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n` },
  ],
  'two lengths': [{ send: `${ok}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd` }],
  'a length that is not a number': [{ send: `${ok}Content-Length: 3x\r\n\r\nabc` }],
  'a folded line': [{ send: `${ok}X-A: 1\r\n folded\r\nContent-Length: 0\r\n\r\n` }],
  'a NUL in a header': [{ send: `${ok}X-A: a\0b\r\nContent-Length: 0\r\n\r\n` }],
  'a status below 100': [{ send: 'HTTP/1.1 042 Odd\r\nContent-Length: 0\r\n\r\n' }],
  'a head above the limit': [{ send: `${ok}X-A: ${'a'.repeat(100_000)}\r\nContent-Length: 0\r\n\r\n` }],
  'an unrequested protocol switch': [
    { send: 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n' },
  ],
}

for (const surface of surfaces) {
  for (const [name, script] of Object.entries(failures)) {
    test(`${surface.name}: ${name} is a 502 without a retry, and the next call gets its own reply`, async () => {
      pair.upstream.clear()
      const count = pair.upstream.requestCount
      pair.upstream.queue(script)
      const reply = await pair.exchange(pair.request(surface, { body: surface.jsonBody }))
      assertOwnError(reply, surface, 502)
      assert.equal(pair.upstream.requestCount - count, 1, 'a second request would be a second bill')
      await pair.assertServes(surface, name)
    })
  }
}

const rounds = 8
const body = noise(8_000_000)

async function startEarlyCloser() {
  const worker = new Worker(new URL('../support/early-closer.ts', import.meta.url))
  const port = await new Promise<number>((resolve) => worker.once('message', resolve))
  const url = `http://127.0.0.1:${port}`
  const gateway = await startGateway({
    messagesUrl: url,
    messagesKey: providerKeys.messages,
    chatUrl: `${url}/v1`,
    chatKey: providerKeys.chat,
  })
  const close = async () => {
    await gateway.close()
    await worker.terminate()
  }
  return { gateway, close }
}

test('a 413 that upstream sends during an upload, closing the rest, is delivered', async (t) => {
  const { gateway, close } = await startEarlyCloser()
  t.after(close)
  const delivered: string[] = []
  for (let round = 0; round < rounds; round++) {
    for (const surface of surfaces) {
      for (const target of [surface.readEndpoint, surface.streamedEndpoint]) {
        const lines = ['Host: h', ...surface.lines(gateway.apiKey)]
        const reply = await exchange(gateway, sized(`POST ${target} HTTP/1.1`, lines, body))
        delivered.push(`${target} ${reply.statusLine} ${reply.body.toString()} ${reply.ended}`)
      }
    }
  }
  const expected = /^\S+ HTTP\/1\.1 413 Payload Too Large {"error":"too large"} complete$/
  const lost = delivered.filter((one) => !expected.test(one))
  assert.deepEqual(lost, [], `${lost.length} of ${delivered.length} were lost`)
})

for (const surface of surfaces) {
  test(`${surface.name}: a reply before the end of its upload is delivered, and the connection stays usable`, async () => {
    const client = await connect(pair.gateway)
    pair.upstream.queue({ early: [{ send: sized('HTTP/1.1 200 OK', [], 'early') }] })
    const lines = ['Transfer-Encoding: chunked']
    const reading = client.read({ method: 'POST' })
    await client.send([pair.head(surface, { target: surface.streamedEndpoint, lines }), chunk('first')])
    assert.equal((await reading).body.toString(), 'early')
    await client.send([chunk('second'), lastChunk()])
    const next = await client.request(pair.request(surface, { body: surface.jsonBody }))
    assert.equal(next.body.toString(), '{}')
    client.leave()
  })

  test(`${surface.name}: our own refusal during a large upload is delivered, and the connection stays usable`, async () => {
    for (let round = 0; round < rounds; round++) {
      const client = await connect(pair.gateway)
      const lines = ['Host: h', ...surface.lines('svc_live_nobody'), 'X-Round: 1']
      const refused = await client.request(sized(`POST ${surface.readEndpoint} HTTP/1.1`, lines, body))
      assert.equal(refused.status, 401)
      const next = await client.request(pair.request(surface, { body: surface.jsonBody }))
      assert.equal(next.status, 200, 'the bytes after the refusal were read as the body of the request')
      client.leave()
    }
  })
}

const gateway = await startGateway({ chatUrl: `http://127.0.0.1:${await closedPort()}/v1` })
closeAfter(gateway)

const head = (key: string, length: number) =>
  `POST /v1/files HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${key}\r\nContent-Length: ${length}\r\n\r\n`

test('an upload to an unreachable upstream is answered, and nothing of it remains after the client leaves', async () => {
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
  // While upstream does not read, the client's timeout is paused.
  ['after upstream had to make room for it', 2_000_000],
] as const) {
  test(`an upload that stops ${size} is 408, and never complete for upstream`, () => stopAfter(sentBytes))
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
