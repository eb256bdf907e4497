import { startPair } from '../support/pair.ts'
import { after, test } from '../support/suite.ts'
import { surfaces } from '../support/surfaces.ts'
import { chunked, sized } from '../support/wire-bytes.ts'

const pair = await startPair()
after(() => pair.close())

/** Every character a header name may have. */
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
  'names that objects have': [
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
  'what SDKs send': [
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
  'look-alikes of dropped lines': [
    'x_api_key: k',
    'authorization2: x',
    'x-forwarded: 1',
    'xvia: 2',
    'cookie2: c',
  ],
}

const replyOnly: Record<string, string[]> = {
  cookies: ['Set-Cookie: a=1; Path=/', 'set-cookie: b=2', 'Set-Cookie: a=3'],
  'what providers send': [
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
  'lines of a request': [
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
      // The head comes alone, and the body later: a head that leaves by itself takes another path through the gateway.
      const bodyAt = reply.indexOf('\r\n\r\n') + 4
      const slices = [{ send: reply.subarray(0, bodyAt) }, { send: reply.subarray(bodyAt) }]
      await pair.compare(surface, request, () => slices)
    })
  }

  test(`${surface.name}: lines in front of the key, behind it and around the framing keep their order`, async () => {
    const request = pair.request(surface, {
      before: ['X-1: a', 'content-type: application/json', 'X-2: b'],
      lines: ['X-3: c', 'x-1: d'],
      body: surface.jsonBody,
    })
    const reply = ['X-1: a', 'Content-Type: x/y', 'x-1: b']
    await pair.compare(surface, request, () => [{ send: sized('HTTP/1.1 200 OK', reply, '{}') }])
  })
}
