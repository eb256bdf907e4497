import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { after, before, test } from 'node:test'
import { ClientConnection, type ConnectionOwner, HEAD_TIMEOUT } from '../../src/http/client-connection.ts'
import type { IncomingRequest } from '../../src/http/incoming-request.ts'
import type { OutgoingReply } from '../../src/http/outgoing-reply.ts'
import { limits } from '../../src/kernel/limits.ts'
import { withDeadline } from '../support/deadline.ts'
import { until } from '../support/until.ts'

interface Served {
  readonly request: IncomingRequest
  readonly reply: OutgoingReply
}

/** What has come, one after the other. */
class Queue<T> {
  readonly #there: T[] = []
  readonly #waiting: ((value: T) => void)[] = []

  get size(): number {
    return this.#there.length
  }

  put(value: T): void {
    const waiting = this.#waiting.shift()
    if (waiting === undefined) this.#there.push(value)
    else waiting(value)
  }

  take(): Promise<T> {
    const value = this.#there.shift()
    if (value !== undefined) return Promise.resolve(value)
    return withDeadline(new Promise<T>((resolve) => this.#waiting.push(resolve)), () => 'nothing came')
  }
}

/** A server whose clock is the test's, and what comes in at it. */
let nowMs = 0
let draining = false
const connections = new Queue<ClientConnection>()
const served = new Queue<Served>()
const broken = new Queue<{ code: string; head: string }>()
const closed = new Queue<ClientConnection>()

const owner: ConnectionOwner = {
  get isDraining() {
    return draining
  },
  monotonicMs: () => nowMs,
  nowMs: () => 0,
  onRequest: (request, reply) => served.put({ request, reply }),
  onBroken(socket, error, head) {
    broken.put({ code: error.code, head })
    socket.end()
  },
  onConnect: (socket) => socket.destroy(),
  onClosed: (connection) => closed.put(connection),
}
const server = createServer((socket) => connections.put(new ClientConnection(socket, owner)))

before(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})
after(() => server.close())

async function open(): Promise<{ client: Socket; connection: ClientConnection }> {
  nowMs = 0
  draining = false
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  client.on('error', () => {})
  client.resume()
  return { client, connection: await connections.take() }
}

const GET = 'GET / HTTP/1.1\r\nHost: h\r\n\r\n'

function answer({ reply }: Served): void {
  reply.writeHead(200, undefined, ['content-length', '2'])
  reply.end(Buffer.from('ok'))
}

test('a client that says nothing is told so when a head would have had to be there', async () => {
  const { connection } = await open()
  connection.checkTime(limits.headTimeoutMs - 1)
  assert.equal(broken.size, 0)
  connection.checkTime(limits.headTimeoutMs)
  assert.deepEqual(await broken.take(), { code: HEAD_TIMEOUT, head: '' })
  await closed.take()
})

test('on a connection that is kept, the head has its time from its first byte on', async () => {
  const { client, connection } = await open()
  client.write(GET)
  answer(await served.take())
  await once(client, 'data')
  nowMs = 60_000
  client.write('GET / HT')
  await until('the head has begun', async () => !connection.isIdle)
  connection.checkTime(nowMs + limits.headTimeoutMs - 1)
  assert.equal(broken.size, 0)
  connection.checkTime(nowMs + limits.headTimeoutMs)
  assert.equal((await broken.take()).code, HEAD_TIMEOUT)
  await closed.take()
})

test('a connection that is kept and idle closes without a word, and not a millisecond early', async () => {
  const { client, connection } = await open()
  client.write(GET)
  answer(await served.take())
  await once(client, 'data')
  connection.checkTime(limits.keepAliveTimeoutMs - 1)
  assert.equal(connection.socket.destroyed, false)
  connection.checkTime(limits.keepAliveTimeoutMs)
  await closed.take()
  assert.equal(broken.size, 0)
})

test('while a request is being answered there is no limit to its time', async () => {
  const { client, connection } = await open()
  client.write(GET)
  const given = await served.take()
  connection.checkTime(1e9)
  assert.equal(connection.socket.destroyed, false)
  answer(given)
  await once(client, 'data')
  client.destroy()
  await closed.take()
})

test('what is sent ahead is taken in up to a bound, and is answered in its order', async () => {
  const { client, connection } = await open()
  const count = 5_000
  const texts: string[] = []
  client.on('data', (chunk) => texts.push(chunk.toString()))
  const sent = Array.from({ length: count }, (_, i) => `GET /${i} HTTP/1.1\r\nHost: h\r\n\r\n`)
  client.write(sent.join(''))
  const first = await served.take()
  // What one read has brought is there; the next waits.
  assert.ok(connection.replies.length < 4_000, `${connection.replies.length} of ${count} were taken in`)
  assert.equal(connection.socket.isPaused(), true)
  answer(first)
  for (let i = 1; i < count; i += 1) {
    const next = await served.take()
    assert.equal(next.request.target, `/${i}`)
    answer(next)
  }
  const whole = () => texts.join('').split('HTTP/1.1 200').length - 1 === count
  const allCame = async () => {
    while (!whole()) await once(client, 'data')
  }
  await withDeadline(allCame(), () => 'not all was answered')
  client.destroy()
  await closed.take()
})

for (const leave of ['end', 'resetAndDestroy'] as const) {
  test(`a client that leaves (${leave}) closes its reply and those that wait for their turn`, async () => {
    const { client, connection } = await open()
    client.write(GET + GET)
    const { reply } = await served.take()
    const [, second] = connection.replies
    reply.writeHead(200, undefined, [])
    reply.write(Buffer.from('half'))
    await once(client, 'data')
    const both = Promise.all([once(reply, 'close'), second === undefined ? null : once(second, 'close')])
    client[leave]()
    await withDeadline(both, () => 'a reply did not close')
    assert.equal(reply.writableFinished, false)
    assert.equal(served.size, 0, 'the second was begun for nobody')
    await closed.take()
  })
}

test('while draining, the last reply closes its connection', async () => {
  const { client } = await open()
  client.write(GET)
  const given = await served.take()
  draining = true
  answer(given)
  await once(client, 'data')
  await withDeadline(once(client, 'close'), () => 'it stayed open')
  await closed.take()
})

test('a reply that comes before the request is whole leaves the rest to be read, and the next request its place', async () => {
  const { client } = await open()
  client.write('POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhalf')
  const first = await served.take()
  answer(first)
  first.request.discard(60_000)
  await once(client, 'data')
  client.write(`there.${GET}`)
  const second = await served.take()
  assert.equal(second.request.method, 'GET')
  client.destroy()
  await closed.take()
})
