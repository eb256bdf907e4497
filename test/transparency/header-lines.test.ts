import { startPair } from '../support/pair.ts'
import { closeAfter, test } from '../support/suite.ts'
import { surfaces } from '../support/surfaces.ts'
import { chunked, message, sized } from '../support/wire-bytes.ts'
import { eventsOf, goldenStreams } from './golden-streams.ts'

const pair = await startPair()
closeAfter(pair)

/** Every character that a header name may contain. */
const tokenCharacters = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
const visible = Array.from({ length: 0x7f - 0x21 }, (_, at) => String.fromCharCode(0x21 + at)).join('')
const latin1 = Array.from({ length: 0x80 }, (_, at) => String.fromCharCode(0x80 + at)).join('')

const oddLines: Record<string, string[]> = {
  'duplicates, apart and in other case': ['X-Dup: 1', 'Accept: a/b', 'x-dup: 2', 'X-DUP: 1', 'accept: c/d'],
  'empty values': ['X-Empty: ', 'x-none:', 'X-Blank:   '],
  'blanks and tabs inside and around values': ['X-Tab: a\tb', 'X-Blanks: a   b', 'X-Around: \t a \t'],
  'bytes above ASCII': [`X-Latin: caf\xe9 ${latin1}`, 'X-Utf8: \xe2\x82\xac \xf0\x9f\x98\x80'],
  'every visible character in a value': [`X-Visible: ${visible}`],
  'every character in a name': [`${tokenCharacters}: 1`],
  'names of Object.prototype members': [
    '__proto__: x',
    'constructor: y',
    'hasOwnProperty: z',
    'toString: t',
    '__proto__: again',
    'valueOf: v',
  ],
  'a very long value': [`X-Long: ${'abcdefgh'.repeat(5_000)}`],
  'a very long name': [`X-${'n'.repeat(4_000)}: 1`],
  'many lines': Array.from({ length: 900 }, (_, at) => `X-N: ${at}`),
  'a colon and quotes in a value': ['X-Url: http://a:b@c/?d=e;f="g,h"', 'X-Comma: a,b , c'],
  'numbers as names': ['1: a', '0: b', '10: c'],
}

const requestOnly: Record<string, string[]> = {
  'header lines of the SDKs': [
    'User-Agent: Anthropic/JS 1.8.0',
    'x-stainless-retry-count: 0',
    'X-Stainless-OS: Linux',
    'anthropic-beta: context-1m-2025-08-07,fast-mode-2026-02-01',
    'anthropic-beta: oauth-2025-04-20',
    'OpenAI-Beta: assistants=v2',
    'Idempotency-Key: 1',
    'x-client-request-id: c',
    'traceparent: 00-1-2-01',
    'accept-language: *',
    'sec-fetch-mode: cors',
    'Origin: https://app.test',
    'Referer: https://app.test/x',
  ],
  'conditional and range lines': [
    'Range: bytes=0-1',
    'If-None-Match: "a"',
    'If-Modified-Since: x',
    'Pragma: no-cache',
  ],
  'names that resemble dropped ones': [
    'x_api_key: k',
    'authorization2: x',
    'x-forwarded: 1',
    'xvia: 2',
    'cookie2: c',
  ],
}

const replyOnly: Record<string, string[]> = {
  cookies: ['Set-Cookie: a=1; Path=/', 'set-cookie: b=2', 'Set-Cookie: a=3'],
  'header lines of the providers': [
    'Date: Sun, 15 Nov 2026 01:02:03 GMT',
    'request-id: req_011',
    'X-Request-Id: up',
    'anthropic-ratelimit-requests-remaining: 9',
    'openai-processing-ms: 12',
    'CF-RAY: abc-FRA',
    'Via: 1.1 google',
    'Server: cloudflare',
    'alt-svc: h3=":443"; ma=86400',
    'Strict-Transport-Security: max-age=1',
  ],
  'request header lines': [
    'Authorization: x',
    'x-api-key: y',
    'Cookie: z',
    'X-Forwarded-For: 1.2.3.4',
    'Host: h',
  ],
}

for (const surface of surfaces) {
  for (const [name, lines] of Object.entries({ ...oddLines, ...requestOnly })) {
    test(`${surface.name}: requests with ${name}`, async () => {
      const request = pair.request(surface, { lines, body: surface.jsonBody })
      await pair.compare(surface, request, () => [{ send: sized('HTTP/1.1 200 OK', [], '{}') }])
    })
  }

  for (const [name, lines] of Object.entries({ ...oddLines, ...replyOnly })) {
    test(`${surface.name}: replies with ${name}`, async () => {
      const request = pair.request(surface, { body: surface.jsonBody })
      await pair.compare(surface, request, () => [{ send: sized('HTTP/1.1 200 OK', lines, '{}') }])
      const reply = chunked('HTTP/1.1 200 OK', lines, ['{}'])
      await pair.compare(surface, request, () => [{ send: reply }])
      // The head comes before the body: a head on its own takes a different path through the gateway.
      const bodyAt = reply.indexOf('\r\n\r\n') + 4
      const slices = [{ send: reply.subarray(0, bodyAt) }, { send: reply.subarray(bodyAt) }]
      await pair.compare(surface, request, () => slices)
    })
  }

  test(`${surface.name}: lines before and after the key and the framing keep their order`, async () => {
    const request = pair.request(surface, {
      before: ['X-1: a', 'content-type: application/json', 'X-2: b'],
      lines: ['X-3: c', 'x-1: d'],
      body: surface.jsonBody,
    })
    const reply = ['X-1: a', 'Content-Type: x/y', 'x-1: b']
    await pair.compare(surface, request, () => [{ send: sized('HTTP/1.1 200 OK', reply, '{}') }])
  })
}

const phrases = [
  'OK',
  'Fine by me',
  'ok',
  'O-K!',
  ' leading blank',
  'trailing blank ',
  'a\ttab',
  '~',
  '200',
  'x'.repeat(500),
]

for (const surface of surfaces) {
  const request = pair.request(surface, { body: surface.jsonBody })

  test(`${surface.name}: reason phrases pass, including odd ones`, async () => {
    for (const phrase of phrases) {
      await pair.compare(surface, request, () => [{ send: sized(`HTTP/1.1 200 ${phrase}`, [], '{}') }])
    }
  })

  test(`${surface.name}: an absent reason phrase stays absent`, async () => {
    await pair.compare(surface, request, () => [{ send: sized('HTTP/1.1 200 ', [], '{}') }])
    await pair.compare(surface, request, () => [{ send: sized('HTTP/1.1 529 ', [], '{}') }])
  })

  test(`${surface.name}: every status passes with its body and headers`, async () => {
    const lines = [
      'Retry-After: 7',
      'retry-after-ms: 7000',
      'x-should-retry: true',
      'WWW-Authenticate: Bearer',
    ]
    for (const status of [200, 201, 202, 203, 207, 226, 299, 300, 301, 303, 307, 308]) {
      await pair.compare(surface, request, () => [{ send: sized(`HTTP/1.1 ${status} S`, lines, '{"a":1}') }])
    }
    for (const status of [
      400, 401, 402, 403, 404, 405, 407, 408, 409, 413, 414, 418, 422, 425, 429, 431, 451, 499,
    ]) {
      await pair.compare(surface, request, () => [
        { send: sized(`HTTP/1.1 ${status} S`, lines, '{"error":{}}') },
      ])
    }
    for (const status of [500, 501, 502, 503, 504, 511, 520, 529, 598, 599, 600, 999]) {
      await pair.compare(surface, request, () => [
        { send: chunked(`HTTP/1.1 ${status} S`, lines, ['<html>']) },
      ])
    }
  })

  test(`${surface.name}: an error sent before the body was read, with a close, passes`, async () => {
    const reply = message('HTTP/1.1 503 Service Unavailable', ['Connection: close'], 'upstream is busy')
    await pair.compare(surface, request, () => [{ send: reply }, { close: true }])
  })
}

const json = '{"id":"x","content":[{"type":"text","text":"h\\u00e9 \xc3\xa9"}],"usage":{"input_tokens":3}}\n'
const requestLines = ['Content-Type: application/json', 'User-Agent: Tester/1.0', 'Accept: application/json']

for (const surface of surfaces) {
  test(`${surface.name}: a JSON call`, async () => {
    const lines = [
      'Date: Sun, 15 Nov 2026 01:02:03 GMT',
      'Content-Type: application/json',
      'request-id: req_up',
    ]
    const request = pair.request(surface, { lines: requestLines, body: surface.jsonBody })
    await pair.compare(surface, request, () => [{ send: sized('HTTP/1.1 200 OK', lines, json) }])
    await pair.compare(surface, request, () => [{ send: chunked('HTTP/1.1 200 OK', lines, [json]) }])
  })

  test(`${surface.name}: a GET without a body`, async () => {
    const request = pair.request(surface, { method: 'GET', target: '/v1/models', lines: ['Accept: */*'] })
    await pair.compare(surface, request, () => [{ send: sized('HTTP/1.1 200 OK', [], json) }])
  })
}

for (const stream of goldenStreams) {
  test(`${stream.name}: an event stream`, async () => {
    const lines = [
      'content-type: text/event-stream; charset=utf-8',
      'cache-control: no-cache',
      'x-request-id: up',
    ]
    const request = pair.request(stream.surface, { target: stream.endpoint, body: stream.body })
    const reply = chunked('HTTP/1.1 200 OK', lines, eventsOf(stream.bytes))
    await pair.compare(stream.surface, request, () => [{ send: reply }])
  })

  test(`${stream.name}: an error event in the middle of a stream`, async () => {
    const events = [...eventsOf(stream.bytes).slice(0, 3), 'event: error\ndata: {"type":"error"}\n\n']
    // A response that upstream stores would be polled for its usage.
    const body = JSON.stringify({ ...JSON.parse(String(stream.body)), store: false })
    const request = pair.request(stream.surface, { target: stream.endpoint, body })
    const reply = chunked('HTTP/1.1 200 OK', ['content-type: text/event-stream'], events)
    await pair.compare(stream.surface, request, () => [{ send: reply }])
  })
}
