import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { startGateway } from '../support/gateway.ts'
import { startPair } from '../support/pair.ts'
import { exchange } from '../support/raw-client.ts'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { after, test } from '../support/suite.ts'
import { surfaces } from '../support/surfaces.ts'
import { chunk, chunked, lastChunk, message, noise, sized } from '../support/wire-bytes.ts'
import { headerValues } from '../support/wire-message.ts'

const pair = await startPair()
after(() => pair.close())

const allBytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))

for (const surface of surfaces) {
  const target = '/v1/files/file_1'

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

  test(`${surface.name}: a redirect is passed on and not followed`, async () => {
    const request = pair.request(surface, { method: 'GET', target })
    const reply = sized('HTTP/1.1 302 Found', ['Location: http://127.0.0.1:9/elsewhere'], '')
    await pair.compare(surface, request, () => [{ send: reply }])
  })
}

test('a stated length of 0 reaches upstream for every method, and none is made up', async () => {
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
        await exchange(gateway, message(`${method} /v1/files/file_1 HTTP/1.1`, lines), { method })
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
