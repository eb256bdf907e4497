import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { assertOwnAnswer, startPair } from '../support/pair.ts'
import { connect } from '../support/raw-client.ts'
import { everyNth } from '../support/scale.ts'
import { closeAfter, test } from '../support/suite.ts'
import { type Surface, surfaceOf, surfaces } from '../support/surfaces.ts'
import type { ReceivedRequest } from '../support/upstream-script.ts'
import { message, sized } from '../support/wire-bytes.ts'
import { headerName, headerValues } from '../support/wire-message.ts'
import { assertOthersServed } from './attack.ts'

const pair = await startPair()
closeAfter(pair)

const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: h\r\nX-Ignore: '

/** Spellings of the coding that some servers have read as chunked and others have not. */
function* mutations(): Generator<string> {
  yield* [
    ' Transfer-Encoding: chunked',
    'Transfer-Encoding\t:\tchunked',
    'Transfer Encoding: chunked',
    'Transfer_Encoding: chunked',
    'Transfer Encoding:chunked',
    'Transfer-Encoding:  chunked',
    'Transfer-Encoding: chunked, cow',
    'Transfer-Encoding: cow, chunked',
    'Transfer-Encoding: cow chunked bar',
    'Transfer-Encoding: cow\r\nTransfer-Encoding: chunked',
    'Transfer-Encoding: chunked\r\nTransfer-Encoding: cow',
    'Transfer-Encoding: identity\r\nTransfer-Encoding: chunked',
    'Content-Encoding: chunked',
    'Transfer-Encoding:\n chunked',
    'Transfer-Encoding\n: chunked',
    'Transfer-Encoding: "chunked"',
    "Transfer-Encoding: 'chunked'",
    'Transfer-Encoding: chunk',
    'TrAnSFer-EnCODinG: cHuNkeD',
    'TRANSFER-ENCODING: CHUNKED',
    'Transfer-Encoding: chunked\r',
    'Transfer\r-Encoding: chunked',
    'Transfer-Encoding: ch\x96nked',
    'Transf\x82r-Encoding: chunked',
    'X:X\rTransfer-Encoding: chunked',
    'X:X\nTransfer-Encoding: chunked',
    'Transfer-Encoding: chunked;q=1',
    'Transfer-Encoding: ,chunked',
    'Transfer-Encoding: chunked,',
    'Transfer-Encoding;: chunked',
  ]
  const odd = [...range(0x00, 0x21), 0x7f, 0x80, 0x85, 0xa0, 0xff]
  for (const code of odd) {
    const c = String.fromCharCode(code)
    yield `Transfer-Encoding:${c}chunked`
    yield `Transfer-Encoding${c}: chunked`
    yield `${c}Transfer-Encoding: chunked`
    yield `Transfer-Encoding: chunked${c}`
    yield `X: X${c}Transfer-Encoding: chunked`
    yield `Transfer-Encoding: chunked${c}X: X`
    yield `X: X\r${c}Transfer-Encoding: chunked`
    yield `X: X${c}\nTransfer-Encoding: chunked`
    yield `Transfer-Encoding: chunked\r${c}X: X`
    yield `Transfer-Encoding: chunked${c}\nX: X`
  }
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, at) => from + at)
}

/** Requests whose body differs for a reader of the length and a reader of the chunks. */
function templates(surface: Surface, target: string, line: string): Buffer[] {
  const body = `0\r\n\r\n${smuggled}`
  const all = `Content-Length: ${body.length}`
  const part = 'Content-Length: 4'
  const chunkedBody = `${(smuggled.length + 4).toString(16)}\r\n${smuggled}y\r\n\r\n\r\n0\r\n\r\n`
  const heads: [string[], string][] = [
    [[all, line], body],
    [[line, all], body],
    [[part, line], chunkedBody],
  ]
  return heads.map(([lines, content]) =>
    Buffer.concat([pair.head(surface, { target, lines }), Buffer.from(content, 'latin1')]),
  )
}

let serial = 0

async function assertNotSmuggled(surface: Surface, bytes: Buffer, line: string): Promise<void> {
  pair.upstream.clear()
  const name = JSON.stringify(line)
  const mark = `same-${serial++}`
  const client = await connect(pair.gateway)
  const first = await client.request(bytes)
  assert.ok(first.status === 200 || first.status >= 400, name)
  if (first.ended === 'complete') await client.send(pair.ownCall(surface, mark))
  // Bytes read as a second request may be answered, but by us and not by upstream.
  for (let reads = 0, last = first; last.ended === 'complete' && reads < 5; reads++) {
    last = await client.read({ method: 'POST' })
    if (last.status !== 200) continue
    assertOwnAnswer(last, mark)
    break
  }
  client.leave()
  for (const request of pair.upstream.requests) assertPlain(request, name)
}

/** A request that went upstream is one request in our own framing, without a hidden one. */
function assertPlain(request: ReceivedRequest, name: string): void {
  assert.notEqual(request.target, '/smuggled', name)
  const names = request.headerLines.map(headerName)
  const framing = names.filter((one) => one === 'content-length' || one === 'transfer-encoding')
  assert.ok(framing.length <= 1, `${name} is framed twice upstream`)
  for (const coding of headerValues(request.headerLines, 'transfer-encoding'))
    assert.equal(coding, 'chunked', name)
  assert.ok(
    request.headerLines.every((one) => /^[!-9;-~]+: ?[\t -~\x80-\xff]*$/.test(one)),
    name,
  )
}

for (const surface of surfaces) {
  const target = surface.name === 'messages' ? surface.readEndpoint : surface.streamedEndpoint

  test(`${surface.name} ${target}: no spelling of the transfer coding hides a request`, async () => {
    const isDue = everyNth(3)
    for (const [at, line] of [...mutations()].entries()) {
      if (!isDue(at)) continue
      for (const bytes of templates(surface, target, line)) await assertNotSmuggled(surface, bytes, line)
      await assertOthersServed(pair, [surface])
    }
  })

  for (const method of ['GET', 'HEAD', 'DELETE', 'OPTIONS']) {
    test(`${surface.name}: a request in the body of a ${method} stays a body`, async () => {
      const inner = message('GET /smuggled HTTP/1.1', ['Host: h', ...surface.lines(pair.gateway.apiKey)])
      pair.upstream.clear()
      const client = await connect(pair.gateway)
      const reply = await client.request(
        pair.request(surface, { method, target: '/v1/unknown', body: inner }),
      )
      assert.equal(reply.status, 200)
      assertOwnAnswer(await client.request(pair.ownCall(surface, 'next')), 'next')
      client.leave()
      assert.deepEqual(
        pair.upstream.requests.map((request) => request.target),
        ['/v1/unknown', surface.readEndpoint],
      )
      assert.deepEqual(pair.upstream.requests[0]?.body, inner)
      await assertOthersServed(pair)
    })
  }

  test(`${surface.name}: bytes after a request that asked to close are not a request`, async () => {
    pair.upstream.clear()
    const first = pair.request(surface, { lines: ['Connection: close'], body: surface.jsonBody })
    const client = await connect(pair.gateway)
    const second = pair.request(surface, { method: 'GET', target: '/smuggled' })
    const reply = await client.request(Buffer.concat([first, second]))
    assert.ok(reply.status === 200 || reply.status === 400, reply.statusLine)
    await client.closed()
    client.leave()
    await assertOthersServed(pair)
    assert.ok(pair.upstream.requests.every((request) => request.target !== '/smuggled'))
  })

  test(`${surface.name}: request trailers are not forwarded`, async () => {
    for (const target of [surface.readEndpoint, surface.streamedEndpoint]) {
      pair.upstream.clear()
      const lines = ['Transfer-Encoding: chunked', 'Trailer: Authorization, X-Api-Key, X-T']
      const head = pair.head(surface, { target, lines })
      const trailers = 'Authorization: Bearer X\r\nx-api-key: Y\r\nHost: evil\r\nX-T: t\r\n'
      const client = await connect(pair.gateway)
      const reply = await client.request(
        Buffer.concat([head, Buffer.from(`2\r\n{}\r\n0\r\n${trailers}\r\n`)]),
      )
      assert.equal(reply.status, 200)
      assertOwnAnswer(await client.request(pair.ownCall(surface, 'next')), 'next')
      client.leave()
      const [received] = pair.upstream.requests
      assert.equal(received?.body.toString(), '{}')
      assert.deepEqual(received?.trailerLines, [])
      assert.deepEqual(headerValues(received?.headerLines ?? [], 'trailer'), [])
      assert.ok(received?.headerLines.every((line) => !/Bearer X|: Y$|evil|X-T/.test(line)))
    }
  })
}

test('framing headers in trailers are refused or dropped', async () => {
  for (const surface of surfaces) {
    for (const line of ['Content-Length: 5', 'Transfer-Encoding: chunked']) {
      pair.upstream.clear()
      const head = pair.head(surface, { lines: ['Transfer-Encoding: chunked'] })
      const reply = await pair.exchange(Buffer.concat([head, Buffer.from(`2\r\n{}\r\n0\r\n${line}\r\n\r\n`)]))
      assert.ok(reply.status === 400 || reply.status === 200, reply.statusLine)
      await assertOthersServed(pair)
      for (const request of pair.upstream.requests) assertPlain(request, line)
    }
  }
})

test('a key in the trailers does not count', async () => {
  const surface = surfaceOf('messages')
  const count = pair.upstream.requestCount
  const head = message('POST /v1/messages HTTP/1.1', ['Host: h', 'Transfer-Encoding: chunked'])
  const body = `2\r\n{}\r\n0\r\nx-api-key: ${pair.gateway.apiKey}\r\n\r\n`
  const reply = await pair.exchange(Buffer.concat([head, Buffer.from(body)]))
  assert.equal(reply.status, 401)
  assert.equal(pair.upstream.requestCount, count)
  await assertOthersServed(pair, [surface])
})

test('of pipelined calls with a broken one, the earlier are answered and the later are not made', async () => {
  for (const surface of surfaces) {
    pair.upstream.clear()
    const client = await connect(pair.gateway)
    const broken = message('GET /v1/models HTTP/1.1', ['Host: h', 'Bad Name: x'])
    const behind = sized('POST /smuggled HTTP/1.1', ['Host: h', ...surface.lines(pair.gateway.apiKey)], '{}')
    await client.send(Buffer.concat([pair.ownCall(surface, 'first'), broken, behind]))
    const reply = await client.read({ method: 'POST' })
    assertOwnAnswer(reply, 'first')
    await client.closed()
    client.leave()
    await assertOthersServed(pair)
    assert.ok(pair.upstream.requests.every((request) => request.target !== '/smuggled'))
  }
})
