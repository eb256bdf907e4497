import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { startGateway } from '../support/gateway.ts'
import { startPair } from '../support/pair.ts'
import { connect, exchange } from '../support/raw-client.ts'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { closeAfter, test } from '../support/suite.ts'
import { surfaces } from '../support/surfaces.ts'
import { chunk, chunked, lastChunk, message, noise, sized } from '../support/wire-bytes.ts'
import { headerValues } from '../support/wire-message.ts'

const pair = await startPair()
closeAfter(pair)

const replies: Record<string, Buffer> = {
  sized: sized('HTTP/1.1 200 OK', [], noise(3_000)),
  'sized and empty': sized('HTTP/1.1 200 OK', [], ''),
  chunked: chunked('HTTP/1.1 200 OK', [], ['a', noise(2_000), noise(70_000), 'z']),
  'chunked and empty': chunked('HTTP/1.1 200 OK', [], []),
  'chunked with extensions': message(
    'HTTP/1.1 200 OK',
    ['Transfer-Encoding: chunked'],
    '3;name=value\r\nabc\r\n0;last\r\n\r\n',
  ),
  'chunked with leading zeros': message(
    'HTTP/1.1 200 OK',
    ['transfer-encoding: Chunked'],
    '0003\r\nabc\r\n000\r\n\r\n',
  ),
}

for (const surface of surfaces) {
  for (const [name, reply] of Object.entries(replies)) {
    test(`${surface.name}: a ${name} reply`, async () => {
      const request = pair.request(surface, { body: surface.jsonBody })
      await pair.compare(surface, request, () => [{ send: reply }])
    })
  }

  test(`${surface.name}: a chunked request, chunk by chunk`, async () => {
    const head = pair.head(surface, { lines: ['Transfer-Encoding: chunked'] })
    const half = surface.jsonBody.length >> 1
    const slices = [
      head,
      chunk(surface.jsonBody.slice(0, half)),
      chunk(surface.jsonBody.slice(half)),
      lastChunk(),
    ]
    await pair.compare(surface, slices, () => [{ send: replies['sized'] ?? '' }])
  })

  test(`${surface.name}: a chunked request to an endpoint whose body is not read`, async () => {
    const head = pair.head(surface, {
      target: surface.streamedEndpoint,
      lines: ['transfer-encoding: chunked'],
    })
    const slices = [head, chunk(noise(70_000)), chunk('b'), lastChunk()]
    await pair.compare(surface, slices, () => [{ send: replies['sized'] ?? '' }])
  })

  test(`${surface.name}: an empty chunked request`, async () => {
    const head = pair.head(surface, { lines: ['Transfer-Encoding: chunked'] })
    await pair.compare(surface, [head, lastChunk()], () => [{ send: replies['sized'] ?? '' }])
  })

  test(`${surface.name}: a request sent byte by byte`, async () => {
    const request = pair.request(surface, { lines: ['X-Last: 1'], body: surface.jsonBody })
    const slices = Array.from(request, (byte) => Buffer.from([byte]))
    await pair.compare(surface, slices, () => [{ send: replies['sized'] ?? '' }])
  })

  test(`${surface.name}: upstream trailers keep case, order and number`, async () => {
    const trailers = ['X-Sum: 1', 'x-sum: 2', 'Server-Timing: a;dur=1', 'X-Latin: caf\xe9', 'x-empty: ']
    const reply = chunked('HTTP/1.1 200 OK', ['Trailer: X-Sum, Server-Timing'], ['abc'], trailers)
    const request = pair.request(surface, { lines: ['TE: trailers'], body: surface.jsonBody })
    const { through } = await pair.compare(surface, request, () => [{ send: reply }])
    assert.ok(headerValues(through.reply.headerLines, 'trailer').includes('X-Sum, Server-Timing'))
    const unannounced = chunked('HTTP/1.1 200 OK', [], ['abc'], trailers)
    await pair.compare(surface, request, () => [{ send: unannounced }])
  })

  test(`${surface.name}: an unknown transfer coding reaches the client unchanged`, async () => {
    const lines = ['Transfer-Encoding: gzip, chunked']
    const reply = message('HTTP/1.1 200 OK', lines, Buffer.concat([chunk(noise(500)), lastChunk()]))
    const request = pair.request(surface, { body: surface.jsonBody })
    const { through } = await pair.compare(surface, request, () => [{ send: reply }])
    assert.deepEqual(headerValues(through.reply.headerLines, 'transfer-encoding'), ['gzip, chunked'])
    const two = ['Transfer-Encoding: gzip', 'Transfer-Encoding: chunked']
    const onTwoLines = message('HTTP/1.1 200 OK', two, Buffer.concat([chunk(noise(500)), lastChunk()]))
    const second = await pair.compare(surface, request, () => [{ send: onTwoLines }])
    const codings = headerValues(second.through.reply.headerLines, 'transfer-encoding')
    assert.deepEqual(codings, ['gzip', 'chunked'])
  })

  test(`${surface.name}: a reply that ends with its connection ends as a complete reply`, async () => {
    const request = pair.request(surface, { body: surface.jsonBody })
    for (const version of ['HTTP/1.1', 'HTTP/1.0']) {
      const reply = message(`${version} 200 OK`, ['Content-Type: text/plain'], 'until the end')
      await pair.compare(surface, request, () => [{ send: reply }, { close: true }])
      const empty = message(`${version} 200 OK`, ['X-Empty: yes'])
      await pair.compare(surface, request, () => [{ send: empty }, { close: true }])
    }
  })

  test(`${surface.name}: an HTTP/1.0 reply with a length`, async () => {
    const request = pair.request(surface, { body: surface.jsonBody })
    const reply = sized('HTTP/1.0 200 OK', ['Connection: keep-alive'], 'abc')
    await pair.compare(surface, request, () => [{ send: reply }])
  })

  test(`${surface.name}: an HTTP/1.0 client gets no chunks, no interim replies and a close`, async () => {
    const request = pair.request(surface, { version: 'HTTP/1.0', body: surface.jsonBody })
    const hints = message('HTTP/1.1 103 Early Hints', ['Link: </a>'])
    for (const reply of Object.values(replies)) {
      const { through } = await pair.compare(surface, request, () => [
        { send: Buffer.concat([hints, reply]) },
      ])
      assert.deepEqual(headerValues(through.reply.headerLines, 'transfer-encoding'), [])
    }
  })

  test(`${surface.name}: a client that asks to close gets its complete reply and the close`, async () => {
    for (const upstreamSays of ['close', 'keep-alive']) {
      pair.upstream.queue([{ send: chunked('HTTP/1.1 200 OK', [`Connection: ${upstreamSays}`], ['abc']) }])
      const request = pair.request(surface, { lines: ['Connection: close'], body: surface.jsonBody })
      const reply = await exchange(pair.gateway, request)
      assert.equal(reply.body.toString(), 'abc')
      assert.deepEqual(headerValues(reply.headerLines, 'connection'), ['close'])
    }
  })
}

const allBytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))

for (const surface of surfaces) {
  const target = '/v1/unknown/file_1'

  test(`${surface.name}: HEAD keeps the length of the body it does not have`, async () => {
    const request = pair.request(surface, { method: 'HEAD', target })
    const length = message('HTTP/1.1 200 OK', [
      'Content-Type: text/plain',
      'Content-Length: 1234',
      'ETag: "a"',
    ])
    await pair.compare(surface, request, () => [{ send: length }])
    const unsized = message('HTTP/1.1 200 OK', ['Content-Type: text/plain'])
    await pair.compare(surface, request, () => [{ send: unsized }])
    const coded = message('HTTP/1.1 200 OK', ['Transfer-Encoding: chunked', 'Trailer: X-Sum'])
    await pair.compare(surface, request, () => [{ send: coded }])
    const missing = message('HTTP/1.1 404 Not Found', ['Content-Length: 99'])
    await pair.compare(surface, request, () => [{ send: missing }])
  })

  test(`${surface.name}: 204, 205 and 304 have no body`, async () => {
    const request = pair.request(surface, {
      method: 'GET',
      target,
      lines: ['If-None-Match: "a"', 'Range: bytes=0-1'],
    })
    for (const reply of [
      message('HTTP/1.1 204 No Content', ['X-A: 1']),
      message('HTTP/1.1 204 No Content', ['Content-Length: 0', 'X-A: 1']),
      message('HTTP/1.1 304 Not Modified', ['ETag: "a"']),
      message('HTTP/1.1 304 Not Modified', ['ETag: "a"', 'Content-Length: 1234']),
      sized('HTTP/1.1 205 Reset Content', [], ''),
    ]) {
      await pair.compare(surface, request, () => [{ send: reply }])
    }
  })

  test(`${surface.name}: a metered 204 carries its cost`, async () => {
    const request = pair.request(surface, { body: surface.jsonBody })
    const reply = message('HTTP/1.1 204 No Content', ['X-A: 1'])
    const { through } = await pair.compare(surface, request, () => [{ send: reply }])
    assert.equal(headerValues(through.reply.headerLines, 'x-svc-cost-usd').length, 1)
  })

  test(`${surface.name}: a partial reply`, async () => {
    const request = pair.request(surface, { method: 'GET', target, lines: ['Range: bytes=2-4'] })
    const reply = sized('HTTP/1.1 206 Partial Content', ['Content-Range: bytes 2-4/10'], 'cde')
    await pair.compare(surface, request, () => [{ send: reply }])
  })

  for (const method of ['PUT', 'PATCH', 'POST', 'DELETE', 'OPTIONS', 'QUERY', 'GET', 'PROPFIND', 'REPORT']) {
    test(`${surface.name}: ${method} with a binary body`, async () => {
      for (const body of [allBytes, noise(100_000)]) {
        const request = pair.request(surface, {
          method,
          target,
          lines: ['Content-Type: application/x-any'],
          body,
        })
        await pair.compare(surface, request, () => [
          { send: chunked('HTTP/1.1 200 OK', ['X-M: 1'], [allBytes]) },
        ])
      }
    })

    test(`${surface.name}: ${method} with a chunked body`, async () => {
      const head = pair.head(surface, { method, target, lines: ['Transfer-Encoding: chunked'] })
      const slices = [head, chunk(allBytes), chunk('more'), lastChunk()]
      await pair.compare(surface, slices, () => [{ send: sized('HTTP/1.1 200 OK', ['X-M: 1'], allBytes) }])
      await pair.compare(surface, [head, lastChunk()], () => [{ send: sized('HTTP/1.1 200 OK', [], '') }])
    })

    test(`${surface.name}: ${method} without a body`, async () => {
      const request = pair.request(surface, { method, target })
      await pair.compare(surface, request, () => [{ send: sized('HTTP/1.1 200 OK', ['X-M: 1'], allBytes) }])
      const empty = pair.request(surface, { method, target, body: '' })
      await pair.compare(surface, empty, () => [{ send: sized('HTTP/1.1 200 OK', ['X-M: 1'], allBytes) }])
    })
  }

  test(`${surface.name}: a redirect passes and is not followed`, async () => {
    const request = pair.request(surface, { method: 'GET', target })
    const reply = sized('HTTP/1.1 302 Found', ['Location: http://127.0.0.1:9/elsewhere'], '')
    await pair.compare(surface, request, () => [{ send: reply }])
  })
}

test('content-length: 0 reaches upstream for every method, and is never added', async () => {
  const upstream = await ScriptedUpstream.start()
  const gateway = await startGateway({ chatUrl: `${upstream.url}/v1` })
  try {
    for (const method of ['GET', 'DELETE', 'HEAD', 'POST']) {
      for (const stated of method === 'POST' ? [true] : [true, false]) {
        const arrived = upstream.nextRequest()
        const lines = [
          'Host: h',
          `Authorization: Bearer ${gateway.apiKey}`,
          ...(stated ? ['Content-Length: 0'] : []),
        ]
        await exchange(gateway, message(`${method} /v1/unknown/file_1 HTTP/1.1`, lines), { method })
        const { headerLines } = await arrived
        assert.deepEqual(
          headerValues(headerLines, 'content-length'),
          stated ? ['0'] : [],
          `${method} ${stated}`,
        )
        assert.deepEqual(headerValues(headerLines, 'transfer-encoding'), [])
      }
    }
  } finally {
    await gateway.close()
    await upstream.close()
  }
})

const final = sized('HTTP/1.1 200 OK', ['X-A: 1'], '{"done":true}')

for (const surface of surfaces) {
  test(`${surface.name}: 102 and 103 precede the head, with unchanged phrases and lines`, async () => {
    const interim = [
      message('HTTP/1.1 102 Processing', []),
      message('HTTP/1.1 103 Early Hints', ['Link: </a>; rel=preload', 'link: </b>', 'X-Hint: caf\xe9']),
      message('HTTP/1.1 103 Early Hints', ['Link: </c>']),
      message('HTTP/1.1 199 Odd', ['x: y']),
      message('HTTP/1.1 103 Hints of our own', ['x: y']),
    ]
    const request = pair.request(surface, { body: surface.jsonBody })
    const { through } = await pair.compare(surface, request, () => [
      ...interim.map((bytes) => ({ send: bytes })),
      { send: final },
    ])
    assert.equal(through.reply.interim.length, 5)
    const together = Buffer.concat([...interim, final])
    await pair.compare(surface, request, () => [{ send: together }])
  })

  test(`${surface.name}: an unsolicited 100 is dropped, and the reply passes`, async () => {
    pair.upstream.queue([{ send: message('HTTP/1.1 100 Continue', []) }, { send: final }])
    const reply = await pair.exchange(pair.request(surface, { body: surface.jsonBody }))
    assert.deepEqual([reply.status, reply.interim], [200, []])
  })

  for (const target of [surface.readEndpoint, surface.streamedEndpoint]) {
    test(`${surface.name}: a client that expects 100 gets it, and ${target} gets the body without Expect`, async () => {
      const length = `Content-Length: ${surface.jsonBody.length}`
      const head = pair.head(surface, { target, lines: ['Expect: 100-continue', length] })
      const client = await connect(pair.gateway)
      const arrival = pair.upstream.nextRequest()
      const reading = client.read({ method: 'POST' })
      await client.send(head)
      await client.interimArrived()
      await client.send(surface.jsonBody)
      const reply = await reading
      assert.equal(reply.status, 200)
      assert.deepEqual(
        reply.interim.map((one) => one.statusLine),
        ['HTTP/1.1 100 Continue'],
      )
      const received = await arrival
      assert.equal(received.body.toString(), surface.jsonBody)
      assert.deepEqual(headerValues(received.headerLines, 'expect'), [])
      assert.equal((await client.request(pair.request(surface, { body: surface.jsonBody }))).status, 200)
      client.leave()
    })
  }
}
