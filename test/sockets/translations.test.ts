import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { dig } from '../simulator/dig.ts'
import type { SocketClient } from '../simulator/socket-client.ts'
import { endedTurns, nothingHeld, type SocketPair, startSocketPair } from './metered-socket.ts'

let pair: SocketPair
before(async () => {
  pair = await startSocketPair()
})
after(() => pair.close())

const PATH = '/v1/realtime/translations?model=gpt-realtime-translate'
const hear = (seconds: number) => ({
  type: 'session.input_audio_buffer.append',
  audio: Buffer.alloc(seconds * 48_000, 1).toString('base64'),
})
const usdFor = (seconds: number) => (seconds * 0.034) / 60
const isNear = (turn: unknown, usd: number) =>
  assert.ok(Math.abs(Number(dig(turn, 'list_cost_usd')) - usd) < 1e-6, JSON.stringify(turn))

/** Takes the translation of so many seconds to its end. A client that leaves with a part of it unread is read on for. */
const takeAll = ({ takeUntil }: SocketClient, seconds: number) =>
  takeUntil(
    (event) =>
      dig(event, 'type') === 'session.output_audio.delta' && dig(event, 'elapsed_ms') === seconds * 1_000,
  )

async function open(fields: object = {}) {
  const { id, key } = await pair.gateway.createKey('translation', { ...fields })
  const socket = await pair.open(PATH, { key })
  await socket.takeType('session.created')
  pair.reached.length = 0
  return { id, key, socket }
}

test('what is translated is paid for by its length, and the bill says that it is an estimate', async () => {
  const { id, socket } = await open({ monthly_budget_usd: 5 })
  assert.ok((await pair.held(id)) > 0)
  socket.send(hear(45))
  socket.send(hear(20))
  const [first] = await endedTurns(pair, id, 1)
  isNear(first, usdFor(65))
  assert.equal(dig(first, 'estimated'), true)
  assert.equal(dig(first, 'model'), 'gpt-realtime-translate')
  socket.send(hear(5))
  socket.send({ type: 'session.close' })
  await socket.takeType('session.closed')
  await socket.closed()
  const turns = await endedTurns(pair, id, 2)
  isNear(turns[1], usdFor(5))
  await nothingHeld(pair, id)
})

test('a transcript of what is heard is held for and paid for at its own model, while upstream makes one', async () => {
  const { id, socket } = await open({ monthly_budget_usd: 5 })
  const before = await pair.held(id)
  const set = (transcription: object | null) => {
    socket.send({ type: 'session.update', session: { audio: { input: { transcription } } } })
    return socket.takeType('session.updated')
  }
  await set({ model: 'gpt-realtime-whisper' })
  isNear({ list_cost_usd: (await pair.held(id)) - before }, 1.02 / 60)
  socket.send(hear(60))
  const [both] = await endedTurns(pair, id, 1)
  isNear(both, usdFor(60) + 1.02 / 60)
  // The update ends the turn in which upstream speaks the translation of these 60 seconds; its speech has no price.
  await set(null)
  socket.send(hear(60))
  isNear((await endedTurns(pair, id, 3))[2], usdFor(60))
  await takeAll(socket, 120)
  socket.ws.terminate()
  await nothingHeld(pair, id)
})

test('a transcript that is turned off within a minute is paid for until then', async () => {
  const { id, socket } = await open()
  const set = (transcription: object | null) => {
    socket.send({ type: 'session.update', session: { audio: { input: { transcription } } } })
    return socket.takeType('session.updated')
  }
  await set({ model: 'gpt-realtime-whisper' })
  socket.send(hear(30))
  await set(null)
  socket.send(hear(60))
  const [both, alone] = await endedTurns(pair, id, 2)
  isNear(both, usdFor(30) + 1.02 / 120)
  isNear(alone, usdFor(60))
  await takeAll(socket, 90)
  socket.ws.terminate()
  await nothingHeld(pair, id)
})

test('past a cap nothing more is translated', async () => {
  const { id, socket } = await open({ monthly_budget_usd: 0.001 })
  const told = socket.takeType('error')
  socket.send(hear(60))
  socket.send(hear(60))
  assert.equal(dig(await told, 'error.code'), 'budget_exceeded')
  assert.equal((await socket.closed()).code, 1008)
  assert.deepEqual(pair.reached, ['session.input_audio_buffer.append'])
  await nothingHeld(pair, id)
})

test('a translation that its client leaves is paid for as far as it went', async () => {
  const { id, socket } = await open()
  socket.send(hear(7))
  await socket.takeType('session.output_transcript.delta')
  socket.ws.terminate()
  const [turn] = await endedTurns(pair, id, 1)
  isNear(turn, usdFor(7))
  await nothingHeld(pair, id)
})

test('models that the key may not use are refused, of the translation and of its transcript', async () => {
  const { key: other } = await pair.gateway.createKey('listed', { allowed_models: ['gpt-realtime'] })
  pair.reached.length = 0
  assert.deepEqual(await pair.refused(PATH, other), { status: 403, code: 'model_not_allowed' })
  assert.deepEqual(pair.reached, [])
  const { socket } = await open({ allowed_models: ['gpt-realtime-translate'] })
  const transcription = { model: 'gpt-realtime-whisper' }
  socket.send({ type: 'session.update', session: { audio: { input: { transcription } } } })
  assert.equal(dig(await socket.takeType('error'), 'error.code'), 'model_not_allowed')
  assert.deepEqual(pair.reached, [])
  socket.ws.close()
  await socket.closed()
})

test('a model without a price is refused to a key with a limit before anything is sent', async () => {
  const { key } = await pair.gateway.createKey('limited', { monthly_budget_usd: 5 })
  pair.reached.length = 0
  const path = '/v1/realtime/translations?model=gpt-unheard-of'
  assert.deepEqual(await pair.refused(path, key), { status: 404, code: 'model_not_priced' })
  assert.deepEqual(pair.reached, [])
})

test('a transcript that was turned off is not paid for because another one is refused', async () => {
  const models = ['gpt-realtime-translate', 'gpt-realtime-whisper']
  const { id, socket } = await open({ allowed_models: models })
  const set = (transcription: object | null) =>
    socket.send({ type: 'session.update', session: { audio: { input: { transcription } } } })
  for (const transcription of [{ model: 'gpt-realtime-whisper' }, null]) {
    set(transcription)
    await socket.takeType('session.updated')
  }
  set({ model: 'whisper-1' })
  assert.equal(dig(await socket.takeType('error'), 'error.code'), 'model_not_allowed')
  socket.send(hear(60))
  isNear((await endedTurns(pair, id, 1))[0], usdFor(60))
  socket.ws.terminate()
  await nothingHeld(pair, id)
})
