import assert from 'node:assert/strict'
import { systemClock } from '../../src/kernel/clock.ts'
import { limits } from '../../src/kernel/limits.ts'
import { SILENT_LANE_MS } from '../../src/sockets/lanes.ts'
import { SOCKET_KEY_POLL_MS } from '../../src/sockets/open-sockets.ts'
import { dig, digList } from '../simulator/dig.ts'
import { test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { opcodeOf, payloadOf, type RawSocket, splitFrames, startRawBench } from './raw-bench.ts'
import { stopTime } from './stop-time.ts'
import { closeCodeOf, created, createFrame, ended, eventFrame, hasMessages } from './turn-events.ts'

const UNKNOWN_TYPE = eventFrame({ type: 'error', error: { code: 'unknown_type', message: 'No such type.' } })

async function startBench() {
  let aheadMs = 0
  const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs }
  const bench = await startRawBench({ clock })
  const pass = (ms: number) => {
    aheadMs += ms
  }
  return Object.assign(bench, { pass })
}

test('a turn that upstream never begins keeps a revoked key’s socket open only for SILENT_LANE_MS', async (t) => {
  // The poll of revoked keys must not come between the revocation and the refusal.
  const time = stopTime(t, 'sockets/open-sockets')
  await using bench = await startBench()
  const { id, key } = await bench.gateway.createKey('revoked')
  const { id: socketId, client, upstream } = await bench.open({ key })
  await client.send(createFrame())
  await hasMessages(upstream, 1)
  await bench.gateway.revokeKey(id)
  await client.send(createFrame())
  await hasMessages(client, 1)
  assert.equal(closeCodeOf(client), null)
  bench.pass(SILENT_LANE_MS)
  await time.over(SOCKET_KEY_POLL_MS)
  await client.until(() => closeCodeOf(client) === 1008, 'a close')
  client.socket.destroy()
  await upstream.ended
  await bench.turns(socketId, 1)
})

test('reasoning before a client leaves is charged, even after another message’s error', async () => {
  await using bench = await startBench()
  const { id, client, upstream } = await bench.open()
  await client.send(createFrame({ model: 'gpt-6-luna' }))
  await hasMessages(upstream, 1)
  await upstream.send(created('resp_1'))
  await hasMessages(client, 1)
  bench.pass(60_000)
  await client.send(createFrame({ type: 'no.such.type' }))
  await hasMessages(upstream, 2)
  await upstream.send(UNKNOWN_TYPE)
  await hasMessages(client, 2)
  client.socket.destroy()
  await upstream.ended
  const [turn] = await bench.turns(id, 1)
  assert.equal(turn?.['state'], 'settled')
  assert.equal(dig(turn, 'usage.output_tokens'), 500, 'the stated limit')
})

test('a response that an error seemed to end is billed if upstream ends it after all, once', async () => {
  await using bench = await startBench()
  const { id, client, upstream } = await bench.open()
  await client.send(createFrame(), createFrame({ type: 'no.such.type' }))
  await hasMessages(upstream, 2)
  await upstream.send(created('resp_1'), UNKNOWN_TYPE)
  await hasMessages(client, 2)
  // The clock runs on by itself, too.
  bench.pass(SILENT_LANE_MS / 2)
  assert.equal(await openTurns(bench, id), 1)
  bench.pass(SILENT_LANE_MS / 2)
  await until('it is silent', async () => (await openTurns(bench, id)) === 0)
  await upstream.send(ended('resp_1'), ended('resp_1'))
  const turns = await bench.turns(id, 2)
  assert.deepEqual(
    turns.map(({ cost_usd, estimated }) => [cost_usd, estimated]),
    [
      [0, false],
      [0.0035, false],
    ],
  )
  assert.equal(closeCodeOf(client), null)
})

test('a turn that upstream refuses without naming it costs nothing, once its lane was silent', async () => {
  await using bench = await startBench()
  const { id, client, upstream } = await bench.open()
  await client.send(createFrame())
  await hasMessages(upstream, 1)
  await upstream.send(UNKNOWN_TYPE)
  await hasMessages(client, 1)
  bench.pass(SILENT_LANE_MS)
  const [turn] = await bench.turns(id, 1)
  assert.deepEqual([turn?.['cost_usd'], turn?.['status']], [0, 400])
})

test('a response that was billed by an estimate is not billed again', async () => {
  await using bench = await startBench()
  const { id, client, upstream } = await bench.open()
  for (let i = 0; i < 2; i++) await client.send(createFrame())
  await hasMessages(upstream, 2)
  await upstream.send(created('resp_1'), created('resp_2'), ended('resp_2'))
  await hasMessages(client, 3)
  bench.pass(SILENT_LANE_MS)
  await bench.turns(id, 2)
  await client.send(createFrame())
  await hasMessages(upstream, 3)
  await upstream.send(ended('resp_1'), created('resp_3'), ended('resp_3'))
  const turns = await bench.turns(id, 3)
  assert.deepEqual(
    turns.map(({ estimated }) => estimated),
    [true, false, false],
  )
  assert.equal(closeCodeOf(client), null)
})

async function openTurns({ gateway }: Awaited<ReturnType<typeof startBench>>, id: string): Promise<number> {
  const path = `/gateway/v1/requests?socket=${id}&state=in_flight`
  return digList(await gateway.manage('GET', path), 'data').length
}

const errorsIn = ({ client }: RawSocket): readonly unknown[] =>
  splitFrames(client.received)
    .filter((frame) => opcodeOf(frame) === 1)
    .map((frame): unknown => JSON.parse(payloadOf(frame).toString()))
    .filter((event) => dig(event, 'type') === 'error')

const more = limits.turnsPerSocketMax + 1

test('a socket has a maximum of running turns, and a finished one makes room', async () => {
  await using bench = await startRawBench()
  const socket = await bench.open()
  for (let i = 0; i < more; i++) await socket.client.send(createFrame({ stream_id: `s${i}` }))
  await hasMessages(socket.client, 1)
  const [refused] = errorsIn(socket)
  assert.deepEqual(
    [dig(refused, 'status'), dig(refused, 'error.code'), dig(refused, 'stream_id')],
    [429, 'too_many_calls', `s${limits.turnsPerSocketMax}`],
  )
  await hasMessages(socket.upstream, limits.turnsPerSocketMax)
  await socket.upstream.send(created('resp_0', 's0'), ended('resp_0', 'completed', undefined, 's0'))
  await hasMessages(socket.client, 3)
  await socket.client.send(createFrame({ stream_id: 'next' }))
  await hasMessages(socket.upstream, limits.turnsPerSocketMax + 1)
  assert.equal(errorsIn(socket).length, 1)
})
