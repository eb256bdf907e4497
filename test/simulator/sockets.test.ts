import assert from 'node:assert/strict'
import type { RequestEntry, SocketEntry } from '../../simulator/answer-request.ts'
import { type SimulatorOptions, startSimulator } from '../../simulator/start-simulator.ts'
import { closeAfter, test } from '../support/suite.ts'
import { dig, digNumber } from './dig.ts'
import { openSocket, refusedSocket, type SocketClient } from './socket-client.ts'

const authorization = 'Bearer sk-simulator'
const requests: RequestEntry[] = []
const entries: SocketEntry[] = []
const started = (options: SimulatorOptions = {}) =>
  startSimulator({
    chatKey: 'sk-simulator',
    onRequest: (entry) => requests.push(entry),
    onSocket: (entry) => entries.push(entry),
    ...options,
  })
const simulator = await started()
closeAfter(simulator)

const open = (path: string, behaviour?: string, on = simulator) =>
  openSocket(on, path, { headers: { authorization }, ...(behaviour === undefined ? {} : { behaviour }) })
const create = (more: object = {}) => ({
  type: 'response.create',
  model: 'gpt-4o',
  input: 'Tell me about tollgates.',
  ...more,
})
const asking = (behaviour: string) => create({ metadata: { 'x-simulator': behaviour } })

test('a handshake without the key, on another path or with a simulated error is refused like a request', async () => {
  const path = '/v1/responses'
  const missing = await refusedSocket(simulator, path)
  assert.deepEqual([missing.status, dig(missing.body, 'error.code')], [401, 'invalid_api_key'])
  assert.equal((await refusedSocket(simulator, '/v1/chat/completions', { authorization })).status, 404)
  const asked = { authorization, 'x-simulator': 'status=503' }
  assert.equal((await refusedSocket(simulator, path, asked)).status, 503)
  const protocols = ['realtime', 'openai-insecure-api-key.sk-simulator']
  const socket = await openSocket(simulator, path, { protocols })
  assert.equal(socket.ws.protocol, 'realtime')
  socket.ws.close()
})

test('a message that cannot be answered gets an error event, and the socket stays open', async () => {
  const socket = await open('/v1/responses')
  for (const [message, status, code] of [
    ['no JSON', 400, null],
    [{ type: 'response.steer' }, 400, null],
    [create({ background: true }), 400, null],
    [create({ model: 'gpt-none' }), 404, 'model_not_found'],
    [asking('status=429'), 429, 'rate_limit_exceeded'],
  ] as const) {
    socket.send(message)
    const event = await socket.takeType('error')
    assert.deepEqual([dig(event, 'status'), dig(event, 'error.code')], [status, code])
  }
  socket.send(asking('error-event=2'))
  assert.equal(dig(await socket.takeType('error'), 'error.type'), 'server_error')
  socket.send(create())
  await socket.takeType('response.completed')
  socket.ws.close()
})

const openRealtime = async (behaviour?: string): Promise<SocketClient> => {
  const socket = await open('/v1/realtime?model=gpt-realtime', behaviour)
  await socket.takeType('session.created')
  return socket
}
const say = (text: string) => ({
  type: 'conversation.item.create',
  item: { type: 'message', role: 'user', content: [{ type: 'input_text', text }] },
})

test('Realtime: one response at a time, which can be cancelled, and others outside the conversation', async () => {
  const socket = await openRealtime()
  socket.send(say('Hello.'))
  socket.send({ type: 'response.create', response: { metadata: { 'x-simulator': 'stall=9' } } })
  const created = await socket.takeType('response.created')
  await socket.takeType('response.output_audio.delta')
  socket.send({ type: 'response.create', event_id: 'mine' })
  const refused = await socket.takeType('error')
  assert.equal(dig(refused, 'error.code'), 'conversation_already_has_active_response')
  assert.equal(dig(refused, 'error.event_id'), 'mine')
  const beside = { conversation: 'none', input: [say('Beside.').item], output_modalities: ['text'] }
  socket.send({ type: 'response.create', response: beside })
  const other = await socket.takeType('response.done')
  assert.equal(dig(other, 'response.conversation_id'), null)
  assert.equal(dig(other, 'response.usage.input_tokens'), 4 + 2)
  socket.send({ type: 'response.cancel', response_id: dig(created, 'response.id') })
  const done = await socket.takeType('response.done')
  assert.deepEqual(dig(done, 'response.status_details'), { type: 'cancelled', reason: 'client_cancelled' })
  assert.ok(digNumber(done, 'response.usage.output_tokens') > 0)
  socket.ws.close()
})
