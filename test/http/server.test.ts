import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { TrustedProxies } from '../../src/http/addresses.ts'
import { sendWhole } from '../../src/http/exchange.ts'
import { HttpServer, type ServerOptions } from '../../src/http/server.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { headerNames } from '../../src/kernel/header-names.ts'
import { withDeadline } from '../support/deadline.ts'
import { after, before, test } from '../support/suite.ts'
import { until } from '../support/until.ts'

const REQUEST = 'GET / HTTP/1.1\r\nHost: tollgate\r\n\r\n'

let server: HttpServer
let address: AddressInfo

function serverWith(parts: Partial<ServerOptions>): HttpServer {
  return new HttpServer({
    clock: systemClock,
    nextUlid: () => '0',
    names: headerNames('svc'),
    onExchange(exchange) {
      const headers = ['Content-Length', '0', 'X-Came-From', exchange.clientIp]
      sendWhole(exchange, { status: 200, headers, body: Buffer.alloc(0) })
    },
    shapeBroken: () => assert.fail('every request here is one'),
    ...parts,
  })
}

before(async () => {
  server = serverWith({ connectionsMax: 2 })
  address = await server.listen('127.0.0.1', 0)
})

test('several servers can listen on one address, and only if both share it', async () => {
  const [one, two] = [serverWith({}), serverWith({})]
  const { port } = await one.listen('127.0.0.1', 0, true)
  assert.equal((await two.listen('127.0.0.1', port, true)).port, port)
  await assert.rejects(serverWith({}).listen('127.0.0.1', port), { code: 'EADDRINUSE' })
  await Promise.all([one.drain(0), two.drain(0)])
})

/** A connection that was accepted, or null. */
async function enter({ port } = address, localAddress = '127.0.0.1'): Promise<Socket | null> {
  const socket = connect({ port, host: '127.0.0.1', localAddress })
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

/** Retries, since the server may not have noticed yet that another client left. */
async function enterAtLast(at = address): Promise<Socket> {
  let socket: Socket | null = null
  await until('a client can connect', async () => {
    socket = await enter(at)
    return socket !== null
  })
  return socket ?? assert.fail()
}

after(() => server.drain(1_000))

test('connections above the limit are closed at once, and accepted again after others leave', async () => {
  const first = await enter()
  const second = await enter()
  assert.ok(first !== null && second !== null)
  assert.equal(await enter(), null)
  assert.equal(await enter(), null)

  first.destroy()
  const third = await enterAtLast()
  assert.equal(await enter(), null)

  // Accepted clients are still served.
  for (const socket of [second, third]) {
    socket.write(REQUEST)
    const [reply] = await withDeadline(once(socket, 'data'), () => 'no answer')
    assert.match(String(reply), /^HTTP\/1\.1 200 /)
  }
})

test('a drain ends after refused connections, and closes idle ones', async () => {
  assert.equal(await withDeadline(server.drain(60_000), () => 'it waits for somebody'), 0)
})

test('an address has a maximum of connections, which does not affect others and frees with each close', async () => {
  const crowded: string[] = []
  const narrow = serverWith({ connectionsPerAddressMax: 2, onCrowded: (from) => crowded.push(from) })
  const at = await narrow.listen('127.0.0.1', 0)
  const first = await enter(at)
  assert.ok(first !== null && (await enter(at)) !== null)
  assert.equal(await enter(at), null)
  assert.deepEqual(crowded, ['127.0.0.1'])
  assert.ok((await enter(at, '127.0.0.2')) !== null, 'another address was refused')

  first.destroy()
  await enterAtLast(at)
  assert.equal(await enter(at), null)
  await narrow.drain(0)
})

test('connections of a trusted proxy are not counted, and X-Forwarded-For names their client', async () => {
  const trustedProxies = new TrustedProxies(['127.0.0.0/31'])
  const open = serverWith({ connectionsPerAddressMax: 1, trustedProxies })
  const at = await open.listen('127.0.0.1', 0)
  async function cameFrom(localAddress: string): Promise<string> {
    const socket = connect({ port: at.port, host: '127.0.0.1', localAddress })
    socket.write(REQUEST.replace('\r\n\r\n', '\r\nX-Forwarded-For: 6.6.6.6, 203.0.113.9\r\n\r\n'))
    const [reply] = await withDeadline(once(socket, 'data'), () => 'no answer')
    return /x-came-from: (\S+)/i.exec(String(reply))?.[1] ?? ''
  }
  for (let i = 0; i < 5; i++) assert.equal(await cameFrom('127.0.0.1'), '203.0.113.9')
  assert.equal(await cameFrom('127.0.0.9'), '127.0.0.9')
  assert.equal(await enter(at, '127.0.0.9'), null)
  await open.drain(0)
})

test('a drain closes an upgraded connection and does not count it as a cut stream', async () => {
  const switching = serverWith({
    onExchange({ res }) {
      res.switchProtocols(undefined, ['Upgrade', 'websocket', 'Connection', 'Upgrade'])
    },
  })
  const { port } = await switching.listen('127.0.0.1', 0)
  const socket = connect({ port, host: '127.0.0.1' })
  socket.write(REQUEST.replace('\r\n\r\n', '\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'))
  const [answer] = await withDeadline(once(socket, 'data'), () => 'no answer')
  assert.match(String(answer), /^HTTP\/1\.1 101 /)
  const closed = once(socket.resume(), 'close')
  assert.equal(await withDeadline(switching.drain(0), () => 'it waits for somebody'), 0)
  await withDeadline(closed, () => 'it is still open')
})
