import assert from 'node:assert/strict'
import { withDeadline } from '../support/deadline.ts'
import { startPair } from '../support/pair.ts'
import { connect, type RawConnection } from '../support/raw-client.ts'
import { emptyReply } from '../support/scripted-upstream.ts'
import { closeAfter, test } from '../support/suite.ts'
import { surfaces } from '../support/surfaces.ts'
import { chunk, message, noise, sized } from '../support/wire-bytes.ts'
import { goldenStreams } from './golden-streams.ts'

const pair = await startPair()
closeAfter(pair)

const never = new Promise<void>(() => undefined)
const beforeTheDeadline = (event: Promise<void>) =>
  withDeadline(event, () => 'upstream still works for nobody')

const waysToLeave: Record<string, (client: RawConnection) => void> = {
  closing: (client) => client.leave(),
  'a reset': (client) => client.reset(),
  'half-closing': (client) => client.halfClose(),
}

for (const [way, leave] of Object.entries(waysToLeave)) {
  for (const stream of goldenStreams) {
    test(`${stream.name}: leaving by ${way} mid-stream cancels the upstream call`, async () => {
      const client = await connect(pair.gateway)
      const head = message('HTTP/1.1 200 OK', [
        'Content-Type: text/event-stream',
        'Transfer-Encoding: chunked',
      ])
      const some = stream.bytes.subarray(0, 700)
      pair.upstream.queue([{ send: head }, { send: chunk(some) }, { pause: never }, { send: chunk('more') }])
      // A response that upstream has stored is polled afterwards.
      const isStored = stream.endpoint === '/v1/responses'
      if (isStored) pair.upstream.queue([{ send: emptyReply }])
      const arrival = pair.upstream.nextRequest()
      const parts = { target: stream.endpoint, body: stream.body }
      const reading = client.request(pair.request(stream.surface, parts))
      reading.catch(() => undefined)
      await client.reached(some.length)
      const received = await arrival
      const question = isStored ? pair.upstream.nextRequest() : null
      leave(client)
      await beforeTheDeadline(received.whenPeerClosed)
      await received.whenAnswered
      assert.equal(received.peerClosedEarly, true)
      await question
      client.leave()
    })
  }

  for (const surface of surfaces) {
    test(`${surface.name}: leaving by ${way} before the reply cancels the upstream call`, async () => {
      const client = await connect(pair.gateway)
      pair.upstream.queue([{ pause: never }])
      const arrival = pair.upstream.nextRequest()
      client.request(pair.request(surface, { body: surface.jsonBody })).catch(() => undefined)
      const received = await arrival
      await received.whenComplete
      leave(client)
      await beforeTheDeadline(received.whenPeerClosed)
      client.leave()
    })

    test(`${surface.name}: leaving by ${way} during an upload never completes the request`, async () => {
      const body = noise(200_000)
      const whole = pair.request(surface, { target: surface.streamedEndpoint, body })
      const headSize = whole.length - body.length
      for (const at of [0, 1, 1_000, 65_536, 131_072, 199_999]) {
        const client = await connect(pair.gateway)
        const arrival = pair.upstream.nextRequest()
        await client.send(whole.subarray(0, headSize + at))
        const received = at === 0 ? undefined : await Promise.race([arrival, turns()])
        leave(client)
        await client.closed()
        if (received !== undefined) {
          await beforeTheDeadline(received.whenPeerClosed)
          await received.whenAnswered
        }
        client.leave()
      }
      await assertNothingWhole(surface.name)
    })

    test(`${surface.name}: leaving by ${way} while the body is buffered sends nothing upstream`, async () => {
      const arrived = () =>
        pair.upstream.requests.filter((request) => request.target === surface.readEndpoint).length
      const count = arrived()
      const whole = pair.request(surface, { body: surface.jsonBody })
      for (let at = 1; at < whole.length; at += 13) {
        const client = await connect(pair.gateway)
        await client.send(whole.subarray(0, at))
        leave(client)
        await client.closed()
        client.leave()
      }
      await pair.assertServes(surface, 'after')
      assert.equal(arrived() - count, 1, 'only the call that was whole')
    })
  }
}

/** Waits for pending work in this process, for cases in which nothing may arrive. */
async function turns(): Promise<undefined> {
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
  return undefined
}

async function assertNothingWhole(name: string): Promise<void> {
  const surface = surfaces.find((one) => one.name === name)
  assert.ok(surface)
  await pair.assertServes(surface, 'after')
  const uploads = pair.upstream.requests.filter((request) => request.target === surface.streamedEndpoint)
  assert.ok(uploads.every((request) => !request.complete))
  assert.deepEqual(pair.upstream.malformed, [])
}

test('a client that leaves right after the last byte has ended its call normally', async () => {
  for (const stream of goldenStreams) {
    const client = await connect(pair.gateway)
    pair.upstream.queue([
      { send: sized('HTTP/1.1 200 OK', ['Content-Type: text/event-stream'], stream.bytes) },
    ])
    const arrival = pair.upstream.nextRequest()
    const reply = await client.request(
      pair.request(stream.surface, { target: stream.endpoint, body: stream.body }),
    )
    client.reset()
    assert.equal(reply.ended, 'complete')
    const received = await arrival
    await received.whenAnswered
    assert.equal(received.peerClosedEarly, false)
  }
})
