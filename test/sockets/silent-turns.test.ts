import assert from 'node:assert/strict'
import { SILENT_TURN_MS } from '../../src/gateway/turns/socket-turns.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { test } from '../support/suite.ts'
import { startRawBench } from './raw-bench.ts'
import { closeCodeOf, created, createFrame, delta, ended, hasMessages } from './turn-events.ts'

/** A bench whose monotonic clock can be put forward. */
async function startBench() {
  let aheadMs = 0
  const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs }
  const bench = await startRawBench({ clock })
  const pass = (ms: number) => {
    aheadMs += ms
  }
  return Object.assign(bench, { pass })
}

test('a turn that upstream does not begin keeps the socket of a revoked key open only for a while', async () => {
  await using bench = await startBench()
  const { id, key } = await bench.gateway.createKey('revoked')
  const { id: socketId, client, upstream } = await bench.open({ key })
  await client.send(createFrame())
  await hasMessages(upstream, 1)
  await bench.gateway.revokeKey(id)
  await client.send(createFrame())
  await hasMessages(client, 1)
  assert.equal(closeCodeOf(client), null)
  bench.pass(SILENT_TURN_MS)
  await client.until(() => closeCodeOf(client) === 1008, 'a close')
  client.socket.destroy()
  await upstream.ended
  await bench.turns(socketId, 1)
})

test('a response of which nothing more is heard when the next one of its lane has begun is settled after a while', async () => {
  await using bench = await startBench()
  const { id, client, upstream } = await bench.open()
  for (let i = 0; i < 2; i++) await client.send(createFrame())
  await hasMessages(upstream, 2)
  await upstream.send(Buffer.concat([created('resp_1'), delta('Well, '), created('resp_2'), ended('resp_2')]))
  await hasMessages(client, 4)
  bench.pass(SILENT_TURN_MS)
  const turns = await bench.turns(id, 2)
  assert.deepEqual(
    turns.map((turn) => [turn['state'], turn['estimated']]),
    [
      ['settled', true],
      ['settled', false],
    ],
  )
  assert.equal(closeCodeOf(client), null)
})
