import assert from 'node:assert/strict'
import type { RequestEntry, SocketEntry } from '../../simulator/answer-request.ts'
import { startSimulator } from '../../simulator/start-simulator.ts'
import { test } from '../support/suite.ts'
import { dig } from './dig.ts'
import { isTerminal, openSocket, refusedSocket } from './socket-client.ts'
import { chatBody, exchange, rawPost } from './wire-client.ts'

const path = '/v1/responses'
const create = (behaviour?: string) => ({
  type: 'response.create',
  model: 'gpt-4o',
  input: 'Tell me about tollgates.',
  ...(behaviour === undefined ? {} : { metadata: { 'x-simulator': behaviour } }),
})

test('a handshake without the key, on another path or with a wish to fail is refused as a request is', async () => {
  await using simulator = await started({ chatKey: 'sk-simulator' })
  const authorization = 'Bearer sk-simulator'
  const missing = await refusedSocket(simulator, path)
  assert.equal(missing.status, 401)
  assert.match(String(dig(missing.body, 'error.message')), /didn't provide an API key/)
  const wrong = await refusedSocket(simulator, path, { authorization: 'Bearer sk-other' })
  assert.equal(dig(wrong.body, 'error.code'), 'invalid_api_key')
  assert.equal((await refusedSocket(simulator, '/v1/chat/completions', { authorization })).status, 404)
  const asked = { authorization, 'x-simulator': 'status=503' }
  assert.equal((await refusedSocket(simulator, path, asked)).status, 503)
})

test('an upgrade that is no WebSocket is served as a request, and a bad handshake is not', async () => {
  await using simulator = await started({})
  const lines = ['connection: close, upgrade', 'upgrade: h2c']
  const served = await exchange(simulator, rawPost('/v1/chat/completions', chatBody(), lines))
  assert.match(served.toString(), /^HTTP\/1\.1 200 /)
  const head = `GET ${path} HTTP/1.1\r\nhost: simulator\r\nconnection: upgrade\r\nupgrade: websocket\r\n`
  const refused = await exchange(simulator, `${head}sec-websocket-version: 13\r\n\r\n`)
  assert.match(refused.toString(), /^HTTP\/1\.1 400 /)
})

test('a key may come as a subprotocol, and the answer is realtime', async () => {
  await using simulator = await started({ chatKey: 'sk-simulator' })
  const protocols = ['realtime', 'openai-insecure-api-key.sk-simulator']
  const socket = await openSocket(simulator, path, { protocols })
  assert.equal(socket.ws.protocol, 'realtime')
  socket.ws.close()
})

test('handshakes, messages and closing can be looked at', async () => {
  const requests: RequestEntry[] = []
  const entries: SocketEntry[] = []
  await using simulator = await started({
    onRequest: (entry) => requests.push(entry),
    onSocket: (entry) => entries.push(entry),
  })
  const socket = await openSocket(simulator, `${path}?a=1`)
  assert.equal(simulator.sockets, 1)
  socket.send(create())
  await socket.takeUntil(isTerminal)
  socket.ws.close(4_001, 'enough')
  assert.equal((await socket.closed()).code, 4_001)
  assert.deepEqual(
    requests.map((entry) => [entry.method, entry.path]),
    [['GET', `${path}?a=1`]],
  )
  const [message, close] = entries
  assert.equal(message?.kind === 'message' && message.data.toString(), JSON.stringify(create()))
  assert.deepEqual(close, { kind: 'close', socket: 1, path: `${path}?a=1`, code: 4_001, reason: 'enough' })
})

test('a message of fragments is the message', async () => {
  await using simulator = await started({ deterministic: true })
  const whole = await openSocket(simulator, path)
  const sliced = await openSocket(simulator, path)
  whole.send(create())
  sliced.send(create('chunks=7'))
  await whole.takeUntil(isTerminal)
  await sliced.takeUntil(isTerminal)
  const types = (events: readonly unknown[]) =>
    events.map((event) => [dig(event, 'type'), dig(event, 'delta')])
  assert.deepEqual(types(sliced.received), types(whole.received))
  for (const { ws } of [whole, sliced]) ws.close()
})

test('a turn can break, stall, fail and talk nonsense on demand', async () => {
  await using simulator = await started({})
  const meet = async (behaviour: string) => {
    const socket = await openSocket(simulator, path)
    socket.send(create(behaviour))
    return socket
  }
  for (const behaviour of ['cut=event:4', 'cut=mid-event', 'cut=byte:9000']) {
    const socket = await meet(behaviour)
    assert.equal((await socket.closed()).code, 1_006, behaviour)
    if (behaviour === 'cut=event:4') assert.equal(socket.received.length, 4)
    if (behaviour === 'cut=mid-event') assert.equal(socket.received.length, 2)
  }
  const closed = await meet('close=1011:3')
  assert.equal((await closed.closed()).code, 1_011)
  assert.equal(closed.received.length, 3)

  const failed = await meet('error-event=2')
  const events = await failed.takeUntil(isTerminal)
  assert.equal(dig(events.at(-1), 'error.type'), 'server_error')
  assert.equal(dig(events.at(-1), 'sequence_number'), events.length - 1)
  failed.ws.close()

  const confused = await meet('garbage=2')
  const seen = await confused.takeUntil(isTerminal)
  assert.equal(seen[2], '{"type":"response.')
  assert.equal(dig(seen.at(-1), 'type'), 'response.completed')
  confused.ws.close()

  const stalled = await meet('stall=3')
  stalled.send('no JSON')
  const before = await stalled.takeUntil((event) => dig(event, 'type') === 'error')
  assert.ok(before.length <= 4)
  stalled.ws.close()
})

test('in a deterministic simulator the same conversation gets the same bytes', async () => {
  const converse = async () => {
    await using simulator = await started({ deterministic: true })
    const socket = await openSocket(simulator, path)
    for (const _ of [1, 2]) {
      socket.send(create())
      await socket.takeUntil(isTerminal)
    }
    socket.ws.close()
    return socket.received
  }
  const [one, two] = [await converse(), await converse()]
  assert.deepEqual(one, two)
  assert.equal(new Set(one.flatMap((event) => dig(event, 'response.id') ?? [])).size, 2)
})

async function started(options: Parameters<typeof startSimulator>[0]) {
  const simulator = await startSimulator(options)
  return Object.assign(simulator, { [Symbol.asyncDispose]: () => simulator.close() })
}
