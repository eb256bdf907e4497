import assert from 'node:assert/strict'
import { limits } from '../../src/kernel/limits.ts'
import { dig } from '../simulator/dig.ts'
import type { SocketClient } from '../simulator/socket-client.ts'
import { closeAfter, test } from '../support/suite.ts'
import { append, endedTurns, nothingHeld, priceOf, say, startSocketPair } from './metered-socket.ts'
import { stopTime } from './stop-time.ts'

const pair = await startSocketPair()
closeAfter(pair)

const PATH = '/v1/realtime?model=gpt-realtime'

async function open(fields: Record<string, unknown> = {}, path = PATH, behaviour?: string) {
  const { id, key } = await pair.gateway.createKey('socket', fields)
  const socket = await pair.open(path, { key, ...(behaviour === undefined ? {} : { behaviour }) })
  await socket.takeType('session.created')
  return { id, key, socket }
}

async function close(socket: SocketClient): Promise<void> {
  socket.ws.close()
  await socket.closed()
}

const priceIn = (turn: unknown) => Number(dig(turn, 'list_cost_usd'))

test('a requested response costs the usage that upstream states', async () => {
  const { id, socket } = await open()
  socket.send(say('Hello.'))
  socket.send({ type: 'response.create' })
  const done = await socket.takeType('response.done')
  const [turn] = await endedTurns(pair, id, 1)
  assert.equal(priceIn(turn), priceOf(done))
  assert.ok(priceIn(turn) > 0)
  assert.equal(dig(turn, 'model'), 'gpt-realtime')
  assert.equal(dig(turn, 'stop_reason'), 'completed')
  assert.equal(dig(turn, 'estimated'), false)
  assert.equal(dig(turn, 'method'), 'WS')
  await close(socket)
  await nothingHeld(pair, id)
})

test('a response that upstream begins by voice detection takes over the standing hold', async () => {
  const { id, socket } = await open({ monthly_budget_usd: 5 })
  const idle = await pair.held(id)
  assert.ok(idle > 0, 'an idle socket has a standing hold')
  socket.send(append(600))
  socket.send(append(250, 0))
  const done = await socket.takeType('response.done')
  const [turn] = await endedTurns(pair, id, 1)
  assert.equal(priceIn(turn), priceOf(done))
  assert.ok(Number(dig(done, 'response.usage.input_token_details.audio_tokens')) > 0)
  socket.send(say('And again.'))
  await socket.takeType('conversation.item.done')
  assert.equal(await pair.held(id), idle)
  await close(socket)
  await nothingHeld(pair, id)
})

test('a cancelled response costs what it used', async () => {
  const { id, socket } = await open({}, PATH, 'tokens=400; drip=5')
  socket.send(say('Tell me everything.'))
  socket.send({ type: 'response.create' })
  await socket.takeType('response.output_audio.delta')
  socket.send({ type: 'response.cancel' })
  const done = await socket.takeType('response.done')
  assert.equal(dig(done, 'response.status'), 'cancelled')
  const [turn] = await endedTurns(pair, id, 1)
  assert.equal(priceIn(turn), priceOf(done))
  assert.equal(dig(turn, 'stop_reason'), 'cancelled')
  await close(socket)
})

test('a transcription is billed at the price of the session’s transcription model', async () => {
  const { id, socket } = await open({ monthly_budget_usd: 5 })
  const before = await pair.held(id)
  const transcription = { model: 'gpt-4o-transcribe' }
  socket.send({ type: 'session.update', session: { audio: { input: { transcription } } } })
  await socket.takeType('session.updated')
  assert.equal(await pair.held(id), before, 'the standing hold covers it')
  socket.send(append(600))
  socket.send(append(250, 0))
  const events = await socket.takeUntil((event) => dig(event, 'type') === 'response.done')
  const name = 'conversation.item.input_audio_transcription.completed'
  const written = events.find((event) => dig(event, 'type') === name) ?? (await socket.takeType(name))
  const turns = await endedTurns(pair, id, 2)
  const transcript = turns.find((turn) => dig(turn, 'model') === 'gpt-4o-transcribe')
  const heard = Number(dig(written, 'usage.input_token_details.audio_tokens'))
  const words = Number(dig(written, 'usage.output_tokens'))
  assert.equal(priceIn(transcript), Math.round((heard * 6 + words * 10) * 1_000) / 1e9)
  const answer = turns.find((turn) => turn !== transcript)
  assert.equal(priceIn(answer), priceOf(events.at(-1)))
  await close(socket)
  await nothingHeld(pair, id)
})

test('a request that upstream refuses frees its hold', async () => {
  const { id, socket } = await open({ monthly_budget_usd: 5 }, PATH, 'tokens=200; drip=5')
  const idle = await pair.held(id)
  socket.send(say('Hello.'))
  socket.send({ type: 'response.create', event_id: 'first' })
  await socket.takeType('response.created')
  socket.send({ type: 'response.create', event_id: 'second' })
  const error = await socket.takeType('error')
  assert.equal(dig(error, 'error.event_id'), 'second')
  await socket.takeType('response.done')
  await endedTurns(pair, id, 1)
  socket.send(say('Still there?'))
  await socket.takeType('conversation.item.done')
  assert.equal(await pair.held(id), idle)
  await close(socket)
  await nothingHeld(pair, id)
})

async function begin(behaviour: string) {
  const { id, key } = await pair.gateway.createKey('socket', { monthly_budget_usd: 5 })
  const socket = await pair.open(PATH, { key, behaviour })
  await socket.takeType('session.created')
  socket.send(say('Tell me everything.'))
  socket.send({ type: 'response.create' })
  return { id, socket }
}

for (const [what, behaviour] of [
  ['dies', 'tokens=200; cut=event:60'],
  ['closes the socket', 'tokens=200; close=1011:60'],
  ['falls silent', 'tokens=200; stall=60'],
] as const) {
  test(`a response during which upstream ${what} is estimated from what was delivered`, async (t) => {
    const { id, socket } = await begin(behaviour)
    await socket.takeUntil((event) => dig(event, 'type') === 'response.output_audio.delta')
    if (behaviour.includes('stall')) {
      const pass = stopTime(t)
      socket.ws.close()
      await pass.over(limits.readOnMs)
    }
    await socket.closed()
    const [turn] = await endedTurns(pair, id, 1)
    assert.equal(dig(turn, 'state'), 'settled')
    assert.equal(dig(turn, 'estimated'), true)
    assert.ok(Number(dig(turn, 'usage.output_tokens')) > 0)
    assert.ok(Number(dig(turn, 'usage.input_tokens')) > 0)
    assert.ok(Number(dig(turn, 'cost_usd')) > 0)
    await nothingHeld(pair, id)
  })
}

test('a client that leaves mid-response pays the usage that upstream states', async () => {
  const { id, socket } = await begin('tokens=60; drip=2')
  await socket.takeType('response.output_audio.delta')
  socket.ws.terminate()
  const [turn] = await endedTurns(pair, id, 1)
  assert.equal(dig(turn, 'state'), 'settled')
  assert.equal(dig(turn, 'estimated'), false)
  assert.equal(dig(turn, 'stop_reason'), 'completed')
  await nothingHeld(pair, id)
})
