import assert from 'node:assert/strict'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { limits } from '../../src/kernel/limits.ts'
import { dig } from '../simulator/dig.ts'
import { until } from '../support/until.ts'
import { LIVE_PER_HOUR, writeHourlyPrices } from './hourly-prices.ts'
import { type PlayedUpstream, playUpstream, usageOf } from './played-upstream.ts'
import { stopTime } from './stop-time.ts'

/** Clients that do not read, in sessions in which upstream begins work that costs money. */

const prices = writeHourlyPrices()
const started: PlayedUpstream[] = []
async function play(greeting: object): Promise<PlayedUpstream> {
  const upstream = await playUpstream(greeting, { env: { TOLLGATE_PRICES: prices } })
  started.push(upstream)
  return upstream
}
let realtime: PlayedUpstream
let live: PlayedUpstream
before(async () => {
  realtime = await play({ type: 'session.created', session: { model: 'gpt-realtime' } })
  live = await play({ type: 'session.started', session: { id: 'live_1', model: 'gpt-live-1' } })
})
after(async () => {
  for (const upstream of started) await upstream.close()
  rmSync(prices)
})

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

/** Two sockets of a Live session, the first of which meters it. `tellAll` has upstream send an event to both. */
async function openBoth(session: string) {
  const says: ((event: object) => void)[] = []
  live.answer = (_message, say) => {
    says.push(say)
    say({ type: 'heard' })
  }
  const { id, key } = await live.gateway.createKey('deaf', { monthly_budget_usd: 500 })
  const open = async () => {
    const socket = await live.open(`/v1/live/sessions/${session}/attach`, key)
    await socket.takeType('session.started')
    socket.send({ type: 'hello' })
    await socket.takeType('heard')
    return socket
  }
  const [deaf, other] = [await open(), await open()]
  const tellAll = (event: object) => {
    for (const say of says) say(event)
  }
  return { id, deaf, other, tellAll }
}

/** Upstream sends so much that the gateway stops reading for the first socket, which does not read; the second then pays. */
async function handOver({ id, deaf, other, tellAll }: Awaited<ReturnType<typeof openBoth>>): Promise<number> {
  deaf.ws.pause()
  let seconds = 0
  await until('the other one pays', async () => {
    for (let i = 0; i < 20; i++) tellAll({ type: 'session.output_audio.delta', delta: SOUND })
    seconds += 60
    tellAll({ type: 'session.usage.updated', usage: { seconds } })
    await other.takeUntil((event) => dig(event, 'usage.seconds') === seconds)
    return (await live.spentUsd(id)) * 3_600 >= LIVE_PER_HOUR * 1_200
  })
  return seconds
}

test('a Live session is metered by the socket that is read, where its first client does not read', async () => {
  const both = await openBoth('live_deaf')
  const { id, deaf, other } = both
  const seconds = await handOver(both)
  other.ws.terminate()
  deaf.ws.terminate()
  await until('nothing is held', async () => (await live.heldUsd(id)) === 0)
  const usd = await live.spentUsd(id)
  assert.ok(Math.abs(usd - (seconds * LIVE_PER_HOUR) / 3_600) < 1e-6, `${usd} dollars for ${seconds} seconds`)
})

test('decisions that one socket of a Live session was billed for are not billed to another that reads of them later', async () => {
  const MODEL = 'gpt-5.5-pro'
  const both = await openBoth('live_decisions')
  const { id, deaf, other, tellAll } = both
  await handOver(both)
  const usage = { input_tokens: 1_000, output_tokens: 0, total_tokens: 1_000 }
  const event = { type: 'decision.completed', decision: { model: MODEL, usage } }
  const decide = () => tellAll({ type: 'decision.event', event })
  const decisions = async () => (await live.costs(id)).filter(([model]) => model === MODEL)
  const billed = (count: number) =>
    until(`${count} are billed`, async () => (await decisions()).length === count)
  for (let i = 1; i <= 2; i++) {
    decide()
    await billed(i)
  }
  other.ws.terminate()
  await once(other.ws, 'close')
  deaf.ws.resume()
  decide()
  await billed(3)
  // A client that leaves with something unread is read on for.
  for (let i = 0; i < 3; i++) await deaf.takeType('decision.event')
  deaf.ws.terminate()
  await until('nothing is held', async () => (await live.heldUsd(id)) === 0)
  assert.deepEqual(await decisions(), Array(3).fill([MODEL, 0.03]))
})
