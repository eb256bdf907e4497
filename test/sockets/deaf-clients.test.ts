import assert from 'node:assert/strict'
import { limits } from '../../src/kernel/limits.ts'
import { dig } from '../simulator/dig.ts'
import { after, before, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { type PlayedUpstream, playUpstream, usageOf } from './played-upstream.ts'
import { stopTime } from './stop-time.ts'

/** Clients that do not read, in sessions in which upstream begins work that costs money. */

let realtime: PlayedUpstream
before(async () => {
  realtime = await playUpstream({ type: 'session.created', session: { model: 'gpt-realtime' } })
})
after(() => realtime.close())

const SOUND = 'A'.repeat(64_000)

test('a client that does not read is not read, and pays for all that upstream has begun when it leaves', async (t) => {
  let begun = 0
  realtime.answer = (message, say) => {
    if (dig(message, 'type') !== 'input_audio_buffer.append') return
    const id = `resp_${begun++}`
    say({ type: 'response.created', response: { id } })
    for (let i = 0; i < 40; i++) say({ type: 'response.output_audio.delta', response_id: id, delta: SOUND })
    say({ type: 'response.done', response: { id, status: 'completed', usage: usageOf(1_000, 100) } })
  }
  const { id, key } = await realtime.gateway.createKey('deaf', { monthly_budget_usd: 50 })
  const socket = await realtime.open('/v1/realtime?model=gpt-realtime', key)
  await socket.takeType('session.created')
  const pass = stopTime(t)
  socket.ws.pause()
  let sent = 0
  await until('it cannot send any more', async () => {
    socket.send({ type: 'input_audio_buffer.append', audio: SOUND })
    sent += 1
    return socket.ws.bufferedAmount > 0 || sent === 200
  })
  assert.ok(sent < 200)
  socket.ws.terminate()
  await until('each is paid for', async () => (await realtime.costs(id)).length === begun)
  pass(limits.readOnMs)
  await until('nothing is held', async () => (await realtime.heldUsd(id)) === 0)
  // 1,000 tokens heard at 32 dollars a million, 100 spoken at 64.
  for (const [, usd] of await realtime.costs(id)) assert.equal(usd, 0.0384)
})
