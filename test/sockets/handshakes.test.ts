import assert from 'node:assert/strict'
import { limits } from '../../src/kernel/limits.ts'
import { after, test } from '../support/suite.ts'
import { message, sized } from '../support/wire-bytes.ts'
import { ACCEPT_LINE, agreement, handshake, PROVIDER_KEY, startRawBench } from './raw-bench.ts'
import { stopTime } from './stop-time.ts'
import { sequenceOf, wireOf } from './wire-frames.ts'

const bench = await startRawBench()
after(() => bench[Symbol.asyncDispose]())

const create = JSON.stringify({ type: 'response.create', model: 'gpt-4o', input: 'Hi.' })
const frame = wireOf('client', { opcode: 1, payload: create })
const auth = () => `Authorization: Bearer ${bench.gateway.apiKey}`
const isOwn = (line: string) => line.toLowerCase().startsWith('x-svc-')
const named = (lines: readonly string[], name: string) =>
  lines.filter((line) => line.toLowerCase().startsWith(`${name}:`))

/** When a later request of another client has been answered, the gateway has read the earlier bytes. */
const gatewayHasLooked = () => fetch(`${bench.gateway.url}/healthz`)

test('upstream sees the handshake unchanged, except for its own host and credential', async () => {
  const client = await bench.connect()
  const lines = [
    'Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits',
    'sec-websocket-extensions: x-other',
    'X-Dup: 1',
    auth(),
    'x-dup: 2',
    'Sec-WebSocket-Protocol: chat, superchat',
    'OpenAI-Beta: responses_websockets=2026-02-06',
    'User-Agent: test',
    'X-Svc-Anything: no',
    'OpenAI-Organization: org_client',
    'Origin: https://app.test',
  ]
  await client.send(handshake(lines, '/v1/responses?a=1&b=%20'))
  const upstream = await bench.accepted()
  const [request, ...came] = await upstream.head()
  assert.equal(request, 'GET /v1/responses?a=1&b=%20 HTTP/1.1')
  const dropped = /^(?:x-svc-|openai-organization|sec-websocket-extensions|host|connection|upgrade)/i
  const key = 'dGhlIHNhbXBsZSBub25jZQ=='
  assert.deepEqual(
    came.filter((line) => !/^(?:host|connection|upgrade):/i.test(line)),
    ['Sec-WebSocket-Version: 13', `Sec-WebSocket-Key: ${key}`, ...lines]
      .filter((line) => !dropped.test(line))
      .map((line) => (line === auth() ? `Authorization: Bearer ${PROVIDER_KEY}` : line)),
  )
  assert.deepEqual(
    named(came, 'host').map((line) => line.toLowerCase()),
    [`host: ${new URL(bench.upstreamUrl).host}`],
  )
  assert.deepEqual(
    [...named(came, 'connection'), ...named(came, 'upgrade')].map((line) => line.toLowerCase()),
    ['connection: upgrade', 'upgrade: websocket'],
  )
  client.socket.destroy()
})

test('the client sees upstream’s answer unchanged, plus the request id', async () => {
  const client = await bench.connect()
  await client.send(handshake([auth(), 'Sec-WebSocket-Protocol: chat, superchat']))
  const upstream = await bench.accepted()
  await upstream.head()
  const lines = [
    'upgrade: WebSocket',
    'X-Dup: 1',
    'CONNECTION: upgrade',
    ACCEPT_LINE,
    'x-dup: 2',
    'Sec-WebSocket-Protocol: superchat',
    'x-request-id: req_upstream',
    'Set-Cookie: a=b',
    'set-cookie: c=d',
    'x-svc-request-id: forged',
  ]
  await upstream.send(message('HTTP/1.1 101 Whatever You Like', lines))
  const [status, ...came] = await client.head()
  assert.equal(status, 'HTTP/1.1 101 Whatever You Like')
  assert.deepEqual(
    came.filter((line) => !isOwn(line)),
    lines.slice(0, -1),
  )
  const [own = '', ...others] = came.filter(isOwn)
  assert.match(own, /^x-svc-request-id: req_[0-9A-Z]{26}$/i)
  assert.deepEqual(others, [])
  client.socket.destroy()
})

test('bytes that a client sends before the 101 wait for it and follow in order', async () => {
  const client = await bench.connect()
  const ahead = sequenceOf('client', [
    { opcode: 9, payload: 'ahead' },
    { opcode: 1, payload: create },
    { opcode: 10, payload: '' },
    { opcode: 1, payload: create },
  ])
  await client.send(Buffer.concat([handshake([auth()]), ahead.subarray(0, 40)]))
  const upstream = await bench.accepted()
  await upstream.head()
  await client.send(ahead.subarray(40))
  await gatewayHasLooked()
  assert.equal(upstream.received.length, 0, 'nothing is forwarded before the 101')
  await upstream.send(agreement())
  assert.equal((await upstream.receivedBytes(ahead.length)).length, ahead.length)
  client.socket.destroy()
})

const refusals: Record<string, { lines: string[]; body: string }> = {
  '401 Unauthorized': {
    lines: ['Content-Type: application/json', 'WWW-Authenticate: Bearer'],
    body: '{ "error": {"message":"no","code":"invalid_api_key"} }\n',
  },
  '403 Forbidden': { lines: ['content-type: text/html', 'CF-Ray: 1'], body: '<h1>Go away</h1>' },
  '429 Too Many Requests': {
    lines: ['Content-Type: application/json', 'retry-after: 7', 'X-RateLimit-Limit-Requests: 1'],
    body: '{"error":{"type":"requests"}}',
  },
}

for (const [status, { lines, body }] of Object.entries(refusals)) {
  test(`upstream's ${status} passes unchanged, and then the connection closes`, async () => {
    const client = await bench.connect()
    await client.send(Buffer.concat([handshake([auth()]), frame]))
    const upstream = await bench.accepted()
    await upstream.head()
    // Without `Connection: close` the connection could be reused for the next handshake.
    await upstream.send(sized(`HTTP/1.1 ${status}`, [...lines, 'Connection: close'], body))
    const [line, ...came] = await client.head()
    assert.equal(line, `HTTP/1.1 ${status}`)
    const own = /^(?:x-svc-|content-length|connection|date|trailer|transfer-encoding)/i
    assert.deepEqual(
      came.filter((each) => !own.test(each)),
      lines,
    )
    assert.equal((await client.receivedBytes(body.length)).toString(), body)
    assert.equal(named(came, 'x-svc-request-id').length, 1)
    await client.ended
    assert.equal(client.received.toString(), body, 'the frame after the handshake is not answered')
    assert.equal(upstream.received.length, 0, 'nor was it forwarded')
    client.socket.destroy()
  })
}

test('an extension that upstream was not offered is 502 and closes the upstream connection', async () => {
  for (const extension of ['x-encrypted', 'permessage-deflate']) {
    const client = await bench.connect()
    await client.send(handshake([auth(), `Sec-WebSocket-Extensions: ${extension}`]))
    const upstream = await bench.accepted()
    await upstream.head()
    await upstream.send(agreement([`Sec-WebSocket-Extensions: ${extension}`]))
    const [line, ...came] = await client.head()
    assert.match(line ?? '', /^HTTP\/1\.1 502 /)
    assert.equal(named(came, 'x-svc-request-id').length, 1)
    await client.until(() => client.received.includes('}}'), 'a body')
    assert.match(client.received.toString(), /upstream_invalid_response/)
    await upstream.ended
    client.socket.destroy()
  }
})

test('a handshake that upstream does not answer ends with 504', async (t) => {
  const pass = stopTime(t)
  const client = await bench.connect()
  await client.send(handshake([auth()]))
  const upstream = await bench.accepted()
  await upstream.head()
  await pass.over(limits.socketHandshakeMs)
  const [line] = await client.head()
  assert.match(line ?? '', /^HTTP\/1\.1 504 /)
  await client.until(() => client.received.includes('}}'), 'a body')
  assert.match(client.received.toString(), /upstream_timeout/)
  await upstream.ended
  client.socket.destroy()
})

test('a client that leaves before the answer aborts its handshake upstream', async () => {
  const client = await bench.connect()
  await client.send(handshake([auth()]))
  const upstream = await bench.accepted()
  await upstream.head()
  client.reset()
  await upstream.ended
})

test('an unknown key is 401, a path without sockets 426, and neither reaches upstream', async () => {
  const unknown = `Authorization: Bearer ${bench.gateway.apiKey.slice(0, -4)}abcd`
  const cases = [
    [handshake([]), 401],
    [handshake([unknown]), 401],
    [handshake([auth()], '/v1/chat/completions'), 426],
    [handshake([auth()], '/v1/responses/'), 426],
    [handshake([auth()], '/v1/responses/resp_1'), 426],
  ] as const
  for (const [bytes, status] of cases) {
    const client = await bench.connect()
    await client.send(Buffer.concat([bytes, frame]))
    const [line] = await client.head()
    assert.equal(line?.split(' ')[1], String(status), bytes.toString('latin1', 0, 60))
    await client.ended
    const [, , ...rest] = client.received.toString('latin1').split('HTTP/1.1 ')
    assert.deepEqual(rest, [], 'frames are not read as requests')
    client.socket.destroy()
  }
  const client = await bench.connect()
  await client.send(handshake([auth(), 'x-marker: last']))
  const upstream = await bench.accepted()
  assert.deepEqual(named(await upstream.head(), 'x-marker'), ['x-marker: last'], 'the first one that arrived')
  client.socket.destroy()
})

test('a key among the subprotocols authenticates, and upstream gets its own key in that position', async () => {
  const client = await bench.connect()
  const { apiKey } = bench.gateway
  const offered = `realtime, openai-insecure-api-key.${apiKey}, openai-organization.org_1, openai-beta.v1`
  await client.send(handshake([`Sec-WebSocket-Protocol: ${offered}`]))
  const upstream = await bench.accepted()
  const came = await upstream.head()
  assert.deepEqual(named(came, 'sec-websocket-protocol'), [
    `Sec-WebSocket-Protocol: realtime, openai-insecure-api-key.${PROVIDER_KEY}, openai-beta.v1`,
  ])
  assert.deepEqual(named(came, 'authorization'), [], "one credential, at the position of the client's")
  assert.ok(!came.join().includes(apiKey))
  await upstream.send(agreement(['Sec-WebSocket-Protocol: realtime']))
  assert.deepEqual(named(await client.head(), 'sec-websocket-protocol'), ['Sec-WebSocket-Protocol: realtime'])
  client.socket.destroy()
})

test('different keys in a header and among the subprotocols are refused', async () => {
  const other = await bench.gateway.createKey('other')
  const client = await bench.connect()
  const protocol = `Sec-WebSocket-Protocol: realtime, openai-insecure-api-key.${other.key}`
  await client.send(handshake([auth(), protocol]))
  assert.match((await client.head())[0] ?? '', / 400 /)
  client.socket.destroy()
})

test('upstream’s key never reaches the client: a chosen key protocol shows the client’s own key', async () => {
  const { apiKey } = bench.gateway
  const own = `openai-insecure-api-key.${apiKey}`
  const chosen = `Sec-WebSocket-Protocol: openai-insecure-api-key.${PROVIDER_KEY}`
  const answers = [
    agreement([chosen]),
    sized('HTTP/1.1 400 Bad Request', [chosen, 'Connection: close'], Buffer.from('no')),
  ]
  for (const answer of answers) {
    const client = await bench.connect()
    await client.send(handshake([`Sec-WebSocket-Protocol: ${own}, realtime`]))
    const upstream = await bench.accepted()
    await upstream.head()
    await upstream.send(answer)
    const head = await client.head()
    assert.deepEqual(named(head, 'sec-websocket-protocol'), [`Sec-WebSocket-Protocol: ${own}`])
    assert.ok(!head.join().includes(PROVIDER_KEY))
    client.socket.destroy()
  }
})
