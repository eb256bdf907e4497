import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { startPair } from '../support/pair.ts'
import { closeAfter, test } from '../support/suite.ts'
import { surfaces } from '../support/surfaces.ts'
import { assertOthersServed, assertRefusedAndClosed, attack } from './attack.ts'

const pair = await startPair()
closeAfter(pair)

const badLines: Record<string, string> = {
  'a carriage return in a value': 'X-A: a\rb',
  'a bare CR as a line end': 'X-A: a\rX-B: b',
  'a NUL in a value': 'X-A: a\0b',
  'a NUL in a name': 'X-\0A: b',
  'a folded line': 'X-A: a\r\n b',
  'a folded line with a tab': 'X-A: a\r\n\tb',
  'a line without a colon': 'X-A',
  'a line that starts with a colon': ': a',
  'a blank in a name': 'X A: b',
  'a blank before the colon': 'X-A : b',
  'a tab before the colon': 'X-A\t: b',
  'a byte above ASCII in a name': 'X-\xe9: b',
  'a control character in a value': 'X-A: a\x01b',
  'a delete character in a value': 'X-A: a\x7fb',
  'a bracket in a name': 'X(A): b',
}

const badChunks: Record<string, string> = {
  'a chunk size with a prefix': '0x1\r\na\r\n0\r\n\r\n',
  'a chunk size with a blank behind it': '1 \r\na\r\n0\r\n\r\n',
  'a chunk size with a blank before it': ' 1\r\na\r\n0\r\n\r\n',
  'a chunk size with a sign': '+1\r\na\r\n0\r\n\r\n',
  'a chunk size of seventeen digits': 'fffffffffffffffff\r\na\r\n0\r\n\r\n',
  'an empty chunk size': '\r\na\r\n0\r\n\r\n',
  'a chunk extension with a line feed': '1;a\nb\r\na\r\n0\r\n\r\n',
  'a chunk size that ends with a bare LF': '1\na\r\n0\r\n\r\n',
  'a chunk without the line end behind its data': '1\r\na0\r\n\r\n',
  'a chunk that is longer than its size': '1\r\nabc\r\n0\r\n\r\n',
  'a chunk that ends with a bare LF': '1\r\na\n0\r\n\r\n',
  'a negative chunk size': '-1\r\na\r\n0\r\n\r\n',
  'a trailer with a NUL': '1\r\na\r\n0\r\nX: a\0\r\n\r\n',
}

for (const surface of surfaces) {
  for (const [name, line] of Object.entries(badLines)) {
    test(`${surface.name}: ${name} is refused`, async () => {
      await assertRefusedAndClosed(pair, pair.request(surface, { before: [line], body: surface.jsonBody }))
      await assertRefusedAndClosed(pair, pair.request(surface, { lines: [line], body: surface.jsonBody }))
    })
  }

  test(`${surface.name}: lines that end with a bare LF are refused`, async () => {
    const good = pair.request(surface, { body: surface.jsonBody }).toString('latin1')
    const headEnd = good.indexOf('\r\n\r\n')
    const bare = good.slice(0, headEnd).replaceAll('\r\n', '\n')
    for (const end of ['\n\n', '\r\n\r\n', '\r\n\n', '\n\r\n']) {
      await assertRefusedAndClosed(pair, `${bare}${end}${surface.jsonBody}`)
    }
  })

  for (const [name, chunks] of Object.entries(badChunks)) {
    test(`${surface.name}: ${name} is refused, and nothing of a buffered body went upstream`, async () => {
      const head = pair.head(surface, { lines: ['Transfer-Encoding: chunked'] })
      const whole = Buffer.concat([head, Buffer.from(chunks, 'latin1')])
      await assertRefusedAndClosed(pair, whole)
      await assertRefusedAndClosed(pair, [head, Buffer.from(chunks, 'latin1')])
    })

    test(`${surface.name}: ${name} never completes a streamed request`, async () => {
      const head = pair.head(surface, {
        target: surface.streamedEndpoint,
        lines: ['Transfer-Encoding: chunked'],
      })
      const { reply, client, reached } = await attack(pair, { bytes: [head, Buffer.from(chunks, 'latin1')] })
      assert.ok(reply.status === 400 || reply.ended === 'cut', reply.statusLine)
      await client.closed()
      client.leave()
      for (const request of reached) {
        await request.whenPeerClosed
        await request.whenAnswered
        assert.equal(request.complete, false)
      }
      await assertOthersServed(pair)
    })
  }
}

test('bytes that are not HTTP are refused', async () => {
  const garbage = [
    'SSH-2.0-OpenSSH_9.2\r\n',
    '\0\0\0\0',
    '{"jsonrpc":"2.0"}\r\n\r\n',
    'GET\r\n\r\n',
    'GET  HTTP/1.1\r\nHost: h\r\n\r\n',
    ' GET / HTTP/1.1\r\nHost: h\r\n\r\n',
    'GET / HTTP/1.1 \r\nHost: h\r\n\r\n',
    'GET / http/1.1\r\nHost: h\r\n\r\n',
    'GET / HTTP/1.1\r\n Host: h\r\n\r\n',
    'GET / HTTP/11\r\nHost: h\r\n\r\n',
    'GET / HTTP/1\r\nHost: h\r\n\r\n',
    'GET /\x01 HTTP/1.1\r\nHost: h\r\n\r\n',
    'GET /\xe9 HTTP/1.1\r\nHost: h\r\n\r\n',
    'GET /a b HTTP/1.1\r\nHost: h\r\n\r\n',
    'GET /\x7f HTTP/1.1\r\nHost: h\r\n\r\n',
  ]
  for (const bytes of garbage) await assertRefusedAndClosed(pair, bytes)
})
