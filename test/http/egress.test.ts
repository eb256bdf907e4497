import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import tls from 'node:tls'
import { type EgressRules, routeTo } from '../../src/http/egress.ts'
import { requestWhole } from '../../src/http/request-whole.ts'
import type { ReplyReceiver } from '../../src/http/upstream-call.ts'
import { callUpstream, openUpstream } from '../../src/http/upstream-connection.ts'
import { limits } from '../../src/kernel/limits.ts'
import { Secret } from '../../src/kernel/secret.ts'
import { otherPair } from '../support/certificates.ts'
import { startConnectProxy } from '../support/connect-proxy.ts'
import { withDeadline } from '../support/deadline.ts'
import { createLogLines } from '../support/log-lines.ts'
import { after, test } from '../support/suite.ts'
import { describeEnd, TakenReply } from './raw-upstream.ts'

tls.setDefaultCACertificates([otherPair.cert])
let serve = (socket: tls.TLSSocket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
const sockets = new Set<tls.TLSSocket>()
const server = tls.createServer({ ...otherPair, ALPNProtocols: ['http/1.1'] }, (socket) => {
  sockets.add(socket)
  socket.on('error', () => {}).on('data', () => serve(socket))
})
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
const { port } = server.address() as AddressInfo
const proxy = await startConnectProxy(port)
after(async () => {
  for (const socket of sockets) socket.destroy()
  server.close()
  await proxy.close()
})

const url = new URL(`https://other.test:${port}`)
const rules = (parts: Partial<EgressRules> = {}): EgressRules => ({
  proxy: { host: '127.0.0.1', port: proxy.port, authorization: null },
  direct: [],
  ...parts,
})

function open(egress = rules()) {
  const { pool } = openUpstream({ url, key: null }, createLogLines().log, egress)
  const send = (receiver: Partial<ReplyReceiver> = {}) => {
    const taken = new TakenReply(receiver)
    const request = { method: 'POST', target: '/', host: 'up', headers: [], lengthBytes: null, body: null }
    const call = callUpstream(pool, request, taken)
    return { call, taken, ended: withDeadline(call.ended, () => 'the call has not ended') }
  }
  return { pool, send }
}

test('calls to https go through the proxy, and share a tunnel one after the other', async () => {
  const { pool, send } = open()
  for (let round = 0; round < 3; round++) {
    const { taken, ended } = send()
    assert.equal(describeEnd(await ended), 'complete')
    assert.equal(taken.bytes.toString(), 'ok')
  }
  const authority = `other.test:${port}`
  assert.deepEqual(proxy.heads, [`CONNECT ${authority} HTTP/1.1\r\nhost: ${authority}\r\n\r\n`])
  pool.destroy()
})

test('the proxy gets the credential of its URL', async () => {
  const authorization = new Secret('Basic dXNlcjpwYXNz')
  const { pool, send } = open(rules({ proxy: { host: '127.0.0.1', port: proxy.port, authorization } }))
  assert.equal(describeEnd(await send().ended), 'complete')
  assert.match(proxy.heads.at(-1) ?? '', /\r\nproxy-authorization: Basic dXNlcjpwYXNz\r\n/)
  pool.destroy()
})

for (const [what, answer, code] of [
  ['refuses', 'HTTP/1.1 407 No\r\ncontent-length: 4\r\n\r\nsorr', 'PROXY_REFUSED'],
  ['redirects', 'HTTP/1.1 302 Found\r\nlocation: /\r\n\r\n', 'PROXY_REFUSED'],
  ['speaks before the server', 'HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n', 'PROXY_REFUSED'],
  ['speaks no HTTP', 'SSH-2.0-x\r\n\r\n', 'PROXY_INVALID_ANSWER'],
  ['closes the connection', '', 'PROXY_CLOSED'],
] as const) {
  test(`a call fails unsent if the proxy ${what}`, async () => {
    proxy.answer = answer
    const { pool, send } = open()
    assert.equal(describeEnd(await send().ended), `failed before sending: ${code}`)
    proxy.answer = undefined
    assert.equal(describeEnd(await send().ended), 'complete')
    pool.destroy()
  })
}

test('a proxy that says nothing fails the call at the connect timeout, and only one CONNECT was sent', async (t) => {
  proxy.answer = null
  const before = proxy.heads.length
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { pool, send } = open()
  const { ended } = send()
  while (proxy.heads.length === before) await new Promise((resolve) => setImmediate(resolve))
  t.mock.timers.tick(limits.upstreamConnectTimeoutMs)
  assert.equal(describeEnd(await ended), 'failed before sending: PROXY_TIMEOUT')
  assert.equal(proxy.heads.length, before + 1)
  proxy.answer = undefined
  pool.destroy()
})

test('a proxy that goes away after it opened a connection fails the call at the connect timeout, as a server would', async (t) => {
  const accepted = Promise.withResolvers<Socket>()
  const silent = createServer((socket) => accepted.resolve(socket.on('error', () => {}).resume()))
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  const leaving = await startConnectProxy((silent.address() as AddressInfo).port)
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const egress = rules({ proxy: { host: '127.0.0.1', port: leaving.port, authorization: null } })
  const { pool, send } = open(egress)
  const { ended } = send()
  // The handshake has begun, so the tunnel is open.
  await once(await accepted.promise, 'data')
  t.mock.timers.tick(limits.upstreamConnectTimeoutMs)
  assert.equal(describeEnd(await ended), 'failed before sending: UPSTREAM_CONNECT_TIMEOUT')
  await leaving.close()
  assert.equal(describeEnd(await send().ended), 'failed before sending: ECONNREFUSED')
  silent.close()
  pool.destroy()
})

test('a call that is abandoned while the proxy connects is over at once, and closes the connection', async () => {
  proxy.answer = null
  const before = proxy.heads.length
  const { pool, send } = open()
  const { call, ended } = send()
  while (proxy.heads.length === before) await new Promise((resolve) => setImmediate(resolve))
  call.abandon()
  assert.equal(describeEnd(await ended), 'abandoned before sending')
  assert.deepEqual(pool.connections, { busy: 0, idle: 0 })
  proxy.answer = undefined
})

test('a proxy that dies in the middle of a reply cuts it', async () => {
  const usual = serve
  serve = (socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart')
  const { pool, send } = open()
  const { taken, ended } = send({
    data() {
      proxy.cut()
      return true
    },
  })
  assert.match(describeEnd(await ended), /^cut: /)
  assert.equal(taken.bytes.toString(), 'part')
  serve = usual
  pool.destroy()
})

test('NO_PROXY names hosts, domains, ports, addresses and ranges', () => {
  const isDirect = (target: string, ...direct: string[]) =>
    routeTo(new URL(target), rules({ direct })).proxy === null
  for (const entry of ['*', 'a.test', 'A.Test', '.a.test', '*.a.test', 'a.test:443', 'test'])
    assert.equal(isDirect('https://a.test', 'other', entry), true, entry)
  assert.equal(isDirect('https://x.a.test', 'a.test'), true)
  for (const entry of ['b.test', 'xa.test', 'a.test:8443', 'x.a.test', '', '.', '10.0.0.0/8'])
    assert.equal(isDirect('https://a.test', entry), false, entry)
  for (const entry of ['10.1.2.3', '10.0.0.0/8', '10.1.2.3:443'])
    assert.equal(isDirect('https://10.1.2.3', entry), true, entry)
  for (const entry of ['10.1.2.4', '10.2.0.0/16', '0.0.0.0/99', '2.3', 'fd00::/8'])
    assert.equal(isDirect('https://10.1.2.3', entry), false, entry)
  for (const entry of ['fd00::1', 'fd00::/8', '[fd00::1]', '[fd00::1]:443'])
    assert.equal(isDirect('https://[fd00::1]', entry), true, entry)
  assert.equal(isDirect('http://a.test'), true, 'http: URLs are called directly')
})

test('a request of the gateway itself takes the same way, and its answer is limited', async () => {
  const request = { url: new URL('/v1/models', url), method: 'GET', headers: [] }
  const answer = await requestWhole(request, rules(), { answerMs: 60_000, bytesMax: 1 })
  assert.deepEqual([answer.status, answer.body.toString()], [200, 'o'])
  proxy.answer = 'HTTP/1.1 403 Forbidden\r\n\r\n'
  await assert.rejects(requestWhole(request, rules(), { answerMs: 60_000, bytesMax: 1 }), {
    message: 'the proxy answered 403 to CONNECT',
  })
  proxy.answer = null
  const stop = new AbortController()
  const before = proxy.heads.length
  const stopped = requestWhole(request, rules(), { answerMs: 60_000, bytesMax: 1 }, stop.signal)
  while (proxy.heads.length === before) await new Promise((resolve) => setImmediate(resolve))
  stop.abort()
  await assert.rejects(stopped, { code: 'UPSTREAM_TIMEOUT' })
  proxy.answer = undefined
})
