import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { dig, digList } from '../simulator/dig.ts'
import { until } from '../support/until.ts'
import { LIVE_PER_HOUR, writeHourlyPrices } from './hourly-prices.ts'
import { type PlayedUpstream, playUpstream } from './played-upstream.ts'

const PATH = '/v1/live/sessions'
const prices = writeHourlyPrices()
let upstream: PlayedUpstream
before(async () => {
  const session = { id: 'live_1', model: 'gpt-live-1' }
  upstream = await playUpstream({ type: 'session.started', session }, { env: { TOLLGATE_PRICES: prices } })
  upstream.answer = (message, say) => {
    const { type, seconds } = message as { type: string; seconds: number }
    if (type === 'tell') say({ type: 'session.usage.updated', usage: { seconds } })
    if (type === 'response.create') playDelegated(say)
    if (type === 'speak') {
      const delta = Buffer.alloc(seconds * 48_000).toString('base64')
      say({ type: 'session.output_audio.delta', delta })
    }
  }
})
after(async () => {
  await upstream.close()
  rmSync(prices)
})

let delegated = 0

/** A response that reads 20,000 tokens and writes 10,000, which is 2.4 dollars with gpt-5.5-pro. */
function playDelegated(say: (event: object) => void): void {
  delegated += 1
  const usage = { input_tokens: 20_000, output_tokens: 10_000, total_tokens: 30_000 }
  const response = { id: `resp_${delegated}`, model: 'gpt-5.5-pro', output: [] }
  const wrap = (type: string, more: object) =>
    say({ type: 'response.event', event: { type, response: { ...response, ...more } } })
  wrap('response.created', { status: 'in_progress', usage: null })
  wrap('response.completed', { status: 'completed', usage })
}

const usdFor = (seconds: number) => Math.round((seconds * LIVE_PER_HOUR * 1e9) / 3_600) / 1e9

async function open(path: string, key: string) {
  const socket = await upstream.open(path, key)
  await socket.takeType('session.started')
  return socket
}

test('a session is paid for by another socket when the one that paid for it is left', async () => {
  const { id, key } = await upstream.gateway.createKey('live', { monthly_budget_usd: 50 })
  const first = await open(`${PATH}/live_1/attach`, key)
  const second = await open(`${PATH}/live_1/attach`, key)
  second.send({ type: 'tell', seconds: 30 })
  await second.takeType('session.usage.updated')
  first.ws.terminate()
  await until('the first is given up', async () => (await upstream.heldUsd(id)) === 0)
  second.send({ type: 'tell', seconds: 40 })
  await until('the second holds', async () => (await upstream.heldUsd(id)) === usdFor(60))
  second.send({ type: 'tell', seconds: 90 })
  await until('it is paid for', async () => (await upstream.costs(id)).length === 1)
  assert.deepEqual(await upstream.costs(id), [['gpt-live-1', usdFor(90)]])
  second.ws.terminate()
  await until('nothing is held', async () => (await upstream.heldUsd(id)) === 0)
})

test('a session is paid for once by sockets to which it is not shown', async () => {
  const silent = await playUpstream({ type: 'info' })
  silent.answer = upstream.answer
  const { id, key } = await silent.gateway.createKey('live')
  for (const seconds of [90, 100]) {
    const socket = await silent.open(`${PATH}/live_2/attach`, key)
    await socket.takeType('info')
    socket.send({ type: 'tell', seconds })
    await socket.takeType('session.usage.updated')
  }
  await until('it is settled', async () => (await silent.costs(id)).length > 0)
  assert.equal((await silent.costs(id)).length, 1)
  await silent.close()
})

test('what was said is paid for where the client leaves before upstream tells how long it was', async () => {
  const { id, key } = await upstream.gateway.createKey('live', { monthly_budget_usd: 50 })
  const socket = await open(PATH, key)
  socket.send({ type: 'tell', seconds: 90 })
  socket.send({ type: 'speak', seconds: 20 })
  await socket.takeType('session.output_audio.delta')
  socket.ws.terminate()
  await until('it is paid for', async () => (await upstream.costs(id)).length === 1)
  assert.deepEqual(await upstream.costs(id), [['gpt-live-1', usdFor(20)]])
  assert.equal(dig(await upstream.gateway.manage('GET', `/v1/keys/${id}`), 'month_held_usd'), 0)
})

test('a response that the client asks a session for waits for its hold, and does not go past a cap', async () => {
  const { id, key } = await upstream.gateway.createKey('live', { monthly_budget_usd: 4 })
  const socket = await open(PATH, key)
  const session = { delegation: { type: 'responses', responses: { model: 'gpt-5.5-pro' } } }
  socket.send({ type: 'session.update', session })
  delegated = 0
  for (let i = 0; i < 10; i++) socket.send({ type: 'response.create', response: { model: 'gpt-5.5-pro' } })
  await socket.takeType('error')
  socket.ws.terminate()
  await until('nothing is held', async () => (await upstream.heldUsd(id)) === 0)
  assert.ok(delegated <= 2, `${delegated} have begun`)
  await until('each is paid for', async () => (await upstream.costs(id)).length === delegated)
})

test('one can attach to a session that holds all that is left, and goes on with it when its first socket is left', async () => {
  const { id, key } = await upstream.gateway.createKey('live', { monthly_budget_usd: usdFor(60) })
  const path = `${PATH}/live_poor/attach`
  const first = await open(path, key)
  await until('a minute is held', async () => (await upstream.heldUsd(id)) === usdFor(60))
  const second = await open(path, key)
  assert.equal(await upstream.heldUsd(id), usdFor(60))
  first.ws.terminate()
  await until('the first is given up', async () => (await upstream.heldUsd(id)) === 0)
  second.send({ type: 'tell', seconds: 40 })
  await until('the second holds', async () => (await upstream.heldUsd(id)) === usdFor(60))
  second.ws.terminate()
  await until('it is paid for', async () => (await upstream.spentUsd(id)) === usdFor(40))
})

test('a response of a model that the key may not use does not begin', async () => {
  const { key } = await upstream.gateway.createKey('live', { allowed_models: ['gpt-live-1'] })
  const socket = await open(PATH, key)
  delegated = 0
  socket.send({ type: 'response.create', event_id: 'mine', response: { model: 'gpt-5.5-pro' } })
  assert.equal(dig(await socket.takeType('error'), 'error.code'), 'model_not_allowed')
  assert.equal(delegated, 0)
  socket.ws.terminate()
})

test('a message that brings more than what is held for waits for more', async () => {
  const { id, key } = await upstream.gateway.createKey('live', { monthly_budget_usd: 50 })
  const socket = await open(PATH, key)
  await until('a minute is held', async () => (await upstream.heldUsd(id)) === usdFor(60))
  const audio = Buffer.alloc(120 * 48_000).toString('base64')
  socket.send({ type: 'session.input_audio.append', audio })
  await until('two minutes are held', async () => (await upstream.heldUsd(id)) === usdFor(120))
  socket.ws.terminate()
})

test('audio that is sent ahead of what upstream has told is held for too', async () => {
  const { id, key } = await upstream.gateway.createKey('live', { monthly_budget_usd: 50 })
  const socket = await open(`${PATH}/live_ahead/attach`, key)
  await until('a minute is held', async () => (await upstream.heldUsd(id)) === usdFor(60))
  const audio = Buffer.alloc(45 * 48_000).toString('base64')
  for (let i = 0; i < 2; i++) socket.send({ type: 'session.input_audio.append', audio })
  await until('two minutes are held', async () => (await upstream.heldUsd(id)) === usdFor(120))
  socket.send({ type: 'tell', seconds: 1 })
  await until('a minute is held again', async () => (await upstream.heldUsd(id)) === usdFor(60))
  socket.ws.terminate()
})

test('audio in a burst goes as far as there is something left, by whichever socket of the session', async () => {
  const { id, key } = await upstream.gateway.createKey('live', { monthly_budget_usd: usdFor(180) })
  const metering = await open(`${PATH}/live_burst/attach`, key)
  const idle = await open(`${PATH}/live_burst/attach`, key)
  await until('a minute is held', async () => (await upstream.heldUsd(id)) === usdFor(60))
  upstream.reached.length = 0
  const audio = Buffer.alloc(60 * 48_000).toString('base64')
  for (let i = 0; i < 10; i++) idle.send({ type: 'session.input_audio.append', audio })
  await until('one waits', async () => {
    const waiting = await upstream.gateway.manage('GET', `/v1/keys/${id}/requests?state=waiting`)
    return digList(waiting, 'data').length === 1
  })
  assert.equal(await upstream.heldUsd(id), usdFor(180))
  assert.equal(upstream.reached.length, 3)
  for (const socket of [idle, metering]) socket.ws.terminate()
  // A socket is not read while its message waits, so that its end is not seen before the wait is over.
  await upstream.gateway.manage('PATCH', `/v1/keys/${id}`, { monthly_budget_usd: usdFor(6_000) })
  await until('nothing is held', async () => (await upstream.heldUsd(id)) === 0)
})

test('a translation that is asked to go by a cheaper model holds for the one that it may stay with', async () => {
  const { id, key } = await upstream.gateway.createKey('live', { monthly_budget_usd: 50 })
  const socket = await open('/v1/realtime/translations?model=gpt-realtime-translate', key)
  const heldUsd = await upstream.heldUsd(id)
  socket.send({ type: 'session.update', session: { model: 'gpt-realtime-whisper' } })
  socket.send({ type: 'tell', seconds: 1 })
  await socket.takeType('session.usage.updated')
  assert.ok((await upstream.heldUsd(id)) >= heldUsd)
  socket.ws.terminate()
})

for (const [what, seconds] of [
  ['longer than any time', Number.MAX_VALUE],
  ['longer than a life', 2e9],
] as const)
  test(`a session that is told to have lasted ${what} is paid for by what it is told to have lasted next`, async () => {
    const { id, key } = await upstream.gateway.createKey('live', { monthly_budget_usd: 50 })
    const socket = await open(`${PATH}/live_${seconds}/attach`, key)
    for (const each of [30, seconds, 90]) socket.send({ type: 'tell', seconds: each })
    await until('it is paid for', async () => (await upstream.costs(id)).length > 0)
    assert.deepEqual(await upstream.costs(id), [['gpt-live-1', usdFor(90)]])
    socket.ws.terminate()
    await until('nothing is held', async () => (await upstream.heldUsd(id)) === 0)
    assert.equal(await upstream.spentUsd(id), usdFor(90))
  })

test('an image that a session is given for others is no time of the session', async () => {
  const { id, key } = await upstream.gateway.createKey('live', { monthly_budget_usd: 50 })
  const socket = await open(`${PATH}/live_image/attach`, key)
  await until('a minute is held', async () => (await upstream.heldUsd(id)) === usdFor(60))
  const image_url = `data:image/png;base64,${Buffer.alloc(90 * 48_000).toString('base64')}`
  const item = { type: 'message', role: 'user', content: [{ type: 'input_image', image_url }] }
  socket.send({ type: 'response.item.create', item })
  socket.send({ type: 'tell', seconds: 1 })
  await socket.takeType('session.usage.updated')
  socket.send({ type: 'response.item.create', item })
  socket.send({ type: 'speak', seconds: 2 })
  await socket.takeType('session.output_audio.delta')
  assert.equal(await upstream.heldUsd(id), usdFor(60))
  socket.ws.terminate()
  await until('it is paid for', async () => (await upstream.costs(id)).length === 1)
  assert.deepEqual(await upstream.costs(id), [['gpt-live-1', usdFor(3)]])
})

test('audio behind a change of its format is as long as it is by the format that makes it longer', async () => {
  const { id, key } = await upstream.gateway.createKey('live', { monthly_budget_usd: 50 })
  const socket = await open(`${PATH}/live_format/attach`, key)
  await until('a minute is held', async () => (await upstream.heldUsd(id)) === usdFor(60))
  socket.send({ type: 'session.update', session: { audio: { format: { type: 'audio/pcmu' } } } })
  // The audio is 90 seconds at 8 bytes a millisecond, and 15 at 48.
  socket.send({ type: 'session.input_audio.append', audio: Buffer.alloc(90 * 8_000).toString('base64') })
  socket.send({ type: 'speak', seconds: 0 })
  await socket.takeType('session.output_audio.delta')
  assert.equal(await upstream.heldUsd(id), usdFor(120))
  socket.ws.terminate()
  await until('it is paid for', async () => (await upstream.costs(id)).length === 1)
  assert.deepEqual(await upstream.costs(id), [['gpt-live-1', usdFor(90)]])
})
