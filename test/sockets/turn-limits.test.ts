import assert from 'node:assert/strict'
import { limits } from '../../src/kernel/limits.ts'
import { dig } from '../simulator/dig.ts'
import { readOpenMetrics } from '../support/open-metrics.ts'
import { test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { opcodeOf, payloadOf, type RawSocket, splitFrames, startRawBench } from './raw-bench.ts'
import { created, createFrame, ended, hasMessages } from './turn-events.ts'
import { create, startTurnsBench } from './turns-bench.ts'
import { wireOf } from './wire-frames.ts'

const errorsIn = ({ client }: RawSocket): readonly unknown[] =>
  splitFrames(client.received)
    .filter((frame) => opcodeOf(frame) === 1)
    .map((frame): unknown => JSON.parse(payloadOf(frame).toString()))
    .filter((event) => dig(event, 'type') === 'error')

const more = limits.turnsPerSocketMax + 1

test('a socket has as many turns under way as it may, and one more when one of them has ended', async () => {
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

test('a Realtime socket has as many responses asked for as it may', async () => {
  await using bench = await startRawBench()
  const socket = await bench.open({ target: '/v1/realtime?model=gpt-realtime' })
  const ask = (eventId: string) =>
    wireOf('client', {
      opcode: 1,
      payload: JSON.stringify({
        type: 'response.create',
        event_id: eventId,
        response: { conversation: 'none' },
      }),
    })
  for (let i = 0; i < more; i++) await socket.client.send(ask(`e${i}`))
  await hasMessages(socket.client, 1)
  const [refused] = errorsIn(socket)
  assert.deepEqual(
    [dig(refused, 'error.code'), dig(refused, 'error.event_id')],
    ['too_many_calls', `e${limits.turnsPerSocketMax}`],
  )
  await hasMessages(socket.upstream, limits.turnsPerSocketMax)
})

test('turns that have ended or were refused leave their places to others, and none is counted when all is over', async (t) => {
  const bench = await startTurnsBench({ settings: { callsInFlightPerKeyMax: 3 } })
  t.after(() => bench.close())
  const { gateway } = bench
  const { key } = await gateway.createKey('listed', { allowed_models: ['gpt-4o'] })
  const socket = await bench.open({ key })
  for (let i = 0; i < 4; i++) {
    const [event] = await socket.turn(create({ model: 'gpt-6.1-sol' }))
    assert.equal(dig(event, 'error.code'), 'model_not_allowed')
    const events = await socket.turn(create())
    assert.equal(dig(events.at(-1), 'type'), 'response.completed')
    // The slot of a turn is free when the turn is settled, which the client does not see, or a moment later.
    await bench.turns(socket.id, i + 1)
  }
  socket.ws.close()
  await socket.closed()
  await until('no call is in flight', async () => {
    const headers = { authorization: `Bearer ${gateway.adminKey}`, accept: 'application/openmetrics-text' }
    const response = await fetch(`${gateway.url}/metrics`, { headers })
    const families = readOpenMetrics(await response.text())
    const only = (name: string) => families.get(name)?.samples[0]?.value
    return only('tollgate_calls_in_flight') === 0
  })
})
