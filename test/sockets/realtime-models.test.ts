import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { dig } from '../simulator/dig.ts'
import { type PlayedUpstream, playUpstream } from './played-upstream.ts'

const PATH = '/v1/realtime?model=gpt-realtime'
const sessionOf = (model: string) => ({ id: 'sess_1', type: 'realtime', model, max_output_tokens: 'inf' })

let upstream: PlayedUpstream
before(async () => {
  upstream = await playUpstream({ type: 'session.created', session: sessionOf('gpt-realtime') })
})
after(() => upstream.close())

async function open(fields: Record<string, unknown> = {}) {
  const { id, key } = await upstream.gateway.createKey('socket', fields)
  const socket = await upstream.open(PATH, key)
  await socket.takeType('session.created')
  upstream.reached.length = 0
  return { id, key, socket }
}

test('a message that begins a response is judged as one, whatever else it brings', async () => {
  const { socket } = await open({ monthly_budget_usd: 2 })
  socket.send({ type: 'response.create', event_id: 'odd', session: {} })
  const error = await socket.takeType('error')
  assert.equal(dig(error, 'error.code'), 'bad_request')
  assert.equal(dig(error, 'error.event_id') ?? null, null)
  assert.deepEqual(upstream.reached, [])
  socket.ws.close()
  await socket.closed()
})

test('a model that a session is asked to go by holds for no less than the one that it may stay with', async () => {
  const { id, socket } = await open({ monthly_budget_usd: 50 })
  const heldUsd = await upstream.heldUsd(id)
  upstream.answer = (_message, say) => say({ type: 'error', error: { message: 'It stays as it is.' } })
  socket.send({ type: 'session.update', session: { model: 'gpt-5-nano' } })
  await socket.takeType('error')
  assert.equal(await upstream.heldUsd(id), heldUsd)
  socket.ws.close()
  await socket.closed()
})

test('an update of which a part is refused changes nothing of what is held', async () => {
  const { id, socket } = await open({
    monthly_budget_usd: 50,
    allowed_models: ['gpt-realtime', 'gpt-realtime-mini', 'gpt-5-nano'],
  })
  const heldUsd = await upstream.heldUsd(id)
  for (const model of ['gpt-5-nano', 'gpt-realtime-mini']) {
    const session = { model, audio: { input: { transcription: { model: 'whisper-1' } } } }
    socket.send({ type: 'session.update', session })
    assert.equal(dig(await socket.takeType('error'), 'error.code'), 'model_not_allowed')
  }
  assert.deepEqual(upstream.reached, [])
  assert.equal(await upstream.heldUsd(id), heldUsd)
  socket.ws.close()
  await socket.closed()
})
