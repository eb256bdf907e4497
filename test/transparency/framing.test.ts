import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { startPair } from '../support/pair.ts'
import { exchange } from '../support/raw-client.ts'
import { after, test } from '../support/suite.ts'
import { surfaces } from '../support/surfaces.ts'
import { chunk, chunked, lastChunk, message, noise, sized } from '../support/wire-bytes.ts'
import { headerValues } from '../support/wire-message.ts'

const pair = await startPair()
after(() => pair.close())

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

  test(`${surface.name}: a chunked request, its chunks sent one by one`, async () => {
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

  test(`${surface.name}: upstream trailers arrive, in case, order and number`, async () => {
    const trailers = ['X-Sum: 1', 'x-sum: 2', 'Server-Timing: a;dur=1', 'X-Latin: caf\xe9', 'x-empty: ']
    const reply = chunked('HTTP/1.1 200 OK', ['Trailer: X-Sum, Server-Timing'], ['abc'], trailers)
    const request = pair.request(surface, { lines: ['TE: trailers'], body: surface.jsonBody })
    const { through } = await pair.compare(surface, request, () => [{ send: reply }])
    assert.ok(headerValues(through.reply.headerLines, 'trailer').includes('X-Sum, Server-Timing'))
    const unannounced = chunked('HTTP/1.1 200 OK', [], ['abc'], trailers)
    await pair.compare(surface, request, () => [{ send: unannounced }])
  })

  test(`${surface.name}: a transfer coding that is not ours to decode reaches the client as it is`, async () => {
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

  test(`${surface.name}: a reply that ends with its connection ends as a whole reply`, async () => {
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

  test(`${surface.name}: a client that asks to close gets its whole reply and the close`, async () => {
    for (const upstreamSays of ['close', 'keep-alive']) {
      pair.upstream.queue([{ send: chunked('HTTP/1.1 200 OK', [`Connection: ${upstreamSays}`], ['abc']) }])
      const request = pair.request(surface, { lines: ['Connection: close'], body: surface.jsonBody })
      const reply = await exchange(pair.gateway, request)
      assert.equal(reply.body.toString(), 'abc')
      assert.deepEqual(headerValues(reply.headerLines, 'connection'), ['close'])
    }
  })
}
