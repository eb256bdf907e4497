import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { ClientConnection, type ConnectionOwner, HEAD_TIMEOUT } from '../../src/http/client-connection.ts'
import type { IncomingRequest } from '../../src/http/incoming-request.ts'
import type { OutgoingReply } from '../../src/http/outgoing-reply.ts'
import { limits } from '../../src/kernel/limits.ts'
import { withDeadline } from '../support/deadline.ts'
import { before, closeAfter, test } from '../support/suite.ts'
import { until } from '../support/until.ts'

interface Served {
  readonly request: IncomingRequest
  readonly reply: OutgoingReply
}

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

const closing = (reply: OutgoingReply) => new Promise<void>((resolve) => reply.whenClosed.add(resolve))

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
  onClosed: (connection) => closed.put(connection),
}
const server = createServer((socket) => connections.put(new ClientConnection(socket, owner)))

before(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})
closeAfter(server)

async function open(): Promise<{ client: Socket; connection: ClientConnection }> {
  nowMs = 0
  draining = false
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  client.on('error', () => {})
  client.resume()
  return { client, connection: await connections.take() }
}

const GET = 'GET / HTTP/1.1\r\nHost: h\r\n\r\n'

function answer({ reply }: Served, status = 200): void {
  reply.writeHead(status, undefined, ['content-length', '2'])
  reply.end(Buffer.from('ok'))
}

test('a client that sends nothing is closed silently at the head timeout', async () => {
  const { client, connection } = await open()
  let bytes = 0
  client.on('data', (chunk) => {
    bytes += chunk.length
  })
  connection.checkTimeouts(limits.headTimeoutMs - 1)
  assert.equal(connection.socket.destroyed, false)
  connection.checkTimeouts(limits.headTimeoutMs)
  assert.equal(broken.size, 0)
  await closed.take()
  await once(client, 'close')
  assert.equal(bytes, 0)
})

test('a client that sends a partial head gets an error at the head timeout', async () => {
  const heads = { G: '', 'GET / HTTP/1.1\r\nHost: h\r\n': 'GET /\r\nHost: h\r\n' }
  for (const [part, head] of Object.entries(heads)) {
    const { client, connection } = await open()
    client.write(part)
    await until('the connection has read the start of the head', async () => !connection.isIdle)
    connection.checkTimeouts(limits.headTimeoutMs - 1)
    assert.equal(broken.size, 0)
    connection.checkTimeouts(limits.headTimeoutMs)
    assert.deepEqual(await broken.take(), { code: HEAD_TIMEOUT, head })
    await closed.take()
  }
})

test('an idle keep-alive connection closes silently at its timeout, not a millisecond earlier', async () => {
  const { client, connection } = await open()
  client.write(GET)
  answer(await served.take())
  await once(client, 'data')
  connection.checkTimeouts(limits.keepAliveTimeoutMs - 1)
  assert.equal(connection.socket.destroyed, false)
  connection.checkTimeouts(limits.keepAliveTimeoutMs)
  await closed.take()
  assert.equal(broken.size, 0)
})

test('a request that is being answered has no timeout', async () => {
  const { client, connection } = await open()
  client.write(GET)
  const given = await served.take()
  connection.checkTimeouts(1e9)
  assert.equal(connection.socket.destroyed, false)
  answer(given)
  await once(client, 'data')
  client.destroy()
  await closed.take()
})

test('pipelined requests are answered one by one, in order', async () => {
  const { client } = await open()
  const texts: string[] = []
  client.on('data', (chunk) => texts.push(chunk.toString()))
  client.write(Array.from({ length: 50 }, (_, i) => `GET /${i} HTTP/1.1\r\nHost: h\r\n\r\n`).join(''))
  for (let i = 0; i < 50; i += 1) {
    const next = await served.take()
    assert.equal(next.request.head.target, `/${i}`)
    assert.equal(served.size, 0, 'the next one waits')
    answer(next)
  }
  await until('all replies have arrived', async () => texts.join('').split('HTTP/1.1 200').length === 51)
  client.destroy()
  await closed.take()
})

test('requests sent ahead and answered at once leave iterations of the event loop to other connections', async () => {
  const turnsOf: number[] = []
  let turns = 0
  const countTurns = () => {
    turns += 1
    if (turnsOf.length < 50) setImmediate(countTurns)
  }
  const { promise: all, resolve } = Promise.withResolvers<void>()
  const prompt = createServer((socket) => {
    const onRequest = (request: IncomingRequest, reply: OutgoingReply) => {
      turnsOf.push(turns)
      answer({ request, reply })
      if (turnsOf.length === 50) resolve()
    }
    new ClientConnection(socket, { ...owner, onRequest, onClosed() {} })
  })
  prompt.listen(0, '127.0.0.1')
  await once(prompt, 'listening')
  const client = connect((prompt.address() as AddressInfo).port, '127.0.0.1').resume()
  setImmediate(countTurns)
  client.write(GET.repeat(50))
  await withDeadline(all, () => `${turnsOf.length} were served`)
  assert.equal(new Set(turnsOf).size, 50)
  client.destroy()
  prompt.close()
})

for (const status of [400, 401])
  test(`after many answers ${status} in a row the connection closes, and the last answer says so`, async () => {
    const { client } = await open()
    let text = ''
    client.on('data', (chunk) => {
      text += chunk.toString()
    })
    const count = limits.refusedInRowMax
    client.write(GET.repeat(3 * count))
    const replies = 2 * count - 1
    for (let i = 1; i <= replies; i += 1) answer(await served.take(), i === count - 1 ? 200 : status)
    await closed.take()
    assert.equal(served.size, 0)
    const heads = text.split('HTTP/1.1 ').slice(1)
    const closes = heads.map((head) => /Connection: close/.test(head))
    assert.deepEqual(closes, [...Array(replies - 1).fill(false), true])
  })

test('pipelined bytes above the limit are dropped, and the reply announces the close', async () => {
  const { client } = await open()
  const ended = once(client, 'close')
  let text = ''
  client.on('data', (chunk) => {
    text += chunk.toString()
  })
  client.write(GET + GET.repeat(5_000))
  const given = await served.take()
  await until('the bytes have been read', async () => given.reply.shouldKeepAlive === false)
  answer(given)
  await withDeadline(ended, () => 'it stayed open')
  assert.equal(text.split('HTTP/1.1 200').length, 2)
  assert.match(text, /Connection: close/)
  assert.equal(served.size, 0)
  await closed.take()
})

test('pipelined bytes that are not a request are answered in their turn', async () => {
  const { client } = await open()
  client.write(`${GET}nonsense\r\n\r\n`)
  const given = await served.take()
  assert.equal(broken.size, 0)
  answer(given)
  assert.match((await broken.take()).code, /^HPE_/)
  await closed.take()
})

for (const [what, ahead] of [
  ['many requests', GET.repeat(100)],
  ['a large body', `POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 300000\r\n\r\n${'a'.repeat(300_000)}`],
] as const) {
  test(`a client that leaves with ${what} pipelined is noticed`, async () => {
    const { client } = await open()
    client.write(GET + ahead)
    const { reply } = await served.take()
    const over = closing(reply)
    client.end()
    await withDeadline(over, () => 'the reply stayed open')
    await closed.take()
  })
}

const LARGE = Buffer.alloc(64 * 1024 * 1024)

const cut = (reply: OutgoingReply) => {
  reply.write(LARGE)
  reply.cut()
}
const unread: readonly [what: string, httpVersion: string, send: (reply: OutgoingReply) => unknown][] = [
  ['an unfinished reply', '1.1', (reply) => reply.write(LARGE)],
  ['a finished reply', '1.1', (reply) => reply.end(LARGE)],
  ['a cut reply', '1.1', cut],
  ['a cut reply', '1.0', cut],
]
for (const [what, httpVersion, send] of unread) {
  test(`an HTTP/${httpVersion} client that stops reading ${what} is cut off at the timeout`, async () => {
    const { client, connection } = await open()
    client.pause()
    client.write(GET.replace('1.1', httpVersion))
    const { reply } = await served.take()
    reply.writeHead(200, undefined, [])
    send(reply)
    connection.checkTimeouts(1_000)
    connection.checkTimeouts(1_000 + limits.replyStallTimeoutMs - 1)
    assert.equal(connection.socket.destroyed, false)
    connection.checkTimeouts(1_000 + limits.replyStallTimeoutMs)
    assert.equal(connection.socket.destroyed, true)
    await closed.take()
    client.destroy()
  })
}

test('a reply with nothing waiting to be sent is not cut off, however long it is silent', async () => {
  const { client, connection } = await open()
  client.write(GET)
  const { reply } = await served.take()
  reply.writeHead(200, undefined, [])
  reply.write(Buffer.from('first'))
  await once(client, 'data')
  connection.checkTimeouts(1_000)
  connection.checkTimeouts(1_000 + 2 * limits.replyStallTimeoutMs)
  assert.equal(connection.socket.destroyed, false)
  client.destroy()
  await closed.take()
})

for (const leave of ['end', 'resetAndDestroy'] as const) {
  test(`a client that leaves (${leave}) closes its reply, and no pipelined request begins`, async () => {
    const { client } = await open()
    client.write(GET + GET)
    const { reply } = await served.take()
    reply.writeHead(200, undefined, [])
    reply.write(Buffer.from('half'))
    await once(client, 'data')
    const over = closing(reply)
    client[leave]()
    await withDeadline(over, () => 'the reply did not close')
    assert.equal(reply.writableFinished, false)
    assert.equal(served.size, 0, 'the second request was handled although its client had left')
    await closed.take()
  })
}
