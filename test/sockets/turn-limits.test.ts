import assert from 'node:assert/strict'
import { limits } from '../../src/kernel/limits.ts'
import { dig } from '../simulator/dig.ts'
import { test } from '../support/suite.ts'
import { opcodeOf, payloadOf, type RawSocket, splitFrames, startRawBench } from './raw-bench.ts'
import { created, createFrame, ended, hasMessages } from './turn-events.ts'

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
