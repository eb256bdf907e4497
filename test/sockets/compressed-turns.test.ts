import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SocketCompression } from '../../simulator/sockets/accept-socket.ts'
import { startSimulator } from '../../simulator/start-simulator.ts'
import { assertBooksBalance } from '../billing/bench-of-one.ts'
import { nanosOf } from '../limits/look-at-books.ts'
import { dig } from '../simulator/dig.ts'
import { isTerminal, openSocket } from '../simulator/socket-client.ts'
import { deflater } from './deflater.ts'
import { payloadOf, splitFrames, startRawBench } from './raw-bench.ts'
import { startTappedGateway } from './tapped-gateway.ts'
import { closeCodeOf, closeFrameOf, created, createFrame, delta, ended } from './turn-events.ts'
import { create, settledTurns } from './turns-bench.ts'
import { wireOf } from './wire-frames.ts'

const isCompressed = (frame: Buffer) => (frame.readUInt8(0) & 0x40) !== 0
const isText = (frame: Buffer) => (frame.readUInt8(0) & 0x0f) === 1

/** Upstream's compression, the client's options, and the agreed extension, which names the sides without context takeover. */
const agreements: readonly [string, SocketCompression, object, RegExp][] = [
  ['that both sides go on with', 'takeover', {}, /^permessage-deflate$/],
  [
    'that only upstream goes on with',
    'takeover',
    { clientNoContextTakeover: true },
    /^permessage-deflate; client_no_context_takeover$/,
  ],
  ['that neither side goes on with', 'no-takeover', {}, /server_no_context_takeover.*client_no_context/],
]

for (const [name, socketCompression, offer, agreed] of agreements) {
  test(`turns in a compression ${name} pass byte for byte, and are billed`, async (t) => {
    const simulator = await startSimulator({ socketCompression })
    t.after(() => simulator.close())
    await using tapped = await startTappedGateway(simulator)
    const { gateway } = tapped
    const { key } = await gateway.createKey('packed', { monthly_budget_usd: 5 })
    const socket = await openSocket(tapped.front, '/v1/responses', {
      headers: { authorization: `Bearer ${key}` },
      perMessageDeflate: { threshold: 0, ...offer },
    })
    assert.match(String(socket.headers['sec-websocket-extensions']), agreed)
    const ends: unknown[] = []
    // The last message is longer than the bytes that are inflated at once, also where it is packed.
    const noise = Array.from({ length: 4_000 }, (_, i) => ((i * 2_654_435_761) >>> 0).toString(36)).join(' ')
    for (const input of ['Tell me about tollgates.', 'Tell me about tollgates.', noise]) {
      socket.send(create({ input }))
      ends.push((await socket.takeUntil(isTerminal)).at(-1))
    }
    socket.ws.close()
    await socket.closed()
    const { fromClient, fromUpstream } = await tapped.takeSame()
    for (const bytes of [fromClient, fromUpstream]) {
      const messages = splitFrames(bytes).filter(isText)
      assert.ok(messages.length >= 3)
      assert.ok(messages.every(isCompressed), 'all of them were compressed')
    }
    const turns = await settledTurns(gateway, String(socket.headers['x-svc-request-id']), 3)
    for (const [i, turn] of turns.entries()) {
      assert.equal(dig(ends[i], 'type'), 'response.completed')
      assert.equal(turn['estimated'], false)
      assert.ok(nanosOf(turn['cost_usd']) > 0)
      assert.equal(
        dig(turn, 'usage.output_tokens'),
        dig(ends[i], 'response.usage.output_tokens'),
        JSON.stringify(turn),
      )
    }
    await assertBooksBalance(gateway)
  })
}

for (const way of ['a close frame', 'the end of its connection', 'a frame of a kind that there is not']) {
  test(`what upstream said last is read though ${way} comes with it and it is still to be inflated`, async () => {
    await using bench = await startRawBench()
    const agreed = 'permessage-deflate'
    const { id, client, upstream } = await bench.open({ offer: agreed, agree: agreed })
    const create = createFrame()
    await client.send(create)
    await upstream.receivedBytes(create.length)
    const deflate = deflater()
    const packed = async (frame: Buffer) =>
      wireOf('server', { opcode: 1, rsv: 4, payload: await deflate(payloadOf(frame)) })
    const said = [created('resp_1'), delta('z'.repeat(100_000)), ended('resp_1')]
    const frames: Buffer[] = []
    for (const frame of said) frames.push(await packed(frame))
    if (way === 'a close frame') frames.push(closeFrameOf(1000))
    const passed = Buffer.concat(frames).length
    if (way === 'a frame of a kind that there is not') frames.push(wireOf('server', { opcode: 3 }))
    upstream.socket.end(Buffer.concat(frames))
    await client.receivedBytes(passed)
    client.socket.destroy()
    const [turn = {}] = await bench.turns(id, 1)
    assert.deepEqual([nanosOf(turn['cost_usd']), turn['estimated']], [3_500_000, false])
  })
}

test('a message that is far longer than it came closes the socket with 1009, up to a megabyte it may be', async () => {
  await using bench = await startRawBench()
  const agreed = 'permessage-deflate; client_no_context_takeover'
  const { client, upstream } = await bench.open({ offer: agreed, agree: agreed })
  const packed = async (bytes: number) => {
    const input = 'x'.repeat(bytes)
    const payload = await deflater()(JSON.stringify({ type: 'response.create', model: 'gpt-4o', input }))
    assert.ok(payload.length * 300 < bytes)
    return wireOf('client', { opcode: 1, rsv: 4, payload })
  }
  const allowed = await packed(900_000)
  await client.send(allowed)
  await upstream.receivedBytes(allowed.length)
  await upstream.send(created('resp_1'), ended('resp_1'))
  await client.send(await packed(4_000_000))
  await client.until(() => closeCodeOf(client) !== null, 'a close frame')
  assert.equal(closeCodeOf(client), 1009)
  client.socket.destroy()
  await upstream.ended
  const messages = splitFrames(upstream.received).filter(isText)
  assert.equal(messages.length, 1, 'upstream has got the first alone')
})
