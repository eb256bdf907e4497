import assert from 'node:assert/strict'
import { assertBalanced } from '../billing/bench-of-one.ts'
import { clockAt } from '../limits/clock-at.ts'
import { nanosOf } from '../limits/read-ledger.ts'
import { test } from '../support/suite.ts'
import { opcodeOf, type RawSocket, splitFrames, startRawBench } from './raw-bench.ts'
import { closeCodeOf, created, createFrame, delta, ended, hasMessages } from './turn-events.ts'

/** Begins a turn, up to its first output. */
async function begin({ client, upstream }: RawSocket, responseId: string): Promise<void> {
  const create = createFrame()
  const arrived = upstream.receivedBytes(upstream.received.length + create.length)
  await client.send(create)
  await arrived
  await upstream.send(Buffer.concat([created(responseId), delta('Well, ')]))
  await hasMessages(client, 2)
}

const closed = (socket: RawSocket) =>
  socket.client.until(() => closeCodeOf(socket.client) !== null, 'a close frame')

const lastText = ({ client }: RawSocket) =>
  splitFrames(client.received)
    .filter((frame) => opcodeOf(frame) === 1)
    .at(-1)
    ?.toString() ?? ''

test('revoking a key closes only its idle sockets, with 1008', async () => {
  await using bench = await startRawBench()
  const { id, key } = await bench.gateway.createKey('leaves')
  const sockets = [await bench.open({ key }), await bench.open({ key })]
  const other = await bench.open()
  await bench.gateway.revokeKey(id)
  for (const socket of sockets) {
    await closed(socket)
    assert.equal(closeCodeOf(socket.client), 1008)
    socket.client.socket.end()
    await socket.upstream.ended
  }
  await begin(other, 'resp_other')
  await other.upstream.send(ended('resp_other'))
  await bench.turns(other.id, 1)
})

for (const way of ['is revoked', 'expires']) {
  test(`a turn that runs while its key ${way} finishes and is billed, then the socket closes with 1008`, async () => {
    const clock = clockAt('2026-11-12T12:00:00.000Z')
    await using bench = await startRawBench({ clock })
    const expires_at = way === 'expires' ? '2026-11-12T12:01:00.000Z' : null
    const { id, key } = await bench.gateway.createKey('leaves', { expires_at })
    const [busy, idle] = [await bench.open({ key }), await bench.open({ key })]
    await begin(busy, 'resp_last')
    if (expires_at === null) await bench.gateway.revokeKey(id)
    else clock.set(expires_at)
    // When the idle socket has closed, the gateway knows that the key has ended.
    await closed(idle)
    assert.equal(closeCodeOf(busy.client), null)
    await busy.upstream.send(delta('goodbye.'), ended('resp_last'))
    await closed(busy)
    assert.equal(closeCodeOf(busy.client), 1008)
    assert.match(lastText(busy), /response\.completed/)
    const [turn = {}] = await bench.turns(busy.id, 1)
    assert.deepEqual([nanosOf(turn['cost_usd']), turn['estimated']], [3_500_000, false])
    for (const { client } of [busy, idle]) client.socket.destroy()
    await assertBalanced(bench.gateway)
  })
}

test('after a revocation has returned, a turn is refused with 401 and the socket closes with 1008', async () => {
  await using bench = await startRawBench()
  const { id, key } = await bench.gateway.createKey('leaves')
  const socket = await bench.open({ key })
  await bench.gateway.revokeKey(id)
  await socket.client.send(createFrame({ stream_id: 's' }))
  await closed(socket)
  assert.equal(closeCodeOf(socket.client), 1008)
  const texts = splitFrames(socket.client.received).filter((frame) => opcodeOf(frame) === 1)
  for (const text of texts) assert.match(text.toString(), /"status":401.*invalid_api_key/)
  await socket.upstream.ended
  assert.ok(splitFrames(socket.upstream.received).every((frame) => opcodeOf(frame) === 8))
  socket.client.socket.destroy()
})

test('shutdown closes idle sockets with 1012 at once, and others after their running turn', async () => {
  await using bench = await startRawBench({ settings: { drainMs: 60_000 } })
  const [busy, idle] = [await bench.open(), await bench.open()]
  await begin(busy, 'resp_last')
  const stopped = bench.stop()
  await closed(idle)
  assert.equal(closeCodeOf(idle.client), 1012)
  const already = busy.upstream.received.length
  await busy.client.send(createFrame({ input: 'one more' }))
  await busy.upstream.send(delta('bye.'))
  await hasMessages(busy.client, 3)
  assert.equal(closeCodeOf(busy.client), null, 'the turn runs')
  await busy.upstream.send(ended('resp_last'))
  await closed(busy)
  assert.equal(closeCodeOf(busy.client), 1012)
  assert.match(lastText(busy), /response\.completed/)
  const more = splitFrames(busy.upstream.received.subarray(already)).map(opcodeOf)
  assert.ok(!more.includes(1), 'no further request was sent')
  for (const { client } of [busy, idle]) client.socket.end()
  await stopped
})

test('a turn that outlasts the drain time is cut and settled, and its socket closes with 1012', async () => {
  let settled = 0
  const reached = (point: string) => {
    if (point === 'settled') settled += 1
  }
  await using bench = await startRawBench({ settings: { drainMs: 200 }, reached })
  const socket = await bench.open()
  await begin(socket, 'resp_long')
  const before = settled
  const stopped = bench.stop()
  await socket.client.ended
  socket.client.socket.destroy()
  await stopped
  assert.equal(settled, before + 1)
  assert.equal(closeCodeOf(socket.client), 1012)
})
