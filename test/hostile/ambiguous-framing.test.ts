import assert from 'node:assert/strict'
import { startPair } from '../support/pair.ts'
import { closeAfter, test } from '../support/suite.ts'
import { surfaces } from '../support/surfaces.ts'
import { message } from '../support/wire-bytes.ts'
import { headerValues } from '../support/wire-message.ts'
import { assertOthersServed, assertRefusedAndClosed, assertSameConnectionServed, attack } from './attack.ts'

const pair = await startPair()
closeAfter(pair)

const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n'

const ambiguous: Record<string, { lines: string[]; body: string }> = {
  'a length before chunks': {
    lines: ['Content-Length: 6', 'Transfer-Encoding: chunked'],
    body: `0\r\n\r\n${smuggled}`,
  },
  'chunks before a length': {
    lines: ['Transfer-Encoding: chunked', 'Content-Length: 6'],
    body: `0\r\n\r\n${smuggled}`,
  },
  'a length of all and chunks of part': {
    lines: [`Content-Length: ${5 + smuggled.length}`, 'Transfer-Encoding: chunked'],
    body: `0\r\n\r\n${smuggled}`,
  },
  'two different lengths': { lines: ['Content-Length: 2', 'Content-Length: 3'], body: 'abc' },
  'two equal lengths': { lines: ['Content-Length: 2', 'content-length: 2'], body: 'ab' },
  'a list of lengths': { lines: ['Content-Length: 2, 2'], body: 'ab' },
  'a length with a sign': { lines: ['Content-Length: +2'], body: 'ab' },
  'a negative length': { lines: ['Content-Length: -2'], body: 'ab' },
  'a hexadecimal length': { lines: ['Content-Length: 0x2'], body: 'ab' },
  'an empty length': { lines: ['Content-Length: '], body: 'ab' },
  'a length of twenty digits': { lines: ['Content-Length: 99999999999999999999'], body: 'ab' },
  'a length with a blank in it': { lines: ['Content-Length: 2 2'], body: 'ab' },
  'a length in scientific notation': { lines: ['Content-Length: 2e0'], body: 'ab' },
  'a length behind a blank before the colon': { lines: ['Content-Length : 2'], body: 'ab' },
  'a coding that ends with "chunked"': { lines: ['Transfer-Encoding: xchunked'], body: '0\r\n\r\n' },
  'chunked, then identity': { lines: ['Transfer-Encoding: chunked, identity'], body: '0\r\n\r\n' },
  'chunked in two lines': {
    lines: ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'],
    body: '0\r\n\r\n',
  },
  'chunked twice in a line': { lines: ['Transfer-Encoding: chunked, chunked'], body: '0\r\n\r\n' },
  'a blank before the colon of the coding': { lines: ['Transfer-Encoding : chunked'], body: '0\r\n\r\n' },
  'a vertical tab before the coding': { lines: ['Transfer-Encoding:\x0bchunked'], body: '0\r\n\r\n' },
  'a folded coding': { lines: ['Transfer-Encoding:\r\n chunked'], body: '0\r\n\r\n' },
  'a quoted coding': { lines: ['Transfer-Encoding: "chunked"'], body: '0\r\n\r\n' },
  'an empty coding': { lines: ['Transfer-Encoding: '], body: '0\r\n\r\n' },
  'the identity coding': { lines: ['Transfer-Encoding: identity'], body: '0\r\n\r\n' },
}

for (const surface of surfaces) {
  for (const target of [surface.readEndpoint, surface.streamedEndpoint]) {
    for (const [name, { lines, body }] of Object.entries(ambiguous)) {
      test(`${surface.name} ${target}: ${name} is refused`, async () => {
        const head = pair.head(surface, { target, lines })
        await assertRefusedAndClosed(pair, Buffer.concat([head, Buffer.from(body, 'latin1')]))
      })
    }

    test(`${surface.name} ${target}: an unknown transfer coding is refused`, async () => {
      const head = pair.head(surface, { target, lines: ['Transfer-Encoding: gzip, chunked'] })
      await assertRefusedAndClosed(pair, Buffer.concat([head, Buffer.from('0\r\n\r\n')]), [400, 501])
    })

    test(`${surface.name} ${target}: a transfer coding on HTTP/1.0 is refused`, async () => {
      const head = pair.head(surface, { target, version: 'HTTP/1.0', lines: ['Transfer-Encoding: chunked'] })
      await assertRefusedAndClosed(pair, Buffer.concat([head, Buffer.from('0\r\n\r\n')]))
    })

    test(`${surface.name} ${target}: a tab before the coding is legal, and upstream gets our own framing`, async () => {
      const head = pair.head(surface, { target, lines: ['Transfer-Encoding:\tchunked'] })
      const bytes = Buffer.concat([head, Buffer.from('3\r\nabc\r\n0\r\n\r\n')])
      const { reply, client, reached } = await attack(pair, { bytes })
      assert.equal(reply.status, 200)
      assert.equal(reached.length, 1)
      assert.equal(reached[0]?.body.toString(), 'abc')
      const lines = reached[0]?.headerLines ?? []
      const framing = [...headerValues(lines, 'transfer-encoding'), ...headerValues(lines, 'content-length')]
      assert.equal(framing.length, 1)
      assert.ok(['chunked', '3'].includes(framing[0] ?? ''))
      await assertSameConnectionServed(pair, client, reply)
    })
  }

  test(`${surface.name}: a length with leading zeros goes upstream without them, or not at all`, async () => {
    for (const target of [surface.readEndpoint, surface.streamedEndpoint]) {
      const head = pair.head(surface, { target, lines: ['Content-Length: 0003'] })
      const { reply, client, reached } = await attack(pair, {
        bytes: Buffer.concat([head, Buffer.from('abc')]),
      })
      assert.ok(reply.status === 200 || reply.status === 400, reply.statusLine)
      for (const request of reached) {
        assert.equal(request.body.toString(), 'abc')
        assert.deepEqual(headerValues(request.headerLines, 'content-length'), ['3'])
      }
      await assertSameConnectionServed(pair, client, reply)
    }
  })

  test(`${surface.name}: an HTTP/1.0 client that asks for keep-alive gets its reply and the close`, async () => {
    const bytes = pair.request(surface, {
      version: 'HTTP/1.0',
      lines: ['Connection: keep-alive'],
      body: '{}',
    })
    const { reply, client } = await attack(pair, { bytes })
    assert.equal(reply.status, 200)
    await client.closed()
    client.leave()
    await assertOthersServed(pair)
  })
}

test('without a key the same bytes are refused too', async () => {
  for (const { lines, body } of Object.values(ambiguous)) {
    const head = message('POST /v1/messages HTTP/1.1', ['Host: h', ...lines])
    await assertRefusedAndClosed(pair, Buffer.concat([head, Buffer.from(body, 'latin1')]))
  }
})
