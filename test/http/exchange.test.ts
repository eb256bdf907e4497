import assert from 'node:assert/strict'
import { createConnection } from 'node:net'
import { type Exchange, sendStream, sendWhole, UNREAD_BYTES_MAX } from '../../src/http/exchange.ts'
import { HttpServer } from '../../src/http/server.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { headerNames } from '../../src/kernel/header-names.ts'
import { createUlidSource } from '../../src/kernel/ids.ts'
import { withDeadline } from '../support/deadline.ts'
import { connect, exchange as exchangeWith } from '../support/raw-client.ts'
import { after, test } from '../support/suite.ts'
import { message } from '../support/wire-bytes.ts'
import { headerValues } from '../support/wire-message.ts'

const sources = new Map<string, () => AsyncIterable<Buffer>>()
const WHOLE = { status: 503, headers: ['content-length', '4'], body: Buffer.from('away') }

async function answer(exchange: Exchange): Promise<void> {
  const source = sources.get(exchange.req.head.target)
  if (source === undefined) return sendWhole(exchange, { ...WHOLE, status: 200 })
  try {
    await sendStream(exchange, { status: 200, headers: ['content-type', 'text/plain'], chunks: source() })
  } catch {
    sendWhole(exchange, WHOLE)
  }
}

const PARTS = {
  clock: systemClock,
  nextUlid: createUlidSource(systemClock),
  names: headerNames('svc'),
  shapeBroken: () => WHOLE,
}
const server = new HttpServer({ ...PARTS, onExchange: (exchange) => void answer(exchange) })
const address = { host: '127.0.0.1', port: (await server.listen('127.0.0.1', 0)).port }
after(() => server.drain(0))

const get = (path: string, version = '1.1') => message(`GET ${path} HTTP/${version}`, ['Host: h'])

test('the reply is the source’s chunks, chunked, with the request id, and the connection stays open', async () => {
  sources.set('/three', async function* () {
    for (const text of ['one ', '', 'two ', 'three']) yield Buffer.from(text)
  })
  const connection = await connect(address)
  for (let round = 0; round < 2; round += 1) {
    const reply = await connection.request(get('/three'))
    assert.deepEqual([reply.status, reply.body.toString(), reply.ended], [200, 'one two three', 'complete'])
    assert.deepEqual(headerValues(reply.headerLines, 'transfer-encoding'), ['chunked'])
    assert.deepEqual(headerValues(reply.headerLines, 'content-type'), ['text/plain'])
    assert.match(headerValues(reply.headerLines, 'x-svc-request-id').join(), /^req_/)
  }
  connection.leave()
})

test('an empty source is an empty body', async () => {
  sources.set('/nothing', async function* () {})
  const { status, body, ended } = await exchangeWith(address, get('/nothing'))
  assert.deepEqual([status, body.length, ended], [200, 0, 'complete'])
})

test('a failure before the first chunk is reported as an error', async () => {
  const away = { next: () => Promise.reject(new Error('the store is away')) }
  sources.set('/broken', () => ({ [Symbol.asyncIterator]: () => away }))
  const { status, body, ended } = await exchangeWith(address, get('/broken'))
  assert.deepEqual([status, body.toString(), ended], [503, 'away', 'complete'])
})

for (const version of ['1.1', '1.0']) {
  test(`a failure after the first chunk makes the reply incomplete in HTTP/${version}`, async () => {
    const { promise: seen, resolve: goOn } = Promise.withResolvers<void>()
    sources.set('/half', async function* () {
      yield Buffer.from('half of it')
      await seen
      throw new Error('the store is away')
    })
    const connection = await connect(address)
    const reading = connection.request(get('/half', version))
    await connection.received('half of it')
    goOn()
    const { status, body, ended } = await reading
    assert.deepEqual([status, body.toString(), ended], [200, 'half of it', 'cut'])
  })
}

function endless() {
  const { promise: stopped, resolve } = Promise.withResolvers<void>()
  let asked = 0
  async function* source() {
    try {
      for (;;) {
        asked += 1
        yield Buffer.alloc(1_000)
        await new Promise((next) => setImmediate(next))
      }
    } finally {
      resolve()
    }
  }
  return {
    source,
    asked: () => asked,
    stopped: withDeadline(stopped, () => `still going after ${asked} chunks`),
  }
}

for (const [how, leave] of [
  ['closes', 'leave'],
  ['resets', 'reset'],
] as const) {
  test(`no more chunks are produced for a client that ${how} the connection`, async () => {
    const { source, stopped } = endless()
    sources.set('/endless', source)
    const connection = await connect(address)
    const reading = connection.request(get('/endless'))
    reading.catch(() => undefined)
    await connection.reached(10_000)
    connection[leave]()
    await stopped
  })
}

test('replies that no client reads use bounded memory: the connection that has waited longest closes', async () => {
  const body = Buffer.alloc(UNREAD_BYTES_MAX / 8)
  const sent: Exchange[] = []
  let onSent = () => {}
  const large = new HttpServer({
    ...PARTS,
    onExchange(exchange) {
      sent.push(exchange)
      sendWhole(exchange, { status: 200, headers: ['content-length', String(body.length)], body })
      onSent()
    },
  })
  const where = { host: '127.0.0.1', port: (await large.listen('127.0.0.1', 0)).port }
  const clients = Array.from({ length: 10 }, () => createConnection(where).pause())
  try {
    for (const client of clients) {
      const isSent = new Promise<void>((resolve) => {
        onSent = resolve
      })
      client.on('error', () => {}).write(get('/large'))
      await isSent
    }
    assert.deepEqual(
      sent.map(({ res }) => res.destroyed),
      [true, true, ...Array(8).fill(false)],
    )
  } finally {
    for (const client of clients) client.destroy()
    await large.drain(0)
  }
})
