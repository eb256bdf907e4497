import assert from 'node:assert/strict'
import fc from 'fast-check'
import { HEADER_OVERFLOW, type MessageHead, MessageReader } from '../../src/http/message-reader.ts'
import { test } from '../support/suite.ts'

interface Message {
  readonly head: MessageHead
  body: string
  trailers: string[] | null
}

function readAll(kind: 'request' | 'response', pieces: readonly (string | Buffer)[], bodyless = false) {
  const messages: Message[] = []
  const reader = new MessageReader(kind, {
    head(head) {
      messages.push({ head, body: '', trailers: null })
    },
    data(chunk) {
      const message = messages.at(-1)
      assert.ok(message !== undefined && message.trailers === null && chunk.length > 0)
      message.body += chunk.toString('latin1')
      return true
    },
    end(trailers) {
      const message = messages.at(-1)
      assert.ok(message !== undefined && message.trailers === null)
      message.trailers = trailers
    },
  })
  reader.hasNoBody = bodyless
  let error: string | null = null
  for (const piece of pieces) {
    error ??= reader.read(typeof piece === 'string' ? Buffer.from(piece, 'latin1') : piece)?.code ?? null
  }
  const end = error === null ? (reader.finish()?.code ?? null) : null
  reader.close()
  return { messages, error, end }
}

const POST = 'POST /a?b HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello'
const CHUNKED =
  'POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=1\r\nde\r\n0\r\nT: v\r\nT: w\r\n\r\n'
/** A text that contains something like the end of a head. */
const LONG_TEXT = `${'x'.repeat(9_000)}\r\n\r\n`.repeat(2)
const LONG_POST = `POST /l HTTP/1.1\r\nContent-Length: ${LONG_TEXT.length}\r\n\r\n${LONG_TEXT}`
const LONG_CHUNKED = `POST /m HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n${LONG_TEXT.length.toString(16)}\r\n${LONG_TEXT}\r\n0\r\n\r\n`
const GET = 'GET / HTTP/1.1\r\nX-Latin: caf\xe9\r\nx-latin:  two \r\n\r\n'

test('a head has its method, target, version, and header lines with case, order and duplicates', () => {
  const [message] = readAll('request', [GET]).messages
  assert.deepEqual(message?.head, {
    httpVersion: '1.1',
    headers: ['X-Latin', 'caf\xe9', 'x-latin', 'two'],
    method: 'GET',
    target: '/',
    status: 0,
    reason: '',
    keepAlive: true,
    isUpgrade: false,
  })
})

test('any chunks give the same messages', () => {
  const HEAD = 'HEAD /h HTTP/1.1\r\nContent-Length: 0\r\n\r\n'
  const kinds = fc.constantFrom(POST, CHUNKED, GET, HEAD, LONG_POST, LONG_CHUNKED)
  fc.assert(
    fc.property(fc.array(kinds, { minLength: 1, maxLength: 6 }), fc.array(fc.nat(60_000)), (texts, cuts) => {
      const whole = Buffer.from(texts.join(''), 'latin1')
      const at = [...new Set(cuts.map((cut) => cut % whole.length))].sort((a, b) => a - b)
      const pieces = [0, ...at].map((from, i) => whole.subarray(from, at[i] ?? whole.length))
      assert.deepEqual(readAll('request', pieces), readAll('request', [whole]))
      assert.equal(readAll('request', [whole]).messages.length, texts.length)
    }),
  )
})

test('a head after a body of known length has the same limits as the first, in any chunks', () => {
  const lines = `GET / HTTP/1.1\r\n${'a: b\r\n'.repeat(1_001)}\r\n`
  const large = `GET / HTTP/1.1\r\na: ${'b'.repeat(70_000)}\r\n\r\n`
  for (const broken of [lines, large]) {
    const { error } = readAll('request', [broken])
    assert.ok(error !== null)
    for (const at of [1, 20, 9_000]) {
      const halves = [broken.slice(0, at), broken.slice(at)]
      for (const pieces of [[POST, broken], [POST + broken], [POST, ...halves]]) {
        assert.equal(readAll('request', pieces).error, error)
      }
    }
  }
})

test('a body of known length passes as views of its chunks, and ends at its length', () => {
  const chunk = Buffer.from(`lo${POST}`, 'latin1')
  const seen: Buffer[] = []
  const receiver = { head() {}, data: (part: Buffer) => seen.push(part) > 0, end() {} }
  const reader = new MessageReader('request', receiver)
  const first = Buffer.from(POST.slice(0, -2), 'latin1')
  reader.read(first)
  reader.read(chunk)
  assert.deepEqual(seen.map(String), ['hel', 'lo', 'hello'])
  for (const [i, whole] of [first, chunk, chunk].entries()) assert.equal(seen[i]?.buffer, whole.buffer)
  reader.close()
})

test('trailers come with the end, and the next message does not inherit them', () => {
  const { messages } = readAll('request', [CHUNKED + GET])
  assert.deepEqual(messages[0]?.trailers, ['T', 'v', 'T', 'w'])
  assert.equal(messages[0]?.body, 'abcde')
  assert.deepEqual(messages[1]?.head.headers, ['X-Latin', 'caf\xe9', 'x-latin', 'two'])
})

test('a thousand header lines pass, and one more is an error before the head is delivered', () => {
  const lines = (count: number) => `GET / HTTP/1.1\r\n${'a: 1\r\n'.repeat(count)}\r\n`
  assert.equal(readAll('request', [lines(1_000)]).messages[0]?.head.headers.length, 2_000)
  assert.deepEqual(readAll('request', [lines(1_001)]), { messages: [], error: HEADER_OVERFLOW, end: null })
})

test('chunk headers of a chunked body have the limits of a head', () => {
  const head = 'POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;a='
  const more = Array.from({ length: 70 }, () => 'x'.repeat(1_000))
  assert.equal(readAll('request', [head, ...more]).error, 'HPE_HEADER_OVERFLOW')
  const bytes = Array.from({ length: 20_000 }, () => '1\r\na\r\n')
  assert.equal(readAll('request', [head, '\r\na\r\n', ...bytes, '0\r\n\r\n']).error, null)
})

test('a head above the maximum size is an error, in any chunks', () => {
  const head = `GET / HTTP/1.1\r\nX: ${'a'.repeat(66_000)}\r\n\r\n`
  assert.equal(readAll('request', [head]).error, 'HPE_HEADER_OVERFLOW')
  assert.equal(readAll('request', [...head]).error, 'HPE_HEADER_OVERFLOW')
})

for (const [what, bytes] of [
  ['an empty coding beside a length', 'POST / HTTP/1.1\r\nTransfer-Encoding:\r\nContent-Length: 1\r\n\r\na'],
  [
    'a length and a coding',
    'POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  ],
  ['two lengths', 'POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\naa'],
  ['a length that is not a number', 'POST / HTTP/1.1\r\nContent-Length: 0x1\r\n\r\na'],
  ['a bare line feed', 'GET / HTTP/1.1\nHost: a\n\n'],
  ['a blank before the colon', 'GET / HTTP/1.1\r\nHost : a\r\n\r\n'],
  ['a folded line', 'GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n'],
  ['a chunk size that is not a number', 'POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'],
  ['more after Connection: close', `GET / HTTP/1.1\r\nConnection: close\r\n\r\n${GET}`],
] as const) {
  test(`${what}: an error`, () => assert.match(readAll('request', [bytes]).error ?? '', /^HPE_/))
}

test('an end within a message is an error, between two messages it is not', () => {
  assert.equal(readAll('request', [POST]).end, null)
  for (const cut of [POST.slice(0, 10), POST.slice(0, -1), CHUNKED.slice(0, -3)]) {
    assert.equal(readAll('request', [cut]).end, 'HPE_INVALID_EOF_STATE', cut)
  }
})

test('an upgrade request is reported and the next request is read; nothing is read after CONNECT', () => {
  const upgrade = 'GET / HTTP/1.1\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n'
  const read = readAll('request', [upgrade + POST])
  assert.deepEqual(
    read.messages.map(({ head }) => head.isUpgrade),
    [true, false],
  )
  for (const behind of [POST, LONG_POST]) {
    assert.equal(readAll('request', [upgrade + behind]).messages[1]?.head.method, 'POST')
    assert.equal(readAll('request', [`CONNECT a:1 HTTP/1.1\r\n\r\n${behind}`, GET]).messages.length, 1)
  }
})

test('RTSP and ICE are not HTTP, wherever the bytes are split', () => {
  for (const line of [
    'GET /v1/models RTSP/1.0',
    'POST /  RTSP/1.1',
    'OPTIONS * RTSP/1.0',
    'SOURCE /a ICE/1.0',
  ]) {
    const request = `${line}\r\nHost: h\r\n\r\n`
    for (let at = 0; at < request.length; at += 1) {
      const { messages, error } = readAll('request', [request.slice(0, at), request.slice(at)])
      assert.deepEqual([messages.length, error], [0, 'HPE_INVALID_CONSTANT'], `${line} split at ${at}`)
    }
  }
  for (let at = 0; at < GET.length; at += 1)
    assert.equal(readAll('request', [GET.slice(0, at), GET.slice(at)]).messages[0]?.head.target, '/')
})
