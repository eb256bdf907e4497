import assert from 'node:assert/strict'
import { assertOwnError } from '../support/own-error.ts'
import { assertOwnAnswer, startPair } from '../support/pair.ts'
import { connect } from '../support/raw-client.ts'
import { closeAfter, test } from '../support/suite.ts'
import { surfaces } from '../support/surfaces.ts'
import { message } from '../support/wire-bytes.ts'
import { headerName, headerValues } from '../support/wire-message.ts'
import { words } from '../support/words.ts'
import { assertOthersServed, assertRefused, assertRefusedAndClosed, attack } from './attack.ts'

const pair = await startPair()
closeAfter(pair)

for (const surface of surfaces) {
  test(`${surface.name}: TRACE is refused: it would show the operator's credential to the client`, async () => {
    const reply = await assertRefused(
      pair,
      pair.request(surface, { method: 'TRACE', target: '/v1/models' }),
      [405],
    )
    assert.ok(!reply.body.toString().includes('provider-key'))
  })

  test(`${surface.name}: CONNECT is refused and its connection closed`, async () => {
    for (const target of ['evil:443', '127.0.0.1:22', '/v1/models', 'h']) {
      const before = pair.upstream.receivedBytes
      const client = await connect(pair.gateway)
      const tunnel = Buffer.concat([
        pair.request(surface, { method: 'CONNECT', target }),
        Buffer.from('GET / HTTP/1.1\r\n\r\n'),
      ])
      const reply = await client.request(tunnel, { method: 'GET' })
      assert.ok(reply.status === 405 || reply.status === 400 || reply.statusLine === '', reply.statusLine)
      await client.closed()
      client.leave()
      assert.equal(pair.upstream.receivedBytes, before)
      await assertOthersServed(pair)
    }
  })

  test(`${surface.name}: an unknown method is refused`, async () => {
    for (const method of ['FOO', 'get', 'Post', 'GETS', 'G E T', 'GET\0', '']) {
      await assertRefusedAndClosed(pair, pair.request(surface, { method, target: '/v1/models' }))
    }
  })

  test(`${surface.name}: other versions of HTTP are refused`, async () => {
    for (const version of words(`
      HTTP/1.2 HTTP/2.0 HTTP/0.9 HTTP/3.0 HTTP/1.10 HTTP/2 HTTPS/1.1 XTTP/1.1
    `)) {
      await assertRefusedAndClosed(pair, pair.request(surface, { version, body: surface.jsonBody }))
    }
    await assertRefusedAndClosed(pair, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
    for (const [method, version] of [
      ['GET', 'RTSP/1.0'],
      ['POST', 'RTSP/1.1'],
      ['DESCRIBE', 'RTSP/1.0'],
      ['DESCRIBE', 'HTTP/1.1'],
      ['SOURCE', 'ICE/1.0'],
      ['SOURCE', 'HTTP/1.1'],
    ] as const)
      await assertRefusedAndClosed(pair, pair.request(surface, { method, version, target: '/v1/models' }))
  })

  test(`${surface.name}: a request line without a version is refused or closed, and never forwarded`, async () => {
    for (const bytes of ['GET /v1/models\r\n\r\n', 'GET /v1/models\r\nHost: h\r\n\r\n']) {
      const before = pair.upstream.receivedBytes
      const { reply, client } = await attack(pair, { bytes })
      assert.ok(reply.status === 400 || reply.statusLine === '', reply.statusLine)
      await client.closed()
      client.leave()
      assert.equal(pair.upstream.receivedBytes, before)
      await assertOthersServed(pair)
    }
  })

  test(`${surface.name}: an upgrade to HTTP/2 is served as a plain request`, async () => {
    const lines = ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__']
    pair.upstream.clear()
    const client = await connect(pair.gateway)
    const reply = await client.request(pair.request(surface, { lines, body: surface.jsonBody }))
    assert.equal(reply.status, 200)
    const names = (pair.upstream.requests[0]?.headerLines ?? []).map(headerName)
    assert.ok(!names.some((name) => ['upgrade', 'http2-settings'].includes(name)))
    assertOwnAnswer(await client.request(pair.ownCall(surface, 'next')), 'next')
    client.leave()
    await assertOthersServed(pair)
  })

  test(`${surface.name}: a WebSocket upgrade on a path without sockets is refused, and later bytes go nowhere`, async () => {
    const lines = [
      'Connection: keep-alive, Upgrade',
      'Upgrade: WebSocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      `Sec-WebSocket-Protocol: realtime, openai-insecure-api-key.${pair.gateway.apiKey}`,
    ]
    for (const target of ['/v1/messages', '/v1/chat/completions', '/v1/unknown']) {
      const before = pair.upstream.receivedBytes
      const request = pair.request(surface, { method: 'GET', target, lines })
      const smuggled = pair.request(surface, { method: 'GET', target: '/smuggled' })
      const { reply, client } = await attack(pair, { bytes: Buffer.concat([request, smuggled]) })
      assert.equal(reply.status, 426, target)
      await client.closed()
      client.leave()
      assert.equal(pair.upstream.receivedBytes, before)
    }
    const own = pair.request(surface, { method: 'GET', target: surface.readEndpoint, lines })
    const { reply, client } = await attack(pair, { bytes: own })
    assertOwnError(reply, surface, 426, 'websocket_not_supported')
    assert.match(reply.body.toString(), /"type":"invalid_request_error"/)
    assert.deepEqual(headerValues(reply.headerLines, 'upgrade'), ['HTTP/1.1'])
    assert.deepEqual(headerValues(reply.headerLines, 'connection'), ['close'])
    assert.deepEqual(headerValues(reply.headerLines, 'x-should-retry'), ['false'])
    client.leave()
    await assertOthersServed(pair)
  })

  test(`${surface.name}: bytes after a WebSocket upgrade that upstream declines are not a request`, async () => {
    const lines = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13']
    pair.upstream.clear()
    const request = pair.request(surface, { method: 'GET', target: '/v1/responses', lines })
    const smuggled = pair.request(surface, { method: 'GET', target: '/smuggled' })
    const { reply, client } = await attack(pair, { bytes: Buffer.concat([request, smuggled]) })
    assert.equal(reply.status, 200)
    await client.closed()
    assert.deepEqual(
      pair.upstream.requests.map(({ target }) => target),
      ['/v1/responses'],
    )
    client.leave()
    await assertOthersServed(pair)
  })
}

for (const surface of surfaces) {
  for (const target of [surface.readEndpoint, surface.streamedEndpoint]) {
    test(`${surface.name} ${target}: without a valid key, no client gets 100 Continue`, async () => {
      const revoked = await pair.gateway.createKey('revoked')
      await pair.gateway.revokeKey(revoked.id)
      const before = pair.upstream.receivedBytes
      for (const key of ['svc_live_nobody', revoked.key, pair.gateway.adminKey]) {
        const client = await connect(pair.gateway)
        const lines = ['Host: h', ...surface.lines(key), 'Expect: 100-continue', 'Content-Length: 1000000']
        const reply = await client.request(message(`POST ${target} HTTP/1.1`, lines))
        assertOwnError(reply, surface, 401, 'invalid_api_key')
        assert.deepEqual(reply.interim, [], 'no 100 before the refusal')
        client.leave()
      }
      assert.equal(pair.upstream.receivedBytes, before)
      await assertOthersServed(pair)
    })
  }

  test(`${surface.name}: an expectation other than 100-continue is refused`, async () => {
    for (const expect of ['yes', '100-continued', '200-ok']) {
      const request = pair.request(surface, { lines: [`Expect: ${expect}`], body: surface.jsonBody })
      const reply = await assertRefused(pair, request, [417])
      assert.deepEqual(reply.interim, [])
    }
  })

  test(`${surface.name}: a request pipelined after a refused expectation is not answered, and the connection closes`, async () => {
    const lines = [
      'Host: h',
      ...surface.lines('svc_live_nobody'),
      'Expect: 100-continue',
      'Content-Length: 5',
    ]
    const client = await connect(pair.gateway)
    const reply = await client.request(message(`POST ${surface.readEndpoint} HTTP/1.1`, lines))
    assert.equal(reply.status, 401)
    assert.deepEqual(headerValues(reply.headerLines, 'connection'), ['close'])
    const count = pair.upstream.requestCount
    // The body was not invited, so these bytes may be the body or the next request.
    await client.send(pair.ownCall(surface, 'behind'))
    const next = await client.read({ method: 'POST' })
    assert.deepEqual([next.statusLine, next.ended], ['', 'cut'])
    client.leave()
    assert.equal(pair.upstream.requestCount, count)
    await assertOthersServed(pair)
  })
}
