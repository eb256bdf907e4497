import { startPair } from '../support/pair.ts'
import { after, test } from '../support/suite.ts'
import { surfaces } from '../support/surfaces.ts'
import { chunked, message, sized } from '../support/wire-bytes.ts'

const pair = await startPair()
after(() => pair.close())

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

  test(`${surface.name}: reason phrases pass, odd ones too`, async () => {
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

  test(`${surface.name}: an error that upstream makes before it reads, and closes after, passes`, async () => {
    const reply = message('HTTP/1.1 503 Service Unavailable', ['Connection: close'], 'upstream is busy')
    await pair.compare(surface, request, () => [{ send: reply }, { close: true }])
  })
}
