import assert from 'node:assert/strict'
import { SOCKET_KEY_POLL_MS } from '../../src/sockets/open-sockets.ts'
import { dig } from '../simulator/dig.ts'
import { closeAfter, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { began, done, GREETING, playUpstream, TRANSCRIBED } from './played-upstream.ts'
import { stopTime } from './stop-time.ts'

const upstream = await playUpstream(GREETING)
closeAfter(upstream)

/** A socket whose first message has reached upstream; `say` makes upstream send an event. */
async function open(message: object, played = upstream) {
  const { id, key } = await played.gateway.createKey('socket', { monthly_budget_usd: 50 })
  const socket = await played.open('/v1/realtime?model=gpt-realtime', key)
  await socket.takeType('session.created')
  const reached = new Promise<(event: object) => void>((resolve) => {
    played.answer = (_message, say) => resolve(say)
  })
  socket.send(message)
  const say = await reached
  const count = (type: string) => socket.received.filter((event) => dig(event, 'type') === type).length
  return { id, socket, say, count }
}

test('responses that upstream begins after the key was revoked are all billed', async () => {
  const { id, socket, say, count } = await open({ type: 'response.create' })
  say(began('resp_1'))
  await socket.takeType('response.created')
  await upstream.gateway.revokeKey(id)
  const all = ['resp_1', 'resp_2', 'resp_3']
  for (const each of all) say(began(each))
  for (const each of all) say(done(each))
  assert.equal((await socket.closed()).code, 1008)
  assert.ok(count('response.done') > 0, 'the response that ran when the key was revoked has finished')
  await until('all are billed', async () => (await upstream.costs(id)).length === 3)
  await until('nothing is held', async () => (await upstream.heldUsd(id)) === 0)
  assert.deepEqual(await upstream.costs(id), Array(3).fill(['gpt-realtime', 0.128]))
})

test('responses that upstream begins without end do not keep the socket of a revoked key open, nor let input pass', async (t) => {
  // Only a response that begins reveals the revocation, because the poll of revoked keys stands still.
  stopTime(t, 'sockets/open-sockets')
  const played = await playUpstream(GREETING)
  t.after(() => played.close())
  const { id, socket, say, count } = await open({ type: 'response.create' }, played)
  say(began('resp_1'))
  await socket.takeType('response.created')
  await played.gateway.revokeKey(id)
  say(began('resp_2'))
  await socket.takeType('error')
  const reached = played.reached.length
  socket.send({ type: 'input_audio_buffer.clear' })
  say(began('resp_3'))
  say(done('resp_1'))
  assert.equal((await socket.closed()).code, 1008)
  assert.equal(count('response.done'), 1)
  assert.equal(played.reached.length, reached)
  for (const each of ['resp_2', 'resp_3']) say(done(each))
  await until('all are billed', async () => (await played.costs(id)).length === 3)
  assert.deepEqual(await played.costs(id), Array(3).fill(['gpt-realtime', 0.128]))
})

test('a response that upstream begins on an idle socket after the key was revoked closes the socket', async (t) => {
  stopTime(t, 'sockets/open-sockets')
  const played = await playUpstream(GREETING)
  t.after(() => played.close())
  const { id, socket, say } = await open({ type: 'begin' }, played)
  await played.gateway.revokeKey(id)
  say(began('resp_1'))
  assert.equal((await socket.closed()).code, 1008)
  say(done(null))
  await until('an end without an id is billed', async () => (await played.costs(id)).length === 1)
  await until('nothing is held', async () => (await played.heldUsd(id)) === 0)
  assert.deepEqual(await played.costs(id), [['gpt-realtime', 0.128]])
})

test('transcriptions running when the key is revoked finish and are all billed', async (t) => {
  // The poll that closes idle sockets of revoked keys must not run between the transcripts.
  const pass = stopTime(t, 'sockets/open-sockets')
  const played = await playUpstream(GREETING)
  t.after(() => played.close())
  const { id, socket, say } = await open({ type: 'begin' }, played)
  const items = ['item_1', 'item_2', 'item_3', 'item_4']
  for (const item of items) say({ type: 'input_audio_buffer.committed', item_id: item })
  for (const _item of items) await socket.takeType('input_audio_buffer.committed')
  await played.gateway.revokeKey(id)
  for (const [i, item] of items.entries()) {
    say({ type: TRANSCRIBED, item_id: item, usage: { type: 'duration', seconds: 600 } })
    await socket.takeType(TRANSCRIBED)
    if (i === 0) await until('the first turn is billed', async () => (await played.costs(id)).length === 1)
  }
  await until('all are billed', async () => (await played.costs(id)).length === 4)
  await pass.over(SOCKET_KEY_POLL_MS)
  assert.equal((await socket.closed()).code, 1008)
  await until('nothing is held', async () => (await played.heldUsd(id)) === 0)
  assert.deepEqual(await played.costs(id), Array(4).fill(['whisper-1', 0.06]))
})
