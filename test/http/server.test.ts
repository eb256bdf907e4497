import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { after, before, test } from 'node:test'
import { sendWhole } from '../../src/http/exchange.ts'
import { createHttpServer, type HttpServer } from '../../src/http/server.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { headerNames } from '../../src/kernel/header-names.ts'
import { withDeadline } from '../support/deadline.ts'

const REQUEST = 'GET / HTTP/1.1\r\nHost: tollgate\r\n\r\n'

let server: HttpServer
let address: AddressInfo

before(async () => {
  server = createHttpServer({
    clock: systemClock,
    nextUlid: () => '0',
    names: headerNames('svc'),
    onExchange: (exchange) =>
      sendWhole(exchange, { status: 200, headers: ['Content-Length', '0'], body: Buffer.alloc(0) }),
    shapeBroken: () => assert.fail('every request here is one'),
    refuseExchange: () => assert.fail('nothing is expected here'),
    connectionsMax: 2,
  })
  address = await server.listen('127.0.0.1', 0)
})

/** A connection that was let in, or null. */
async function enter(): Promise<Socket | null> {
  const socket = connect(address.port, '127.0.0.1')
  socket.on('error', () => {})
  socket.write(REQUEST)
  const came = Promise.race([
    once(socket, 'data').then(([reply]) => String(reply)),
    once(socket, 'close').then(() => ''),
  ])
  const reply = await withDeadline(came, () => 'neither an answer nor a close')
  if (reply !== '') assert.match(reply, /^HTTP\/1\.1 200 /)
  return reply === '' ? null : socket
}

/** Whoever left may not be seen to have left yet. */
async function enterAtLast(): Promise<Socket> {
  for (let i = 0; i < 1_000; i++) {
    const socket = await enter()
    if (socket !== null) return socket
  }
  assert.fail('nobody is let in any more')
}

after(() => server.drain(1_000))

test('connections beyond the limit are closed at once, and let in again when others have left', async () => {
  const first = await enter()
  const second = await enter()
  assert.ok(first !== null && second !== null)
  assert.equal(await enter(), null)
  assert.equal(await enter(), null)

  first.destroy()
  const third = await enterAtLast()
  assert.equal(await enter(), null)

  // Those who are in are served as before.
  for (const socket of [second, third]) {
    socket.write(REQUEST)
    const [reply] = await withDeadline(once(socket, 'data'), () => 'no answer')
    assert.match(String(reply), /^HTTP\/1\.1 200 /)
  }
})

test('a drain ends though connections were refused, and idle ones are closed', async () => {
  assert.equal(await withDeadline(server.drain(60_000), () => 'it waits for somebody'), 0)
})
