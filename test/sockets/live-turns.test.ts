import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { dig, digText } from '../simulator/dig.ts'
import type { SocketClient } from '../simulator/socket-client.ts'
import { LIVE_PER_HOUR, writeHourlyPrices } from './hourly-prices.ts'
import { endedTurns, nothingHeld, type SocketPair, startSocketPair } from './metered-socket.ts'

const prices = writeHourlyPrices()
let pair: SocketPair
before(async () => {
  pair = await startSocketPair({ env: { TOLLGATE_PRICES: prices } })
})
after(async () => {
  await pair.close()
  rmSync(prices)
})

const PATH = '/v1/live/sessions'
const start = (session: object = {}) => ({
  type: 'session.start',
  event_id: 'mine',
  session: { model: 'gpt-live-1', ...session },
})
const hear = (seconds: number, byte = 1) => ({
  type: 'session.input_audio.append',
  audio: Buffer.alloc(seconds * 48_000, byte).toString('base64'),
})
const delegation = { type: 'responses', responses: { model: 'gpt-6-luna' } }
const usdFor = (seconds: number) => Math.round((seconds * LIVE_PER_HOUR * 1e9) / 3_600) / 1e9
const priceIn = (turn: unknown) => Number(dig(turn, 'list_cost_usd'))

async function open(session: object = {}, fields: object = {}, behaviour?: string) {
  const { id, key } = await pair.gateway.createKey('live', { ...fields })
  const socket = await pair.open(PATH, { key, ...(behaviour === undefined ? {} : { behaviour }) })
  socket.send(start(session))
  const started = await socket.takeType('session.started')
  return { id, key, socket, sessionId: digText(started, 'session.id') }
}

const isTotal = (seconds: number) => (event: unknown) =>
  dig(event, 'type') === 'session.usage.updated' && Number(dig(event, 'usage.seconds')) >= seconds

async function closeSession(socket: SocketClient): Promise<unknown> {
  socket.send({ type: 'session.close' })
  const closed = await socket.takeType('session.closed')
  await socket.closed()
  return closed
}

test('the seconds of a Live session are paid for, a minute at a time and the rest when it ends', async () => {
  const { id, socket } = await open({}, { monthly_budget_usd: 5 })
  assert.equal(await pair.held(id), usdFor(60))
  socket.send(hear(40))
  await socket.takeUntil(isTotal(40))
  assert.deepEqual(await pair.turns(id), [])
  socket.send(hear(25))
  await socket.takeUntil(isTotal(65))
  const [first] = await endedTurns(pair, id, 1)
  assert.equal(priceIn(first), usdFor(65))
  assert.equal(dig(first, 'model'), 'gpt-live-1')
  assert.equal(dig(first, 'estimated'), false)
  socket.send(hear(3))
  await socket.takeUntil(isTotal(68))
  assert.deepEqual(dig(await closeSession(socket), 'usage'), { seconds: 68 })
  const turns = await endedTurns(pair, id, 2)
  assert.deepEqual(turns.map(priceIn), [usdFor(65), usdFor(3)])
  await nothingHeld(pair, id)
})

test('a session that its client just leaves is paid for as far as it went', async () => {
  const { id, socket } = await open()
  socket.send(hear(2))
  await socket.takeUntil(isTotal(2))
  socket.ws.terminate()
  const [turn] = await endedTurns(pair, id, 1)
  assert.equal(priceIn(turn), usdFor(2))
  await nothingHeld(pair, id)
})

test('a session that nobody speaks in costs nothing', async () => {
  const { id, socket } = await open({}, { monthly_budget_usd: 5 })
  await closeSession(socket)
  await nothingHeld(pair, id)
  assert.deepEqual(await pair.turns(id), [])
})

test('what a session delegates is a call at the model that does it', async () => {
  const { id, socket } = await open({ delegation })
  socket.send(hear(1))
  socket.send(hear(0.5, 0))
  const events = await socket.takeUntil(isTotal(1.5))
  const done = events.findLast((event) => dig(event, 'event.type') === 'response.completed')
  await closeSession(socket)
  const turns = await endedTurns(pair, id, 2)
  const delegated = turns.find((turn) => dig(turn, 'model') === 'gpt-6-luna')
  const usage = (path: string) => Number(dig(done, `event.response.usage.${path}`))
  assert.equal(
    Number(dig(delegated, 'usage.input_tokens')) +
      Number(dig(delegated, 'usage.cache_read_tokens')) +
      Number(dig(delegated, 'usage.cache_write_tokens')),
    usage('input_tokens'),
  )
  assert.equal(dig(delegated, 'usage.output_tokens'), usage('output_tokens'))
  assert.equal(dig(delegated, 'estimated'), false)
  assert.ok(priceIn(delegated) > 0)
  assert.equal(priceIn(turns.find((turn) => turn !== delegated)), usdFor(1.5))
  await nothingHeld(pair, id)
})

test('a socket that only looks on is not billed for the same seconds again', async () => {
  const { id, key, socket, sessionId } = await open()
  const sideband = await pair.open(`${PATH}/${sessionId}/attach`, { key })
  await sideband.takeType('session.started')
  socket.send(hear(61))
  await sideband.takeUntil(isTotal(61))
  await closeSession(socket)
  await sideband.closed()
  const [turn] = await endedTurns(pair, id, 1)
  assert.equal(priceIn(turn), usdFor(61))
  await nothingHeld(pair, id)
})

test('a fork is a session of its own, at the model of the one that it goes on from', async () => {
  const { id, key, socket, sessionId } = await open()
  await closeSession(socket)
  const fork = await pair.open(`${PATH}/${sessionId}/fork`, { key })
  fork.send({ type: 'session.start', session: {} })
  await fork.takeType('session.started')
  fork.send(hear(4))
  await fork.takeUntil(isTotal(4))
  await closeSession(fork)
  const [turn] = await endedTurns(pair, id, 1)
  assert.equal(priceIn(turn), usdFor(4))
  await nothingHeld(pair, id)
})

test('a session whose models the key may not use does not start', async () => {
  const { key } = await pair.gateway.createKey('listed', { allowed_models: ['gpt-live-1'] })
  const socket = await pair.open(PATH, { key })
  pair.reached.length = 0
  for (const session of [{ model: 'gpt-live-2' }, { delegation }, { delegation: { type: 'responses' } }]) {
    socket.send(start(session))
    const error = await socket.takeType('error')
    assert.equal(dig(error, 'error.code'), 'model_not_allowed')
    assert.equal(dig(error, 'error.client_event_id'), 'mine')
  }
  assert.deepEqual(pair.reached, [])
  socket.send(start())
  await socket.takeType('session.started')
  socket.ws.close()
  await socket.closed()
  pair.reached.length = 0
  assert.equal((await pair.refused(`${PATH}/live_1/fork`, key)).status, 403)
  assert.deepEqual(pair.reached, [])
})

test('a session past its cap is told so, and closed before more is heard', async () => {
  const { id, socket } = await open({}, { monthly_budget_usd: 0.001 })
  pair.reached.length = 0
  socket.send(hear(60))
  await socket.takeUntil(isTotal(60))
  const told = socket.takeType('error')
  socket.send(hear(60))
  assert.equal(dig(await told, 'error.code'), 'budget_exceeded')
  assert.equal((await socket.closed()).code, 1008)
  assert.deepEqual(pair.reached, ['session.input_audio.append'])
  const settled = (await pair.turns(id)).filter((turn) => dig(turn, 'state') === 'settled')
  assert.deepEqual(settled.map(priceIn), [usdFor(60)])
  await nothingHeld(pair, id)
})
