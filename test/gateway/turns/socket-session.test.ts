import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import type { MeteredSocket, SocketMeter, Verdict } from '../../../src/gateway/turns/socket-meter.ts'
import { SocketSession } from '../../../src/gateway/turns/socket-session.ts'
import type { RawConnection, RawReceiver } from '../../../src/http/raw-connection.ts'
import { refuse } from '../../../src/kernel/errors.ts'
import { limits } from '../../../src/kernel/limits.ts'
import { type Borrowed, copyIfBorrowed, withBorrowed } from '../../../src/kernel/memory.ts'
import type { Extensions } from '../../../src/sockets/message-reader.ts'
import { opcodeOf, payloadOf, splitFrames } from '../../sockets/raw-bench.ts'
import { stopTime } from '../../sockets/stop-time.ts'
import { deflated, wireOf } from '../../sockets/wire-frames.ts'

/** One end of a socket; the test says how many bytes the kernel takes. */
class PretendConnection {
  readonly written: Buffer[] = []
  receiver: RawReceiver | null = null
  bytesWaiting = 0
  isClosed = false
  isPaused = false

  receive(receiver: RawReceiver): void {
    this.receiver = receiver
  }

  write(chunk: Borrowed): boolean {
    this.written.push(copyIfBorrowed(chunk))
    return this.bytesWaiting === 0
  }

  cork(): void {}
  uncork(): void {}

  pause(): void {
    this.isPaused = true
  }

  resume(): void {
    this.isPaused = false
  }

  end(): void {
    this.destroy()
  }

  destroy(): void {
    if (this.isClosed) return
    this.isClosed = true
    this.receiver?.closed()
  }

  arrives(bytes: Buffer): void {
    withBorrowed(bytes, (chunk) => this.receiver?.data(chunk))
  }
}

interface SessionOptions {
  readonly beginsByItself?: boolean
  readonly extensions?: Extensions | null
  readonly memoryBytesMax?: number
  end?(): Promise<void>
}

/** A session whose messages `judge` decides about, with so many turns under way. */
function openSession(
  judge: () => Verdict | Promise<Verdict> = () => ({ kind: 'pass' }),
  running = 0,
  {
    beginsByItself = true,
    extensions = null,
    memoryBytesMax = limits.socketMessageBytesMax,
    end = async () => {},
  }: SessionOptions = {},
) {
  const [client, upstream] = [new PretendConnection(), new PretendConnection()]
  const memory = { takenBytes: 0 }
  /** The pauses that the meter was told: whether upstream is not read, and whether the client's slowness is the reason. */
  const pauses: (readonly [isPaused: boolean, isSlow: boolean])[] = []
  let metered: MeteredSocket | null = null
  const meter: SocketMeter = {
    running,
    upstreamStartsTurns: beginsByItself,
    start(socket) {
      metered = socket
    },
    judge,
    observe() {},
    paused: (isPaused, isSlow) => pauses.push([isPaused, isSlow]),
    readOnMs: () => (running === 0 ? 0 : limits.readOnMs),
    end,
  }
  const failures: unknown[] = []
  const session = new SocketSession({
    client: client as unknown as RawConnection,
    upstream: upstream as unknown as RawConnection,
    extensions,
    meter,
    decode: (work) => work(),
    takeMemory(bytes) {
      if (memory.takenBytes + bytes > memoryBytesMax) return false
      memory.takenBytes += bytes
      return true
    },
    giveMemoryBack(bytes) {
      memory.takenBytes -= bytes
    },
    failed: (error) => failures.push(error),
    errorEvent: () => '{"type":"error"}',
  })
  session.start()
  return { session, client, upstream, memory, pauses, failures, metered: metered as MeteredSocket | null }
}

const text = (payload: string) => wireOf('client', { opcode: 1, payload })

test('a client that reads slowly is not cut, one that never catches up in its time is', () => {
  const { session, client } = openSession()
  const nearlyMs = limits.replyStallTimeoutMs - 1
  client.bytesWaiting = 1_000_000
  session.checkTime(0)
  for (let i = 1; i <= 5; i++) {
    client.receiver?.drained()
    session.checkTime(i * nearlyMs)
    assert.equal(client.isClosed, false)
  }
  session.checkTime(6 * nearlyMs)
  assert.equal(client.isClosed, false)
  session.checkTime(6 * nearlyMs + 1)
  assert.equal(client.isClosed, true)
})

test('upstream, which was not read because its client did not read, is read on when that leaves', (t) => {
  const pass = stopTime(t)
  const { client, upstream, metered } = openSession()
  client.bytesWaiting = 1
  upstream.arrives(wireOf('server', { opcode: 1, payload: '{}' }))
  assert.deepEqual([client.isPaused, upstream.isPaused], [true, true])
  client.destroy()
  assert.equal(upstream.isPaused, false)
  metered?.turnEnded()
  assert.deepEqual([upstream.isClosed, metered?.hasClientLeft()], [false, false])
  pass(limits.readOnMs)
  assert.equal(upstream.isClosed, true)
})

test('a client that does not read may say all it has to say where upstream begins nothing by itself', () => {
  const { client, upstream } = openSession(undefined, 0, { beginsByItself: false })
  client.bytesWaiting = 1
  upstream.arrives(wireOf('server', { opcode: 1, payload: '{}' }))
  assert.deepEqual([client.isPaused, upstream.isPaused], [false, true])
})

test('upstream is read on where a client that did not read says that it goes', (t) => {
  const pass = stopTime(t)
  const { client, upstream } = openSession(undefined, 0, { beginsByItself: false })
  client.bytesWaiting = 1
  upstream.arrives(wireOf('server', { opcode: 1, payload: '{}' }))
  client.arrives(wireOf('client', { opcode: 8, payload: '' }))
  assert.deepEqual([upstream.written, upstream.isPaused], [[], false])
  pass(limits.readOnMs)
  assert.equal(upstream.isClosed, true)
})

test('a client that does not read is told to go when its key is revoked, and upstream is read on', () => {
  const { session, client, upstream } = openSession(undefined, 1)
  client.bytesWaiting = 1
  upstream.arrives(wireOf('server', { opcode: 1, payload: '{}' }))
  session.revoked()
  assert.equal(client.isClosed, false)
  session.checkTime(0)
  assert.deepEqual([client.isClosed, upstream.isClosed, upstream.isPaused], [true, false, false])
})

test('a client that stops to read while upstream waits to be inflated is told of as well', () => {
  const deflate = { contextTakeover: false, windowBits: 15 }
  const { client, upstream, pauses } = openSession(undefined, 0, {
    extensions: { client: deflate, server: deflate },
  })
  const payload = randomBytes(limits.inflateAheadBytes)
  const arrives = () =>
    upstream.arrives(wireOf('server', { opcode: 2, rsv: 4, payload: deflated(payload.toString('base64')) }))
  arrives()
  client.bytesWaiting = 1
  arrives()
  client.receiver?.drained()
  assert.deepEqual(pauses, [
    [true, false],
    [true, true],
    [true, false],
  ])
})

test('a client that has nothing to read is never cut', () => {
  const { session, client, upstream } = openSession()
  for (const nowMs of [0, 2 * limits.replyStallTimeoutMs]) session.checkTime(nowMs)
  assert.equal(client.isClosed, false)
  upstream.destroy()
})

test('pings of upstream are answered in the place of a client that has left a turn', () => {
  const { client, upstream } = openSession(undefined, 1)
  client.destroy()
  assert.equal(upstream.isClosed, false, 'the turn is read on')
  upstream.arrives(wireOf('server', { opcode: 9, payload: 'still there?' }))
  const [pong = Buffer.alloc(1)] = upstream.written
  assert.equal(opcodeOf(pong), 10)
  assert.equal(splitFrames(pong).length, 1)
  assert.equal(pong.length, 2 + 4 + 'still there?'.length, 'masked')
  upstream.destroy()
})

test('a client that does not read why its turns are refused is not read before it does', () => {
  const about = { requestId: 'req_1', streamId: null }
  const { client, upstream } = openSession(() => ({
    kind: 'refused',
    refusal: refuse('bad_request', 'No.'),
    about,
  }))
  client.arrives(text('{}'))
  assert.equal(client.isPaused, false)
  client.bytesWaiting = 1
  client.arrives(text('{}'))
  assert.equal(client.isPaused, true)
  client.bytesWaiting = 0
  client.receiver?.drained()
  assert.equal(client.isPaused, false)
  assert.deepEqual(upstream.written, [])
  client.destroy()
})

test('why a turn is refused waits for the end of a message of upstream, and the client with it', () => {
  const about = { requestId: 'req_1', streamId: null }
  const { client, upstream } = openSession(() => ({
    kind: 'refused',
    refusal: refuse('bad_request', 'No.'),
    about,
  }))
  upstream.arrives(wireOf('server', { opcode: 1, fin: 0, payload: 'be' }))
  client.arrives(text('{}'))
  assert.equal(client.isPaused, true)
  upstream.arrives(wireOf('server', { opcode: 0, payload: 'gun' }))
  assert.deepEqual(client.written.map(opcodeOf), [1, 0, 1])
  assert.equal(client.isPaused, false)
  client.destroy()
})

test('behind a message that waits only some are read, then the client waits, and all go in their order', async () => {
  const { promise, resolve } = Promise.withResolvers<Verdict>()
  let judged = 0
  const { client, upstream } = openSession(() => {
    judged += 1
    return judged === 1 ? promise : { kind: 'pass' }
  })
  const frames = Array.from({ length: 10 * limits.socketAheadMessagesMax }, (_, i) => text(String(i)))
  for (const frame of frames.slice(0, limits.socketAheadMessagesMax)) client.arrives(frame)
  assert.equal(client.isPaused, false)
  client.arrives(Buffer.concat(frames.slice(limits.socketAheadMessagesMax)))
  assert.equal(client.isPaused, true)
  assert.deepEqual([judged, upstream.written], [1, []])
  resolve({ kind: 'pass' })
  await promise
  await new Promise((done) => setImmediate(done))
  assert.equal(client.isPaused, false)
  assert.deepEqual(Buffer.concat(upstream.written), Buffer.concat(frames))
  client.destroy()
})

test('memory for a message is given back as soon as it has gone', async () => {
  const { promise, resolve } = Promise.withResolvers<Verdict>()
  const { client, upstream, memory } = openSession(() => promise)
  const frame = text('x'.repeat(1_000_000))
  client.arrives(frame)
  assert.ok(memory.takenBytes >= frame.length, `${memory.takenBytes} are taken`)
  resolve({ kind: 'pass' })
  await promise
  await new Promise((done) => setImmediate(done))
  assert.deepEqual(Buffer.concat(upstream.written), frame)
  assert.equal(memory.takenBytes, 0)
  client.destroy()
})

test('a message for which there is no memory when it is inflated closes the socket with 1013, and is not judged', async () => {
  let judged = 0
  const deflate = { contextTakeover: false, windowBits: 15 }
  const { session, client, upstream, memory } = openSession(
    () => {
      judged += 1
      return { kind: 'pass' }
    },
    0,
    { extensions: { client: deflate, server: deflate }, memoryBytesMax: 256 * 1024 },
  )
  client.arrives(wireOf('client', { opcode: 1, rsv: 4, payload: deflated('x'.repeat(500_000)) }))
  await session.ended
  const [close = Buffer.alloc(4)] = client.written
  assert.deepEqual([opcodeOf(close), payloadOf(close).readUInt16BE(0)], [8, 1013])
  assert.equal(judged, 0)
  assert.ok(upstream.written.every((frame) => opcodeOf(frame) === 8))
  assert.equal(memory.takenBytes, 0)
})

test('a socket whose meter cannot end is over all the same, and that is told', async () => {
  const defect = new Error('the store refused it')
  const { session, client, failures } = openSession(undefined, 0, { end: () => Promise.reject(defect) })
  client.destroy()
  await session.ended
  assert.deepEqual(failures, [defect])
})
