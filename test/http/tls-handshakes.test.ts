import assert from 'node:assert/strict'
import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import tls from 'node:tls'
import { sendWhole } from '../../src/http/exchange.ts'
import { HttpServer, type ServerOptions } from '../../src/http/server.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { headerNames } from '../../src/kernel/header-names.ts'
import { limits } from '../../src/kernel/limits.ts'
import { localPair, otherPair } from '../support/certificates.ts'
import { withDeadline } from '../support/deadline.ts'
import { after, before, test } from '../support/suite.ts'
import { until } from '../support/until.ts'

const REQUEST = 'GET / HTTP/1.1\r\nHost: tollgate\r\n\r\n'

function serverWith(parts: Partial<ServerOptions>): HttpServer {
  return new HttpServer({
    clock: systemClock,
    nextUlid: () => '0',
    names: headerNames('svc'),
    onExchange(exchange) {
      sendWhole(exchange, { status: 200, headers: ['Content-Length', '0'], body: Buffer.alloc(0) })
    },
    shapeBroken: (refusal) => ({ status: 400, headers: [], body: Buffer.from(refusal.message) }),
    certificate: localPair,
    ...parts,
  })
}

let server: HttpServer
let address: AddressInfo
before(async () => {
  server = serverWith({})
  address = await server.listen('127.0.0.1', 0)
})
after(() => server.drain(0))

async function enter(options: tls.ConnectionOptions = {}, at = address): Promise<tls.TLSSocket> {
  const socket = tls.connect({
    host: '127.0.0.1',
    port: at.port,
    ca: [localPair.cert, otherPair.cert],
    ...options,
  })
  socket.on('error', () => {})
  const refused = once(socket, 'error').then(([error]) => Promise.reject(error))
  await withDeadline(Promise.race([once(socket, 'secureConnect'), refused]), () => 'no handshake')
  return socket
}

/** A connection that has sent none or only these bytes of its handshake. */
async function arrive(bytes: string | Buffer = '', at = address): Promise<net.Socket> {
  const socket = net.connect({ host: '127.0.0.1', port: at.port })
  socket.on('error', () => {})
  await once(socket, 'connect')
  if (bytes.length > 0) socket.write(bytes)
  return socket
}

async function isServed(socket: net.Socket): Promise<boolean> {
  const answered = once(socket, 'data').then(([reply]) => String(reply).startsWith('HTTP/1.1 200 '))
  socket.write(REQUEST)
  return await withDeadline(
    Promise.race([answered, once(socket, 'close').then(() => false)]),
    () => 'no answer',
  )
}

const closing = (socket: net.Socket) => {
  socket.resume()
  return withDeadline(once(socket, 'close'), () => 'it stays open')
}

/** The first bytes of a client's handshake, up to the host name. */
async function halfAHello(): Promise<Buffer> {
  const listener = net.createServer().listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const client = tls.connect({ host: '127.0.0.1', port: (listener.address() as AddressInfo).port })
  client.on('error', () => {})
  const [socket] = (await once(listener, 'connection')) as [net.Socket]
  const [hello] = (await once(socket, 'data')) as [Buffer]
  client.destroy()
  socket.destroy()
  listener.close()
  return hello.subarray(0, 50)
}

for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
  test(`${version} is accepted, with HTTP/1.1`, async () => {
    const socket = await enter({
      minVersion: version,
      maxVersion: version,
      ALPNProtocols: ['h2', 'http/1.1'],
    })
    assert.equal(socket.getProtocol(), version)
    assert.equal(socket.alpnProtocol, 'http/1.1')
    assert.ok(await isServed(socket))
    assert.ok(await isServed(socket), 'the connection was not kept')
    socket.destroy()
  })
}

test('older TLS versions, and clients that offer only HTTP/2, are refused in the handshake', async () => {
  const old = { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT:@SECLEVEL=0' } as const
  await assert.rejects(enter(old), { code: 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION' })
  await assert.rejects(enter({ ALPNProtocols: ['h2'] }), {
    code: 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL',
  })
})

test('a record that cannot be decrypted closes the connection', async () => {
  const wire = await arrive()
  const socket = await enter({ socket: wire, host: '127.0.0.1' })
  assert.ok(await isServed(socket))
  const closed = closing(wire)
  wire.write(Buffer.from('17030300300000000000', 'hex'))
  wire.write(Buffer.alloc(48))
  await closed
})

test('bytes that are neither TLS nor HTTP close the connection silently', async () => {
  const socket = await arrive(Buffer.from([0, 1, 2, 3, 4, 5, 6, 7]))
  await closing(socket)
})

for (const [which, begun] of [
  ['silent connections', () => ''],
  ['unfinished handshakes', halfAHello],
] as const) {
  test(`${which} count as connections, in total and per address, until they close`, async () => {
    for (const bound of [{ connectionsMax: 2 }, { connectionsPerAddressMax: 2 }]) {
      const narrow = serverWith(bound)
      const at = await narrow.listen('127.0.0.1', 0)
      const bytes = await begun()
      const first = await arrive(bytes, at)
      const second = await enter({}, at)
      assert.ok(await isServed(second))
      await closing(await arrive('', at))
      first.destroy()
      // The server notices some time later that the first client left.
      await until('another client can connect', async () => {
        const next = await enter({}, at).catch(() => null)
        return next !== null && (await isServed(next))
      })
      await closing(await arrive('', at))
      await narrow.drain(0)
    }
  })

  test(`${which} are closed at their timeout, and served ones are not`, async (t: TestContext) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    let nowMs = 0
    const timed = serverWith({ clock: { ...systemClock, monotonicMs: () => nowMs } })
    const at = await timed.listen('127.0.0.1', 0)
    const served = await enter({}, at)
    assert.ok(await isServed(served))
    const late = await arrive(await begun(), at)
    // The server has accepted the connection once it accepts the next one.
    ;(await enter({}, at)).destroy()
    nowMs = limits.tlsHandshakeTimeoutMs - 1
    t.mock.timers.tick(1_000)
    const early = await enter({}, at)
    assert.equal(late.destroyed, false)
    nowMs += 1
    t.mock.timers.tick(1_000)
    await closing(late)
    assert.ok(await isServed(served))
    assert.ok(await isServed(early), 'the timeout for a head begins at the end of the handshake')
    await timed.drain(0)
  })

  test(`${which} do not delay a drain`, async () => {
    const leaving = serverWith({})
    const at = await leaving.listen('127.0.0.1', 0)
    const waiting = await arrive(await begun(), at)
    const closed = closing(waiting)
    ;(await enter({}, at)).destroy()
    assert.equal(await withDeadline(leaving.drain(60_000), () => 'it waits for a handshake'), 0)
    await closed
  })
}

test('a new certificate applies to new connections, and open ones stay', async () => {
  const changed = serverWith({})
  const at = await changed.listen('127.0.0.1', 0)
  const commonName = (socket: tls.TLSSocket) => socket.getPeerCertificate().subject.CN
  const before = await enter({}, at)
  assert.equal(commonName(before), 'upstream.test')
  changed.useCertificate(otherPair)
  const after = await enter({}, at)
  assert.equal(commonName(after), 'other.test')
  assert.ok(await isServed(before))
  assert.ok(await isServed(after))
  // The protocols configured at the start also apply with the new certificate.
  await assert.rejects(enter({ ALPNProtocols: ['h2'] }, at), { code: /NO_APPLICATION_PROTOCOL/ })
  await assertNoRenegotiation(at)
  await changed.drain(0)
})

/** A renegotiation costs the server far more than the client. */
async function assertNoRenegotiation(at: AddressInfo): Promise<void> {
  const socket = await enter({ maxVersion: 'TLSv1.2' }, at)
  const failed = once(socket, 'error')
  socket.renegotiate({}, () => {})
  const [error] = await withDeadline(failed, () => 'it renegotiates')
  assert.match(String((error as NodeJS.ErrnoException).code), /NO_RENEGOTIATION/)
}

test('a renegotiation is refused', () => assertNoRenegotiation(address))
