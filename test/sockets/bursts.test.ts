import assert from 'node:assert/strict'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { RawReceiver } from '../../src/http/node-sockets.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { limits } from '../../src/kernel/limits.ts'
import { FRAMES_AT_ONCE } from '../../src/sockets/client-reader.ts'
import { SocketSession } from '../../src/sockets/socket-session.ts'
import { test } from '../support/suite.ts'
import { opcodeOf, splitFrames, startRawBench } from './raw-bench.ts'
import { closeCodeOf, createFrame, hasMessages } from './turn-events.ts'
import { wireOf } from './wire-frames.ts'

type Parts = ConstructorParameters<typeof SocketSession>[0]

function connection() {
  const written: Buffer[] = []
  const state = { isPaused: false, receiver: null as RawReceiver | null }
  const raw = {
    ...{ isClosed: false, bytesWaiting: 0, cork() {}, uncork() {}, end() {}, destroy() {} },
    receive(receiver: RawReceiver) {
      state.receiver = receiver
    },
    write: (bytes: Buffer) => written.push(bytes) > 0,
    pause() {
      state.isPaused = true
    },
    resume() {
      state.isPaused = false
    },
  }
  return { raw, written, state }
}

const FRAMES = 1_000
/** A piece may have some frames more, and each wait here sees at most two turns of the socket. */
const AT_ONCE_MAX = 2 * (FRAMES_AT_ONCE + 50)

const passes = async () => ({ kind: 'pass' })
const BURSTS = [
  ['pings', { opcode: 9, payload: '' }, null],
  ['messages of an unmetered socket', { opcode: 1, payload: '1' }, null],
  [
    'messages of a metered socket',
    { opcode: 1, payload: '1' },
    { gate: { check: passes }, turns: { start() {}, paused() {}, upstreamBegins: false } },
  ],
] as const

for (const [name, frame, metered] of BURSTS) {
  test(`a burst of ${name} lets other sockets have their turn every few frames, and arrives whole`, async () => {
    const [client, upstream] = [connection(), connection()]
    const memory = { bytes: 0, tryReserve: () => true, release() {} }
    const own = { clock: systemClock, failed() {}, errorEvent: () => '' }
    const parts = { client: client.raw, upstream: upstream.raw, metered, memory, ...own }
    new SocketSession(parts as unknown as Parts).start()
    const frames = Array.from({ length: FRAMES }, () => wireOf('client', frame))
    const count = () => splitFrames(Buffer.concat(upstream.written)).length
    client.state.receiver?.data(Buffer.concat(frames))
    for (let before = 0; before < FRAMES; before = count()) {
      if (before > 0) assert.equal(client.state.isPaused, true)
      await nextTurn()
      const passed = count() - before
      assert.ok(passed > 0 && passed <= AT_ONCE_MAX, `${passed} frames at once`)
    }
    assert.deepEqual(Buffer.concat(upstream.written), Buffer.concat(frames))
    await nextTurn()
    assert.equal(client.state.isPaused, false)
  })
}

test('a client whose messages are all refused is disconnected after a bounded number', async () => {
  await using bench = await startRawBench()
  const { client, upstream } = await bench.open()
  const refused = wireOf('client', { opcode: 1, payload: 'a' })
  await client.send(...Array(limits.refusedInRowMax - 1).fill(refused), createFrame())
  await hasMessages(upstream, 1)
  await client.send(...Array(10 * limits.refusedInRowMax).fill(refused))
  await client.until(() => closeCodeOf(client) !== null, 'a close')
  assert.equal(closeCodeOf(client), 1008)
  const errors = splitFrames(client.received).filter((each) => opcodeOf(each) === 1)
  assert.equal(errors.length, 2 * limits.refusedInRowMax - 1)
  client.socket.destroy()
})
