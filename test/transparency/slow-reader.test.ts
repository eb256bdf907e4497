import assert from 'node:assert/strict'
import { startPair } from '../support/pair.ts'
import { connect } from '../support/raw-client.ts'
import { closeAfter, test } from '../support/suite.ts'
import { surfaceOf, surfaces } from '../support/surfaces.ts'
import type { ReceivedRequest } from '../support/upstream-script.ts'
import { chunked, noise, sized } from '../support/wire-bytes.ts'

const pair = await startPair()
closeAfter(pair)

const MiB = 1024 * 1024
const size = 40 * MiB
/** Four kernel buffers on the path, 8 MiB measured. Without back-pressure all bytes would be accepted. */
const acceptedBytesMax = 32 * MiB

/** Upstream is stalled if no byte was accepted for 300 ms; a wrong guess only weakens the test. */
async function untilStalled(request: ReceivedRequest): Promise<number> {
  for (let tries = 0, before = -1; tries < 200; tries++) {
    if (request.sentBytes === before && before > 0) return before
    before = request.sentBytes
    await new Promise((resolve) => setTimeout(resolve, 300))
  }
  assert.fail('upstream never came to a stop')
}

const content = noise(size)
const lines = ['Content-Type: text/event-stream']
const replies = {
  chunked: () => chunked('HTTP/1.1 200 OK', lines, [content.subarray(0, MiB), content.subarray(MiB)]),
  sized: () => sized('HTTP/1.1 200 OK', lines, content),
}

for (const [at, [framing, reply]] of Object.entries(replies).entries()) {
  for (const surface of surfaces.slice(at, at + 1)) {
    test(`${surface.name}: a client that stops reading stops upstream, and gets every ${framing} byte when it resumes`, async () => {
      const client = await connect(pair.gateway)
      pair.upstream.queue([{ send: reply() }])
      const arrival = pair.upstream.nextRequest()
      const reading = client.request(pair.request(surface, { body: surface.streamingBody }), {
        deadlineMs: 120_000,
      })
      await client.reached(1)
      client.pause()
      const stalledAt = await untilStalled(await arrival)
      assert.ok(
        stalledAt < acceptedBytesMax,
        `${stalledAt} bytes were read from upstream although no client reads`,
      )
      client.resume()
      const got = await reading
      assert.equal(got.ended, 'complete')
      assert.ok(got.body.equals(content))
      client.leave()
    })
  }
}

test('a client that stops reading and then leaves cancels the upstream call', async () => {
  const [surface] = surfaces
  assert.ok(surface)
  const client = await connect(pair.gateway)
  pair.upstream.queue([{ send: replies.chunked() }])
  const arrival = pair.upstream.nextRequest()
  client.request(pair.request(surface, { body: surface.streamingBody })).catch(() => undefined)
  await client.reached(1)
  client.pause()
  const received = await arrival
  await untilStalled(received)
  client.leave()
  await received.whenAnswered
  assert.equal(received.peerClosedEarly, true)
})

test('a pipelined request goes upstream after the previous reply has left, and its reply is complete', async () => {
  const surface = surfaceOf('chat')
  const release = Promise.withResolvers<void>()
  const call = pair.request(surface, { body: surface.streamingBody })
  const client = await connect(pair.gateway)
  pair.upstream.queue([{ pause: release.promise }, { send: sized('HTTP/1.1 200 OK', [], 'first') }])
  pair.upstream.queue([{ send: replies.chunked() }])
  const before = pair.upstream.requests.length
  const first = pair.upstream.nextRequest()
  await client.send(Buffer.concat([call, call]))
  await first
  const second = pair.upstream.nextRequest()
  assert.equal(pair.upstream.requests.length, before + 1)
  release.resolve()
  assert.equal((await client.read({ method: 'POST' })).body.toString(), 'first')
  await second
  const reply = await client.read({ method: 'POST', deadlineMs: 120_000 })
  assert.ok(reply.body.equals(content))
  client.leave()
})

test('a slow reader gets its own reply while other replies reuse the shared memory', async () => {
  const [surface] = surfaces
  assert.ok(surface)
  const json = ['Content-Type: application/json']
  const ask = { body: surface.jsonBody }
  const own = noise(20 * MiB, 2)
  const slow = await connect(pair.gateway)
  pair.upstream.queue([{ send: sized('HTTP/1.1 200 OK', json, own) }])
  const reading = slow.request(pair.request(surface, ask), { deadlineMs: 120_000 })
  // From now on the whole reply waits in the gateway, which buffered it.
  await slow.reached(1)
  slow.pause()
  const other = await connect(pair.gateway)
  for (let i = 0; i < 5; i++) {
    pair.upstream.queue([{ send: sized('HTTP/1.1 200 OK', json, Buffer.alloc(3 * MiB, i)) }])
    const got = await other.request(pair.request(surface, ask))
    assert.ok(got.body.equals(Buffer.alloc(3 * MiB, i)))
  }
  slow.resume()
  const got = await reading
  assert.equal(got.ended, 'complete')
  assert.ok(got.body.equals(own))
  slow.leave()
  other.leave()
})
