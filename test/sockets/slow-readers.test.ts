import assert from 'node:assert/strict'
import type net from 'node:net'
import { systemClock } from '../../src/kernel/clock.ts'
import { limits } from '../../src/kernel/limits.ts'
import { test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { noise } from '../support/wire-bytes.ts'
import { usageOf } from './played-upstream.ts'
import { startRawBench } from './raw-bench.ts'
import { stopTime } from './stop-time.ts'
import { created, createFrame, ended, eventFrame } from './turn-events.ts'
import { wireOf } from './wire-frames.ts'

const MiB = 1024 * 1024
/** There are four kernel buffers on the path. Without back-pressure all bytes would be accepted. */
const TAKEN_BYTES_MAX = 32 * MiB

/** A writer is stalled if no byte was accepted for 300 ms; a wrong guess only weakens the test. */
async function untilStalled(socket: net.Socket): Promise<number> {
  const taken = () => socket.bytesWritten - socket.writableLength
  for (let tries = 0, before = -1; tries < 200; tries++) {
    if (taken() === before && before > 0) return before
    before = taken()
    await new Promise((resolve) => setTimeout(resolve, 300))
  }
  assert.fail('it never came to a stop')
}

/** Resumes a paused socket, which must then receive these bytes. */
async function assertResumes(socket: net.Socket, bytes: Buffer): Promise<void> {
  const chunks: Buffer[] = []
  socket.removeAllListeners('data')
  const { promise, resolve } = Promise.withResolvers<void>()
  let got = 0
  socket.on('data', (chunk) => {
    chunks.push(chunk)
    got += chunk.length
    if (got >= bytes.length) resolve()
  })
  socket.resume()
  await promise
  assert.ok(Buffer.concat(chunks).equals(bytes))
}

/** The message that begins a response, and its first and last event. */
const turns: Record<
  string,
  { readonly target: string; readonly create: Buffer; first: Buffer; last: Buffer }
> = {
  '/v1/responses': {
    target: '/v1/responses',
    create: createFrame(),
    first: created('resp_1'),
    last: ended('resp_1'),
  },
  '/v1/realtime': {
    target: '/v1/realtime?model=gpt-realtime',
    create: wireOf('client', { opcode: 1, payload: '{"type":"response.create"}' }),
    first: eventFrame({ type: 'response.created', response: { id: 'resp_1' } }),
    last: eventFrame({
      type: 'response.done',
      response: { id: 'resp_1', status: 'completed', usage: usageOf(10, 20) },
    }),
  },
}

for (const [name, { target, create, first, last }] of Object.entries(turns)) {
  test(`a client of ${name} that stops reading stops upstream, and gets every byte when it resumes`, async () => {
    await using bench = await startRawBench()
    const { id, client, upstream } = await bench.open({ target })
    await client.send(create)
    await upstream.receivedBytes(create.length)
    const message = eventFrame({ type: 'response.x', response_id: 'resp_1', delta: 'z'.repeat(MiB) })
    const bytes = Buffer.concat([first, ...Array.from({ length: 40 }, () => message), last])
    client.socket.pause()
    upstream.socket.write(bytes)
    const taken = await untilStalled(upstream.socket)
    assert.ok(taken < TAKEN_BYTES_MAX, `${taken} bytes were read from upstream although no client reads`)
    await assertResumes(client.socket, bytes)
    await until('it is billed by its usage', async () => {
      const { data } = (await bench.gateway.manage('GET', `/gateway/v1/requests?socket=${id}`)) as {
        data: Record<string, unknown>[]
      }
      const turn = data.find(({ method, state }) => method === 'WS' && state === 'settled')
      return turn?.['estimated'] === false
    })
  })
}

test('an upstream that stops reading stops the client, and gets every byte when it resumes', async () => {
  await using bench = await startRawBench()
  const { client, upstream } = await bench.open()
  const message = createFrame({ input: noise(MiB).toString('base64') })
  const bytes = Buffer.concat(Array.from({ length: 40 }, () => message))
  upstream.socket.pause()
  client.socket.write(bytes)
  const taken = await untilStalled(client.socket)
  assert.ok(
    taken < TAKEN_BYTES_MAX,
    `${taken} bytes were read from the client although upstream does not read`,
  )
  await assertResumes(upstream.socket, bytes)
})

test('pings are subject to back-pressure as well', async () => {
  await using bench = await startRawBench()
  const { client, upstream } = await bench.open()
  const ping = wireOf('client', { opcode: 9, payload: Buffer.alloc(125, 1) })
  upstream.socket.pause()
  client.socket.write(Buffer.concat(Array.from({ length: Math.ceil((40 * MiB) / ping.length) }, () => ping)))
  const taken = await untilStalled(client.socket)
  assert.ok(taken < TAKEN_BYTES_MAX, `${taken} bytes of pings were read`)
})

test('a client that stops reading is cut after the time limit, and its turn is settled', async (t) => {
  const clock = hurriedClock()
  await using bench = await startRawBench({ clock })
  const { id, client, upstream } = await bench.open()
  const create = createFrame()
  await client.send(create)
  await upstream.receivedBytes(create.length)
  client.socket.pause()
  upstream.socket.write(created('resp_1'))
  upstream.socket.write(wireOf('server', { opcode: 1, payload: JSON.stringify({ y: 'z'.repeat(48 * MiB) }) }))
  // Ten minutes pass in half a second. Other waits, such as ours for the record, need the normal clock.
  const pass = stopTime(t)
  clock.hurry(1_200)
  await pass.over(limits.readOnMs)
  await upstream.ended
  clock.hurry(1)
  const [turn = {}] = await bench.turns(id, 1)
  assert.equal(turn['state'], 'settled')
  assert.equal(turn['estimated'], true)
})

function hurriedClock() {
  let [seenMs, clockMs, times] = [systemClock.monotonicMs(), systemClock.monotonicMs(), 1]
  const monotonicMs = () => {
    const nowMs = systemClock.monotonicMs()
    clockMs += (nowMs - seenMs) * times
    seenMs = nowMs
    return clockMs
  }
  const hurry = (by: number) => {
    monotonicMs()
    times = by
  }
  return { ...systemClock, monotonicMs, hurry }
}
