import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { after, before, beforeEach, test } from 'node:test'
import { dig } from '../simulator/dig.ts'
import { until } from '../support/until.ts'
import { LIVE_PER_HOUR, writeHourlyPrices } from './hourly-prices.ts'
import { type PlayedUpstream, playUpstream } from './played-upstream.ts'

const PATH = '/v1/live/sessions'
const prices = writeHourlyPrices()
const delegation = { type: 'responses', responses: { model: 'gpt-5.5-pro' } }
const session = { id: 'live_1', model: 'gpt-live-1', delegation }
let upstream: PlayedUpstream
before(async () => {
  upstream = await playUpstream({ type: 'session.started', session }, { env: { TOLLGATE_PRICES: prices } })
})
after(async () => {
  await upstream.close()
  rmSync(prices)
})
beforeEach(() => {
  upstream.reached.length = 0
  upstream.answer = (message, say) => {
    if (dig(message, 'type') === 'response.create') playResponse(say)
  }
})

let begun = 0

/** 20,000 tokens read and 10,000 written. */
function playResponse(say: (event: object) => void): void {
  begun += 1
  const usage = { input_tokens: 20_000, output_tokens: 10_000, total_tokens: 30_000 }
  const response = { id: `resp_${begun}`, model: 'gpt-5.5-pro', output: [] }
  const tell = (type: string, fields: object) =>
    say({ type: 'response.event', event: { type, response: { ...response, ...fields } } })
  tell('response.created', { status: 'in_progress', usage: null })
  tell('response.completed', { status: 'completed', usage })
}

const usdFor = (seconds: number) => Math.round((seconds * LIVE_PER_HOUR * 1e9) / 3_600) / 1e9
const create = (event_id: string) => ({ type: 'response.create', event_id })

async function open(monthlyUsd: number | null, fields: object = {}) {
  const { id, key } = await upstream.gateway.createKey('live', { monthly_budget_usd: monthlyUsd, ...fields })
  const socket = await upstream.open(PATH, key)
  await socket.takeType('session.started')
  return { id, key, socket }
}

async function nothingHeld(id: string): Promise<void> {
  await until('nothing is held', async () => (await upstream.heldUsd(id)) === 0)
}

test('what a session that was not seen to start is billed first is an estimate', async () => {
  const { id, key } = await upstream.gateway.createKey('live')
  const socket = await upstream.open(`${PATH}/live_1/attach`, key)
  await socket.takeType('session.started')
  upstream.answer = (_message, say) => say({ type: 'session.usage.updated', usage: { seconds: 900 } })
  socket.send({ type: 'tell' })
  await until('it is paid for', async () => (await upstream.costs(id)).length === 1)
  const { data } = await upstream.gateway.manage('GET', `/v1/keys/${id}/requests?limit=100`)
  const settled = (data as readonly unknown[]).filter((call) => Number(dig(call, 'cost_usd')) > 0)
  assert.deepEqual(
    settled.map((call) => dig(call, 'estimated')),
    [true],
  )
  socket.ws.terminate()
  await nothingHeld(id)
})

test('while a session has others work for it, one response of theirs is held for', async () => {
  const { id, socket } = await open(1_000)
  await until('both are held', async () => (await upstream.heldUsd(id)) > 10 * usdFor(60))
  const heldUsd = await upstream.heldUsd(id)
  socket.send(create('a'))
  await socket.takeUntil((event) => dig(event, 'event.type') === 'response.completed')
  await until('it is paid for', async () => (await upstream.spentUsd(id)) > 0)
  await until('it is held again', async () => (await upstream.heldUsd(id)) === heldUsd)
  assert.equal((await upstream.costs(id)).length, 1)
  socket.ws.terminate()
  await nothingHeld(id)
})

test('responses that the client asks a session for pass a cap by one at most', async () => {
  const { id, socket } = await open(4)
  for (const name of ['a', 'b', 'c', 'd', 'e']) socket.send(create(name))
  assert.equal((await socket.closed()).code, 1008)
  assert.equal(upstream.reached.length, 2)
  await nothingHeld(id)
  assert.equal((await upstream.costs(id)).length, 2)
})

test('what is held for others does not stand in the way of the next minute', async () => {
  const { id, socket } = await open(4)
  upstream.answer = (_message, say) => say({ type: 'session.usage.updated', usage: { seconds: 961 } })
  socket.send({ type: 'tell' })
  await socket.takeType('session.usage.updated')
  await until('it is paid for', async () => (await upstream.spentUsd(id)) === usdFor(61))
  upstream.answer = (_message, say) => say({ type: 'heard' })
  socket.send({ type: 'more' })
  await socket.takeType('heard')
  socket.ws.terminate()
  await nothingHeld(id)
})

test('responses that upstream refuses cost nothing', async () => {
  const { id, socket } = await open(1_000)
  upstream.answer = (_message, say) =>
    say({ type: 'error', error: { message: 'One at a time.', client_event_id: 'a' } })
  socket.send(create('a'))
  await socket.takeType('error')
  socket.ws.terminate()
  await nothingHeld(id)
  assert.equal(await upstream.spentUsd(id), 0)
})

test('a response is asked for on the socket by which its session is metered', async () => {
  const { id, key, socket } = await open(null)
  const other = await upstream.open(`${PATH}/live_1/attach`, key)
  await other.takeType('session.started')
  other.send(create('mine'))
  const error = await other.takeType('error')
  assert.equal(dig(error, 'error.client_event_id'), 'mine')
  assert.deepEqual(upstream.reached, [])
  socket.ws.terminate()
  other.ws.terminate()
  await nothingHeld(id)
})

test('a model that is asked for holds for no less than the one that the session goes by', async () => {
  const { id, socket } = await open(1_000)
  await until('both are held', async () => (await upstream.heldUsd(id)) > 10 * usdFor(60))
  const heldUsd = await upstream.heldUsd(id)
  upstream.answer = (_message, say) => say({ type: 'error', error: { message: 'It has started.' } })
  socket.send({ type: 'session.start', session: { model: 'whisper-1' } })
  await socket.takeType('error')
  assert.equal(await upstream.heldUsd(id), heldUsd)
  socket.ws.terminate()
  await nothingHeld(id)
})
