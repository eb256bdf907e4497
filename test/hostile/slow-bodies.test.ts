import assert from 'node:assert/strict'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { limits } from '../../src/kernel/limits.ts'
import { mintKey } from '../../src/keys/key-format.ts'
import { nextTurn } from '../support/deadline.ts'
import { startGateway } from '../support/gateway.ts'
import { assertOwnError } from '../support/own-error.ts'
import { connect, type RawConnection, type RawReply } from '../support/raw-client.ts'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { closeAfter, test } from '../support/suite.ts'
import { type Surface, surfaces } from '../support/surfaces.ts'
import { message, sized } from '../support/wire-bytes.ts'

/** Time that passes for the gateway without a wait in the test, so that bodies are late. */
let skippedMs = 0
const clock = { nowMs: () => Date.now(), monotonicMs: () => performance.now() + skippedMs }

const upstream = await ScriptedUpstream.start()
const gateway = await startGateway({ ...upstream.urls, clock })
closeAfter(gateway, upstream)

const call = (surface: Surface, key: string, target = surface.readEndpoint) =>
  sized(`POST ${target} HTTP/1.1`, ['Host: h', ...surface.lines(key)], surface.jsonBody)

function unfinished(surface: Surface, key: string): Readonly<Record<string, Buffer>> {
  const line = `POST ${surface.readEndpoint} HTTP/1.1`
  const lines = ['Host: h', ...surface.lines(key)]
  const form = [...lines, 'Content-Type: multipart/form-data; boundary=b', 'Content-Length: 500']
  return {
    'a head alone': message(line, [...lines, 'Content-Length: 500']),
    'one byte': message(line, [...lines, 'Content-Length: 500'], '{'),
    'all but one byte': call(surface, key).subarray(0, -1),
    'a part of a form': message(line, form, '--b\r\nContent-Disposition: form-data; name="model"\r\n\r\ngp'),
    'half a chunk': message(line, [...lines, 'Transfer-Encoding: chunked'], '10\r\n{"model"'),
    'chunks without an end': message(line, [...lines, 'Transfer-Encoding: chunked'], '2\r\n{}\r\n'),
    'an expectation': message(line, [...lines, 'Expect: 100-continue', 'Content-Length: 500']),
  }
}

for (const surface of surfaces) {
  test(`${surface.name}: without a usable key, slow sending does not keep a connection open`, async () => {
    const revoked = await gateway.createKey('revoked')
    await gateway.revokeKey(revoked.id)
    const before = upstream.requestCount
    const keys = [mintKey('svc', 'live').reveal(), revoked.key, gateway.adminKey]
    const openings = keys.flatMap((key) => Object.entries(unfinished(surface, key)))
    // The requests come at once, as from an attacker that wants all connections.
    await Promise.all(
      [...openings, ...openings, ...openings].map(async ([what, bytes]) => {
        const client = await connect(gateway)
        const reply = await client.request(bytes)
        assertOwnError(reply, surface, 401, 'invalid_api_key')
        await client.closed()
        client.leave()
        assert.ok(reply.interim.length === 0, what)
      }),
    )
    assert.equal(upstream.requestCount, before)
  })
}

/** Sends a byte each time just before the idle timeout, until there is a reply. */
async function trickle(
  client: RawConnection,
  head: Buffer,
  byteOf: (i: number) => string,
): Promise<RawReply> {
  let reply: RawReply | null = null
  const read = client.read({ method: 'POST' }).then((came) => {
    reply = came
    return came
  })
  await client.send(head)
  for (let i = 0; reply === null && i < 1_000; i++) {
    skippedMs += limits.bodyIdleTimeoutMs - 1
    await client.send(byteOf(i))
    await nextTurn()
  }
  return await read
}

const trickled: readonly [what: string, target: string, key: () => string, chunked: boolean][] = [
  ['that is buffered', '/v1/chat/completions', () => gateway.apiKey, false],
  ['that is buffered, in chunks', '/v1/chat/completions', () => gateway.apiKey, true],
  ['that is streamed', '/v1/files', () => gateway.apiKey, false],
  ['of our own endpoints', '/v1/keys', () => gateway.adminKey, false],
]
for (const [what, target, key, isChunked] of trickled) {
  test(`a body ${what}, sent byte by byte, is refused, and the connection closes`, async () => {
    const framing = isChunked ? 'Transfer-Encoding: chunked' : 'Content-Length: 60000'
    const lines = ['Host: h', `Authorization: Bearer ${key()}`, framing]
    const client = await connect(gateway)
    const head = message(`POST ${target} HTTP/1.1`, lines)
    const reply = await trickle(client, head, () => (isChunked ? '1\r\n \r\n' : ' '))
    assert.equal(reply.status, 408, reply.body.toString())
    assert.match(reply.body.toString(), /too slowly/)
    await client.closed()
    client.leave()
  })
}

test('a slow upstream does not count as a slow client upload', async () => {
  const arrived = Promise.withResolvers<IncomingMessage>()
  const slow = createServer((req, res) => {
    arrived.resolve(req.on('end', () => res.end('{}')))
  })
  await new Promise<void>((resolve) => slow.listen(0, '127.0.0.1', resolve))
  const chatUrl = `http://127.0.0.1:${(slow.address() as AddressInfo).port}/v1`
  const before = await startGateway({ chatUrl, clock })
  const size = 20_000_000
  const lines = ['Host: h', `Authorization: Bearer ${before.apiKey}`, `Content-Length: ${size}`]
  const client = await connect(before)
  const reply = client.request(message('POST /v1/files HTTP/1.1', lines, Buffer.alloc(size)))
  const request = await arrived.promise
  for (let i = 0; i < 100; i++) {
    skippedMs += limits.bodyIdleTimeoutMs - 1
    await nextTurn()
  }
  request.resume()
  assert.equal((await reply).status, 200)
  client.leave()
  await before.close()
  slow.closeAllConnections()
  slow.close()
})
