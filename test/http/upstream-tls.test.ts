import assert from 'node:assert/strict'
import net, { type AddressInfo } from 'node:net'
import tls from 'node:tls'
import { callUpstream, openUpstream } from '../../src/http/upstream-connection.ts'
import { limits } from '../../src/kernel/limits.ts'
import { localPair } from '../support/certificates.ts'
import { withDeadline } from '../support/deadline.ts'
import { createLogLines } from '../support/log-lines.ts'
import { after, test } from '../support/suite.ts'
import { describeEnd, TakenReply } from './raw-upstream.ts'

const { key, cert } = localPair
const reply = 'HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n'
const seen: { servername: string | false; protocol: string | false | null; reused: boolean }[] = []
const sockets = new Set<tls.TLSSocket>()
const server = tls.createServer({ key, cert, ALPNProtocols: ['h2', 'http/1.1'] }, (socket) => {
  sockets.add(socket)
  seen.push({
    servername: socket.servername ?? false,
    protocol: socket.alpnProtocol,
    reused: socket.isSessionReused(),
  })
  let bytes = 0
  socket.on('error', () => {})
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes < 500_000) return
    bytes = 0
    socket.write(reply)
    socket.write(Buffer.alloc(1_000_000, 'r'))
  })
})
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
after(() => {
  for (const socket of sockets) socket.destroy()
  server.close()
})
const { port } = server.address() as AddressInfo

const { log } = createLogLines()

function send(pool: ReturnType<typeof openUpstream>['pool']) {
  const taken = new TakenReply()
  const body = [Buffer.alloc(500_000, 'b')]
  const request = { method: 'POST', target: '/', host: 'up', headers: [], lengthBytes: null, body }
  const { ended } = callUpstream(pool, request, taken)
  return { taken, ended: withDeadline(ended, () => 'the call has not ended') }
}

test('nothing is sent to a server with an untrusted certificate', async () => {
  const { pool } = openUpstream({ url: new URL(`https://localhost:${port}`), key: null }, log)
  assert.equal(describeEnd(await send(pool).ended), 'failed before sending: DEPTH_ZERO_SELF_SIGNED_CERT')
  pool.destroy()
})

test('calls over TLS name the host, speak HTTP/1.1, share their connection and resume the session', async () => {
  tls.setDefaultCACertificates([cert])
  seen.length = 0
  const { pool } = openUpstream({ url: new URL(`https://localhost:${port}`), key: null }, log)
  for (let round = 0; round < 3; round++) {
    const { taken, ended } = send(pool)
    assert.equal(describeEnd(await ended), 'complete')
    assert.equal(taken.bytes.length, 1_000_000)
  }
  assert.deepEqual(seen, [{ servername: 'localhost', protocol: 'http/1.1', reused: false }])
  await Promise.all([send(pool).ended, send(pool).ended])
  assert.deepEqual(seen[1], { servername: 'localhost', protocol: 'http/1.1', reused: true })
  pool.destroy()
})

test('the certificate of an upstream named by address is checked for that address', async () => {
  tls.setDefaultCACertificates([cert])
  const { pool } = openUpstream({ url: new URL(`https://127.0.0.1:${port}`), key: null }, log)
  assert.equal(describeEnd(await send(pool).ended), 'complete')
  pool.destroy()
})

test('an upstream that accepts the connection but sends nothing fails at the connect timeout, unsent', async (t) => {
  const accepted = Promise.withResolvers<net.Socket>()
  const mute = net.createServer((socket) => accepted.resolve(socket))
  await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve))
  const url = new URL(`https://127.0.0.1:${(mute.address() as AddressInfo).port}`)
  const { pool } = openUpstream({ url, key: null }, log)
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { ended } = send(pool)
  const socket = await accepted.promise
  socket.on('error', () => {})
  t.mock.timers.tick(limits.upstreamConnectTimeoutMs)
  assert.equal(describeEnd(await ended), 'failed before sending: UPSTREAM_CONNECT_TIMEOUT')
  socket.destroy()
  mute.close()
})
