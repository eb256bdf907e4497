import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { dig } from '../simulator/dig.ts'
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
    const sound = Buffer.alloc(seconds * 48_000).toString('base64')
    if (type === 'speak') say({ type: 'session.output_audio.delta', delta: sound })
  }
})
after(async () => {
  await upstream.close()
  rmSync(prices)
})

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
