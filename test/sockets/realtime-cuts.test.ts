import assert from 'node:assert/strict'
import { limits } from '../../src/kernel/limits.ts'
import { dig } from '../simulator/dig.ts'
import { after, before, test } from '../support/suite.ts'
import { endedTurns, nothingHeld, type SocketPair, say, startSocketPair } from './metered-socket.ts'
import { stopTime } from './stop-time.ts'

let pair: SocketPair
before(async () => {
  pair = await startSocketPair()
})
after(() => pair.close())

const PATH = '/v1/realtime?model=gpt-realtime'

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
  test(`a response during which upstream ${what} is estimated by what was delivered`, async (t) => {
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

test('a client that leaves in mid-response pays what upstream says of the whole', async () => {
  const { id, socket } = await begin('tokens=60; drip=2')
  await socket.takeType('response.output_audio.delta')
  socket.ws.terminate()
  const [turn] = await endedTurns(pair, id, 1)
  assert.equal(dig(turn, 'state'), 'settled')
  assert.equal(dig(turn, 'estimated'), false)
  assert.equal(dig(turn, 'stop_reason'), 'completed')
  await nothingHeld(pair, id)
})

test('an error that was provoked frees nothing that a response still needs', async () => {
  const { id, key } = await pair.gateway.createKey('socket', { monthly_budget_usd: 5 })
  const socket = await pair.open(PATH, { key })
  await socket.takeType('session.created')
  socket.send(say('Hello.'))
  const beside = {
    type: 'response.create',
    event_id: 'mine',
    response: { conversation: 'none', output_modalities: ['text'], input: [say('Count.').item] },
  }
  for (let i = 0; i < 3; i++) {
    socket.send({ type: 'nothing', event_id: 'mine' })
    socket.send(beside)
    socket.send({ type: 'nothing', event_id: 'mine' })
    socket.send({ type: 'nothing' })
  }
  for (let i = 0; i < 3; i++) await socket.takeType('response.done')
  const turns = await endedTurns(pair, id, 3)
  for (const turn of turns) {
    assert.equal(dig(turn, 'estimated'), false)
    assert.ok(Number(dig(turn, 'cost_usd')) > 0)
  }
  socket.ws.close()
  await nothingHeld(pair, id)
})
