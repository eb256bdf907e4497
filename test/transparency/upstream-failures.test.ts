import assert from 'node:assert/strict'
import { closedPort } from '../support/closed-port.ts'
import { startGateway } from '../support/gateway.ts'
import { assertOwnError } from '../support/own-error.ts'
import { startPair } from '../support/pair.ts'
import { exchange } from '../support/raw-client.ts'
import { after, test } from '../support/suite.ts'
import { providerKeys, surfaces } from '../support/surfaces.ts'
import type { Script } from '../support/upstream-script.ts'
import { message, sized } from '../support/wire-bytes.ts'

const pair = await startPair()
after(() => pair.close())

test('an upstream that cannot be reached is a 502 in the shape of the surface, each time', async (t) => {
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
  'a reset as soon as the head of the request is there': { early: [{ reset: true }] },
  'bytes that are not HTTP': [{ send: 'SSH-2.0-OpenSSH_9.2\r\n\r\n' }],
  'a length and chunks': [
    { send: `${ok}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n` },
  ],
  'two lengths': [{ send: `${ok}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd` }],
  'a length that is no number': [{ send: `${ok}Content-Length: 3x\r\n\r\nabc` }],
  'a folded line': [{ send: `${ok}X-A: 1\r\n folded\r\nContent-Length: 0\r\n\r\n` }],
  'a NUL in a header': [{ send: `${ok}X-A: a\0b\r\nContent-Length: 0\r\n\r\n` }],
  'a status below 100': [{ send: 'HTTP/1.1 042 Odd\r\nContent-Length: 0\r\n\r\n' }],
  'a head above the limit': [{ send: `${ok}X-A: ${'a'.repeat(100_000)}\r\nContent-Length: 0\r\n\r\n` }],
  'a switch of protocols that nobody asked for': [
    { send: 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n' },
  ],
}

for (const surface of surfaces) {
  for (const [name, script] of Object.entries(failures)) {
    test(`${surface.name}: ${name} is a 502, made once, and the next call gets its own answer`, async () => {
      pair.upstream.forget()
      const count = pair.upstream.requestCount
      pair.upstream.queue(script)
      const reply = await pair.exchange(pair.request(surface, { body: surface.jsonBody }))
      assertOwnError(reply, surface, 502)
      assert.equal(pair.upstream.requestCount - count, 1, 'a second call would be a second bill')
      await pair.assertServes(surface, name)
    })
  }
}
