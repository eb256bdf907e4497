import assert from 'node:assert/strict'
import type { LookupAddress } from 'node:dns'
import https from 'node:https'
import net, { type AddressInfo } from 'node:net'
import tls, { type TLSSocket } from 'node:tls'
import { type EndpointRules, isForbiddenAddress } from '../../src/webhooks/endpoint-address.ts'
import { sendWebhook } from '../../src/webhooks/send-webhook.ts'
import { localPair } from '../support/certificates.ts'
import { closeAfter, test } from '../support/suite.ts'
import { WebhookReceiver } from '../support/webhook-receiver.ts'

const receiver = await WebhookReceiver.start()
closeAfter(receiver)

const never = new AbortController().signal
const LOOPBACK = [{ address: '127.0.0.1', family: 4 }]
const permissive: EndpointRules = { allowPrivate: true, resolveHost: async () => LOOPBACK }

const send = (url: string, { rules = permissive, stop = never, tryMs = 10_000 } = {}) =>
  sendWebhook({ url, headers: { 'webhook-id': 'evt_1' }, body: '{"type":"x"}' }, rules, stop, tryMs)

test('a message is posted unchanged with its headers, and the status is the result', async () => {
  receiver.reply = () => 200
  const url = `http://hooks.example:${receiver.port}/a?b=c`
  assert.deepEqual(await send(url), { kind: 'answered', status: 200, body: '' })
  const { path, headers, body } = receiver.messages.at(-1) ?? assert.fail()
  assert.deepEqual([path, body], ['/a?b=c', '{"type":"x"}'])
  assert.equal(headers['host'], `hooks.example:${receiver.port}`)
  assert.equal(headers['webhook-id'], 'evt_1')
  assert.equal(headers['content-type'], 'application/json')
  assert.match(headers['user-agent'] ?? '', /^Tollgate\//)
})

test('a redirect is a response and is not followed', async () => {
  const before = receiver.messages.length
  receiver.reply = () => (response) => response.writeHead(307, { location: receiver.url }).end()
  assert.deepEqual(await send(receiver.url), { kind: 'answered', status: 307, body: '' })
  assert.equal(receiver.messages.length, before + 1)
})

test('a receiver that never answers fails at the timeout', async () => {
  receiver.reply = () => 'silence'
  assert.deepEqual(await send(receiver.url, { tryMs: 50 }), {
    kind: 'failed',
    reason: 'no answer within 0.05 s',
  })
})

test('an endless response is read up to its limit, and its status counts', async () => {
  let closed = false
  receiver.reply = () => (response) => {
    response.writeHead(200)
    const more = () => response.write(Buffer.alloc(16 * 1024), () => closed || setImmediate(more))
    response.on('close', () => {
      closed = true
    })
    more()
  }
  const body = '\ufffd'.repeat(2_048)
  assert.deepEqual(await send(receiver.url), { kind: 'answered', status: 200, body })
})

test('the first 2,048 bytes of a response are stored as text, without partial or control characters', async () => {
  const answers = [
    ['{"ok":true}\r\n\tdone', '{"ok":true}\n\tdone'],
    ['a\0b\x1b[31mc\u202ed', 'a\ufffdb\ufffd[31mc\ufffdd'],
    [`${'x'.repeat(2_047)}é and more`, 'x'.repeat(2_047)],
    [Buffer.from([0x6f, 0x6b, 0xff]), 'ok\ufffd'],
  ] as const
  for (const [sent, body] of answers) {
    receiver.reply = () => (response) => response.writeHead(500).end(sent)
    assert.deepEqual(await send(receiver.url), { kind: 'answered', status: 500, body })
  }
})

test('a refused or broken connection, and a reply that is not HTTP, fail', async () => {
  receiver.reply = () => (response) => response.socket?.destroy()
  assert.equal((await send(receiver.url)).kind, 'failed')
  const garbage = net.createServer((socket) => socket.resume().end('hello'))
  await new Promise<void>((resolve) => garbage.listen(0, '127.0.0.1', resolve))
  const { port } = garbage.address() as AddressInfo
  assert.equal((await send(`http://127.0.0.1:${port}/`)).kind, 'failed')
  await new Promise((resolve) => garbage.close(resolve))
  assert.match(JSON.stringify(await send(`http://127.0.0.1:${port}/`)), /ECONNREFUSED/)
})

test('the certificate must be valid for the host name, which is sent whatever the address', async () => {
  const names: unknown[] = []
  const server = https.createServer(localPair, (request, response) => {
    names.push((request.socket as TLSSocket).servername, request.headers.host)
    response.end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  assert.match(JSON.stringify(await send(`https://localhost:${port}/`)), /self-signed certificate/)
  const usual = tls.getCACertificates('default')
  tls.setDefaultCACertificates([localPair.cert])
  try {
    assert.deepEqual(await send(`https://localhost:${port}/`), { kind: 'answered', status: 200, body: '' })
    assert.deepEqual(names, ['localhost', `localhost:${port}`])
    assert.deepEqual(await send(`https://127.0.0.1:${port}/`), { kind: 'answered', status: 200, body: '' })
    assert.match(JSON.stringify(await send(`https://hooks.example:${port}/`)), /does not match certificate/)
  } finally {
    tls.setDefaultCACertificates(usual)
    server.close()
  }
})

/** Watches the addresses that this process connects to. */
function watchConnections(): { readonly addresses: string[]; stop(): void } {
  const addresses: string[] = []
  const { connect } = net.Socket.prototype
  net.Socket.prototype.connect = function (this: net.Socket, ...args: unknown[]) {
    this.on('connectionAttempt', (address: string) => addresses.push(address))
    return Reflect.apply(connect, this, args) as net.Socket
  }
  return {
    addresses,
    stop() {
      net.Socket.prototype.connect = connect
    },
  }
}

test('a name is resolved once, so a change between check and connection has no effect', async () => {
  // A public address without a route would work too; this one is refused at once.
  const answers: LookupAddress[][] = [[{ address: '127.0.0.2', family: 4 }], LOOPBACK]
  let asked = 0
  const rules: EndpointRules = { allowPrivate: true, resolveHost: async () => answers[asked++] ?? [] }
  const connections = watchConnections()
  try {
    const before = receiver.messages.length
    await send(`http://rebinding.example:${receiver.port}/`, { rules })
    assert.equal(asked, 1)
    assert.deepEqual(connections.addresses, ['127.0.0.2'])
    assert.equal(receiver.messages.length, before)
  } finally {
    connections.stop()
  }
})

test('a name whose address is private at delivery is not connected to', async () => {
  const rules: EndpointRules = { allowPrivate: false, resolveHost: async () => LOOPBACK }
  const connections = watchConnections()
  try {
    const outcome = await send(`https://public-before.example:${receiver.port}/`, { rules })
    assert.deepEqual(outcome, {
      kind: 'failed',
      reason: 'public-before.example has only private or reserved addresses',
    })
    assert.equal((await send('https://[::ffff:127.0.0.1]/', { rules })).kind, 'failed')
    assert.equal((await send(receiver.url, { rules })).kind, 'failed')
    assert.deepEqual(connections.addresses, [])
    assert.ok(isForbiddenAddress('127.0.0.1'))
  } finally {
    connections.stop()
  }
})
