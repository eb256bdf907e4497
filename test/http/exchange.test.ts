import assert from 'node:assert/strict'
import { type Exchange, sendStream, sendWhole } from '../../src/http/exchange.ts'
import { createHttpServer } from '../../src/http/server.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { headerNames } from '../../src/kernel/header-names.ts'
import { createUlidSource } from '../../src/kernel/ids.ts'
import { withDeadline } from '../support/deadline.ts'
import { connect, exchange as exchangeWith } from '../support/raw-client.ts'
import { after, test } from '../support/suite.ts'
import { message } from '../support/wire-bytes.ts'
import { headerValues } from '../support/wire-message.ts'

/** The stream of each path; set by the test that asks for it. */
const sources = new Map<string, () => AsyncIterable<Buffer>>()
const WHOLE = { status: 503, headers: ['content-length', '4'], body: Buffer.from('away') }

async function answer(exchange: Exchange): Promise<void> {
  const source = sources.get(exchange.req.target)
  if (source === undefined) return sendWhole(exchange, { ...WHOLE, status: 200 })
  try {
    await sendStream(exchange, { status: 200, headers: ['content-type', 'text/plain'], chunks: source() })
  } catch {
    sendWhole(exchange, WHOLE)
  }
}

const server = createHttpServer({
  clock: systemClock,
  nextUlid: createUlidSource(systemClock),
  names: headerNames('svc'),
  onExchange: (exchange) => void answer(exchange),
  shapeBroken: () => WHOLE,
  refuseExchange: (exchange) => sendWhole(exchange, WHOLE),
})
const address = { host: '127.0.0.1', port: (await server.listen('127.0.0.1', 0)).port }
after(() => server.drain(0))

const get = (path: string, version = '1.1') => message(`GET ${path} HTTP/${version}`, ['Host: h'])

test('the chunks are the body, in chunks, with the request id, and the connection goes on', async () => {
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

test('nothing at all is an empty body', async () => {
  sources.set('/nothing', async function* () {})
  const { status, body, ended } = await exchangeWith(address, get('/nothing'))
  assert.deepEqual([status, body.length, ended], [200, 0, 'complete'])
})

test('a failure before the first chunk is still reported as one', async () => {
  const away = { next: () => Promise.reject(new Error('the store is away')) }
  sources.set('/broken', () => ({ [Symbol.asyncIterator]: () => away }))
  const { status, body, ended } = await exchangeWith(address, get('/broken'))
  assert.deepEqual([status, body.toString(), ended], [503, 'away', 'complete'])
})

for (const version of ['1.1', '1.0']) {
  test(`a failure after it cuts the answer so that it cannot pass for whole, in HTTP/${version}`, async () => {
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

test('a client that does not read is not written ahead for, and gets all of it when it does', async () => {
  const size = 64 * 1024
  const chunks = 1_024
  let asked = 0
  sources.set('/long', async function* () {
    for (; asked < chunks; asked += 1) yield Buffer.alloc(size, asked % 251)
  })
  const connection = await connect(address)
  const reading = connection.request(get('/long'))
  connection.pause()
  // When 50 other exchanges went through and no chunk was asked for, the exchange waits for the client.
  let still = 0
  for (let before = -1; still < 50; before = asked) {
    still = before === asked ? still + 1 : 0
    await exchangeWith(address, get('/'))
  }
  assert.ok(asked < chunks / 2, `${asked} of ${chunks} chunks were made for a client that takes none`)
  connection.resume()
  const { body, ended } = await reading
  assert.deepEqual([body.length, ended, asked], [size * chunks, 'complete', chunks])
  connection.leave()
})

/** Chunks without end, and a promise of the moment at which no more are wanted. */
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
  test(`no more chunks are made for a client that ${how} the connection`, async () => {
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

test('no more chunks are made for a client that leaves while it has no room', async () => {
  const { source, stopped } = endless()
  sources.set('/endless', source)
  const connection = await connect(address)
  const reading = connection.request(get('/endless'))
  reading.catch(() => undefined)
  await connection.reached(10_000)
  connection.pause()
  for (let i = 0; i < 20; i += 1) await exchangeWith(address, get('/'))
  connection.reset()
  await stopped
})

test('a pipelined answer waits for its turn, and is not begun if the client leaves before', async () => {
  const first = endless()
  const second = endless()
  sources.set('/first', first.source)
  sources.set('/second', second.source)
  const connection = await connect(address)
  const reading = connection.request([get('/first'), get('/second')])
  reading.catch(() => undefined)
  await connection.reached(10_000)
  assert.equal(second.asked(), 0)
  connection.leave()
  await first.stopped
  await exchangeWith(address, get('/'))
  assert.equal(second.asked(), 0)
})

test('pipelined answers come in their order', async () => {
  sources.set('/three', async function* () {
    for (const text of ['one ', 'two ', 'three']) yield Buffer.from(text)
  })
  const connection = await connect(address)
  const first = connection.read()
  await connection.send([get('/three'), get('/three')])
  assert.equal((await first).body.toString(), 'one two three')
  assert.equal((await connection.read()).body.toString(), 'one two three')
  connection.leave()
})
