import assert from 'node:assert/strict'
import { dig, digList, digNumber } from '../simulator/dig.ts'
import { closeAfter, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { endedTurns, nothingHeld, say, startSocketPair } from './metered-socket.ts'

const pair = await startSocketPair()
closeAfter(pair)

const PATH = '/v1/realtime?model=gpt-realtime'
const inText = { type: 'response.create', response: { output_modalities: ['text'] } }

async function open(fields: Record<string, unknown> = {}, path = PATH, behaviour?: string) {
  const { id, key } = await pair.gateway.createKey('socket', fields)
  const socket = await pair.open(path, { key, ...(behaviour === undefined ? {} : { behaviour }) })
  await socket.takeType('session.created')
  pair.reached.length = 0
  return { id, key, socket }
}

const spendUsd = async (id: string) =>
  digNumber(await pair.gateway.manage('GET', `/v1/keys/${id}`), 'month_spend_usd')

async function spendAll(id: string, key: string): Promise<void> {
  const socket = await pair.open(PATH, { key })
  await socket.takeType('session.created')
  socket.send(say('Hello.'))
  socket.send(inText)
  await socket.takeType('response.done')
  await endedTurns(pair, id, 1)
  socket.ws.close()
  await socket.closed()
  await nothingHeld(pair, id)
}

test('a handshake whose hold is refused does not reach upstream', async () => {
  const { id, key } = await pair.gateway.createKey('poor', { monthly_budget_usd: 0.000_001 })
  await spendAll(id, key)
  pair.reached.length = 0
  assert.deepEqual(await pair.refused(PATH, key), { status: 402, code: 'budget_exceeded' })
  assert.deepEqual(pair.reached, [])
  assert.equal(await pair.held(id), 0)
})

test('a spent cap sends an error, and the socket closes before more is forwarded', async () => {
  const { id, socket } = await open({ monthly_budget_usd: 0.000_001 })
  socket.send(say('Hello.'))
  socket.send(inText)
  await socket.takeType('response.done')
  const refusal = socket.takeType('error')
  socket.send(say('More.'))
  socket.send(inText)
  assert.equal(dig(await refusal, 'error.code'), 'budget_exceeded')
  assert.equal((await socket.closed()).code, 1008)
  assert.deepEqual(pair.reached, ['conversation.item.create', 'response.create'])
  const turns = (await pair.turns(id)).filter((turn) => dig(turn, 'state') === 'settled')
  assert.equal(turns.length, 1)
  assert.equal(await spendUsd(id), Number(dig(turns[0], 'cost_usd')))
  await nothingHeld(pair, id)
})

test('a handshake with a model outside the allowlist is refused', async () => {
  const { key } = await pair.gateway.createKey('listed', { allowed_models: ['gpt-realtime-mini'] })
  pair.reached.length = 0
  assert.deepEqual(await pair.refused(PATH, key), { status: 403, code: 'model_not_allowed' })
  assert.deepEqual(pair.reached, [])
})

test('a message with a model outside the allowlist is refused, and the session continues', async () => {
  const { id, socket } = await open({ allowed_models: ['gpt-realtime'] })
  const updates = [
    { audio: { input: { transcription: { model: 'gpt-4o-transcribe' } } } },
    { input_audio_transcription: { model: 'whisper-1' } },
    { audio: { input: { transcription: { language: 'en' } } } },
    { model: 'gpt-realtime-mini' },
  ]
  for (const [at, session] of updates.entries()) {
    socket.send({ type: 'session.update', event_id: `update_${at}`, session })
    const error = await socket.takeType('error')
    assert.equal(dig(error, 'error.code'), 'model_not_allowed')
    assert.equal(dig(error, 'error.event_id'), `update_${at}`)
    assert.equal(dig(error, 'status'), 403)
  }
  socket.send({ type: 'response.create', response: { model: 'gpt-realtime-mini' } })
  assert.equal(dig(await socket.takeType('error'), 'error.code'), 'model_not_allowed')
  assert.deepEqual(pair.reached, [])
  socket.send(say('Hello.'))
  socket.send(inText)
  await socket.takeType('response.done')
  await until('the refusals are recorded', async () => {
    const path = `/v1/keys/${id}/requests?state=refused`
    const refused = digList(await pair.gateway.manage('GET', path), 'data')
    return refused.filter((turn) => dig(turn, 'code') === 'model_not_allowed').length === 5
  })
  socket.ws.close()
  await socket.closed()
})

test('ambiguous messages are refused to every key, and the socket stays open', async () => {
  const { socket } = await open()
  // test/providers/realtime-events.test.ts has more of them.
  const messages = ['no json', '{"type":"response.create","response":{"model":"a","model":"b"}}']
  for (const message of messages) {
    socket.send(message)
    const error = await socket.takeType('error')
    assert.equal(dig(error, 'error.code'), 'bad_request', message)
  }
  assert.deepEqual(pair.reached, [])
  socket.send(say('Hello.'))
  socket.send(inText)
  await socket.takeType('response.done')
  socket.ws.close()
  await socket.closed()
})

test('the hold of a handshake that upstream refuses is freed', async () => {
  const { id, key } = await pair.gateway.createKey('unlucky', { monthly_budget_usd: 5 })
  const headers = { authorization: `Bearer ${key}`, 'x-simulator': 'status=429' }
  const socket = pair.open(PATH, { key, behaviour: headers['x-simulator'] })
  await assert.rejects(socket, /429/)
  await nothingHeld(pair, id)
  assert.equal(await spendUsd(id), 0)
})
