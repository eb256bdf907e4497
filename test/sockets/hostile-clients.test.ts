import assert from 'node:assert/strict'
import { assertBalanced } from '../billing/bench-of-one.ts'
import { after, afterEach, test } from '../support/suite.ts'
import { message, sized } from '../support/wire-bytes.ts'
import { agreement, handshake, opcodeOf, splitFrames, startRawBench } from './raw-bench.ts'
import { closeCodeOf, createFrame, delta, hasMessages } from './turn-events.ts'
import { wireOf } from './wire-frames.ts'

const bench = await startRawBench()
after(() => bench[Symbol.asyncDispose]())
afterEach(() => assertBalanced(bench.gateway))

const MiB = 1024 * 1024
const auth = () => `Authorization: Bearer ${bench.gateway.apiKey}`
const dataIn = (bytes: Buffer) => splitFrames(bytes).filter((frame) => opcodeOf(frame) < 8)

test('a message above 64 MiB closes the socket with 1009, and none of it reaches upstream', async () => {
  const { client, upstream } = await bench.open()
  const chunk = Buffer.alloc(MiB, 0x20)
  await client.send(
    wireOf('client', {
      opcode: 1,
      payload: '',
      length: BigInt(65 * MiB),
      lengthBits: 64,
      key: Buffer.alloc(4),
    }),
  )
  for (let sent = 0; sent < 65 && closeCodeOf(client) === null; sent++) {
    if (!client.socket.writable) break
    await client.send(chunk)
  }
  await client.until(() => closeCodeOf(client) !== null, 'a close frame')
  assert.equal(closeCodeOf(client), 1009)
  client.socket.destroy()
  await upstream.ended
  assert.deepEqual(dataIn(upstream.received), [])
})

test('a client that leaves right after beginning a turn leaves nothing held, at any stage', async () => {
  const left: Promise<unknown>[] = []
  for (let i = 0; i < 24; i++) {
    const { client, upstream } = await bench.open()
    client.socket.write(createFrame({ input: `left ${i}` }))
    for (let turn = 0; turn < i % 8; turn++) await new Promise((resolve) => setImmediate(resolve))
    if (i % 3 === 0) client.reset()
    else if (i % 3 === 1) client.socket.end()
    else client.socket.end(wireOf('client', { opcode: 8, payload: '' }))
    left.push(upstream.ended.then(() => client.socket.destroy()))
  }
  await Promise.all(left)
})

test('a handshake pipelined after another request is served separately', async () => {
  const client = await bench.connect()
  const plain = message('GET /v1/models HTTP/1.1', ['Host: gateway', auth()])
  await client.send(Buffer.concat([plain, handshake([auth()]), createFrame()]))
  const first = await bench.accepted()
  assert.match((await first.head())[0] ?? '', /\/v1\/models/)
  await first.send(
    sized('HTTP/1.1 200 OK', ['Connection: close', 'Content-Type: application/json'], '{"mark":1}'),
  )
  first.socket.end()
  const second = await bench.accepted()
  assert.match((await second.head())[0] ?? '', /\/v1\/responses/)
  await second.send(Buffer.concat([agreement(), delta('Hi.')]))
  await client.until(() => client.received.includes('Hi.'), 'the first frame')
  const text = client.received.toString('latin1')
  assert.ok(text.indexOf('{"mark":1}') < text.indexOf('HTTP/1.1 101'))
  await second.receivedBytes(createFrame().length)
  assert.deepEqual(second.received, createFrame())
  client.socket.destroy()
})

test('turns and their socket count towards the key’s calls in flight', async () => {
  await using few = await startRawBench({ settings: { callsInFlightPerKeyMax: 3 } })
  const { client, upstream } = await few.open()
  for (const lane of ['a', 'b', 'c']) await client.send(createFrame({ stream_id: lane }))
  await client.until(() => client.received.includes('too_many_calls'), 'a refusal')
  await hasMessages(upstream, 2)
  assert.equal(dataIn(upstream.received).length, 2)
  client.socket.destroy()
  upstream.socket.destroy()
})
