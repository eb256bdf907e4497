import assert from 'node:assert/strict'
import { ByteBudget } from '../../src/calls/key-shares.ts'
import type { Exchange } from '../../src/http/exchange.ts'
import type { BodyReceiver } from '../../src/http/incoming-request.ts'
import { readBuffer } from '../../src/http/node-sockets.ts'
import { HeldBody, receiveBody } from '../../src/http-calls/read.ts'
import { ReadingPace } from '../../src/metering/reading-pace.ts'
import { test } from '../support/suite.ts'

const MiB = 1024 * 1024
const KEY = { name: 'k', smallName: 'k small' }

test('a small waiting body keeps its own bytes, and little more memory than they take', () => {
  const held = new HeldBody(new ByteBudget(1_000), KEY)
  readBuffer.fill(7, 0, 300)
  assert.ok(held.append(readBuffer.subarray(0, 300)))
  readBuffer.fill(0, 0, 300)
  const [piece] = held.pieces()
  assert.deepEqual(piece, Buffer.alloc(300, 7))
  assert.equal(piece?.buffer.byteLength, 1024)
  held[Symbol.dispose]()
})

test('one key gets half of the free memory, and a body up to 1 MiB always fits', () => {
  const memory = new ByteBudget(16 * MiB)
  const piece = Buffer.alloc(MiB)
  const bodies: HeldBody[] = []
  /** The 1 MiB that one more body of the key may take. */
  function fill(keyName: string): number {
    const body = new HeldBody(memory, { name: keyName, smallName: `${keyName} small` })
    bodies.push(body)
    while (body.append(piece));
    return body.length / MiB
  }
  assert.deepEqual([fill('a'), fill('b'), fill('c')], [8, 4, 2])
  // No memory is left for a second body of these keys, except a small one.
  assert.deepEqual([fill('a'), fill('b'), fill('d')], [1, 1, 1])
  assert.equal(memory.reservedBytes, 17 * MiB)
  for (const body of bodies) {
    body[Symbol.dispose]()
    body[Symbol.dispose]()
  }
  assert.equal(memory.reservedBytes, 0)
  assert.equal(fill('a'), 8)
})

test('a body is delivered in the chunks in which it arrived', () => {
  const held = new HeldBody(new ByteBudget(MiB), KEY)
  for (const text of ['one,', ' two', ' three']) held.append(Buffer.from(text))
  assert.equal(String(Buffer.concat(held.pieces())), 'one, two three')
  held[Symbol.dispose]()
})

function receive(memory: ByteBudget, observer: { write(chunk: Buffer): null } | null, pace: ReadingPace) {
  const sinks: BodyReceiver[] = []
  const resumed = Promise.withResolvers<void>()
  const nothing = () => undefined
  const receive = (sink: BodyReceiver) => sinks.push(sink)
  const req = { receive, release: nothing, pause: nothing, resume: resumed.resolve }
  const received = receiveBody(
    { req, res: { isOver: false } } as unknown as Exchange,
    { memory, times: { idleTimeoutMs: 60_000, bytesPerSecondMin: 1_000 } },
    { ...KEY, calls: 0, decoding: Promise.resolve(), pace },
    observer,
    async () => ({ refusal: null, balanceNanos: null }),
  )
  return { sink: sinks[0] as BodyReceiver, received, resumed: resumed.promise }
}

test('while its key pauses, a body is buffered, and read later', async () => {
  const pace = new ReadingPace()
  const read: string[] = []
  const write = (chunk: Buffer) => {
    read.push(chunk.toString())
    return null
  }
  const { sink, received, resumed } = receive(new ByteBudget(MiB), { write }, pace)
  assert.equal(sink.data(Buffer.from('one')), true)
  const untilMs = performance.now() + 10
  pace.read(() => {
    while (performance.now() < untilMs);
  })
  const chunk = Buffer.from('two')
  assert.equal(sink.data(chunk), false)
  chunk.fill(0)
  assert.deepEqual(read, ['one'])
  await resumed
  assert.deepEqual(read, ['one', 'two'])
  sink.end()
  assert.equal((await received).kind, 'received')
})

test('a body without memory is refused with a retry, and none of its bytes is kept', async () => {
  const memory = new ByteBudget(100_000)
  const { sink, received } = receive(memory, null, new ReadingPace())
  for (let i = 0; i < 17; i++) sink.data(Buffer.alloc(64 * 1024))
  const answer = await received
  assert.equal(answer.kind === 'refused' && answer.refusal.code, 'no_memory')
  assert.equal(memory.reservedBytes, 0)
})
