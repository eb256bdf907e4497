import { Buffer } from 'node:buffer'
import { startPair } from '../support/pair.ts'
import { closeAfter, test } from '../support/suite.ts'
import { surfaces } from '../support/surfaces.ts'
import { chunk, chunked, lastChunk, noise, sized } from '../support/wire-bytes.ts'

const pair = await startPair()
closeAfter(pair)

const MB = 1_000_000
const bytes = noise(20 * MB)
const ok = sized('HTTP/1.1 200 OK', [], '{}')

/** A document that the gateway scans, with the model at its end. */
const bigJson = (size: number): Buffer =>
  Buffer.from(
    `{"messages":[{"role":"user","content":"${'0123456789abcdef'.repeat(size / 16)}"}],"model":"m"}`,
  )

function inChunks(content: Buffer): Buffer[] {
  const parts: Buffer[] = []
  for (let at = 0; at < content.length; at += 1_000_003)
    parts.push(chunk(content.subarray(at, at + 1_000_003)))
  return [...parts, lastChunk()]
}

for (const surface of surfaces) {
  test(`${surface.name}: replies of 20 MB, sized and chunked`, async () => {
    const request = pair.request(surface, { method: 'GET', target: '/v1/files/f/content' })
    await pair.compare(surface, request, () => [{ send: sized('HTTP/1.1 200 OK', [], bytes) }])
    await pair.compare(surface, request, () => [{ send: chunked('HTTP/1.1 200 OK', [], [bytes]) }])
  })

  test(`${surface.name}: a JSON reply of 20 MB`, async () => {
    const request = pair.request(surface, { body: surface.jsonBody })
    const reply = sized('HTTP/1.1 200 OK', ['Content-Type: application/json'], bigJson(20 * MB))
    await pair.compare(surface, request, () => [{ send: reply }])
  })

  for (const target of [surface.readEndpoint, surface.streamedEndpoint]) {
    test(`${surface.name}: requests of 20 MB to ${target}, sized and chunked`, async () => {
      await pair.compare(surface, pair.request(surface, { target, body: bytes }), () => [{ send: ok }])
      await pair.compare(surface, pair.request(surface, { target, body: bigJson(20 * MB) }), () => [
        { send: ok },
      ])
      const head = pair.head(surface, { target, lines: ['Transfer-Encoding: chunked'] })
      await pair.compare(surface, [head, ...inChunks(bytes)], () => [{ send: ok }])
    })

    test(`${surface.name}: a request of 40 MB to ${target}, above the memory limit`, async () => {
      const body = bigJson(40 * MB)
      await pair.compare(surface, pair.request(surface, { target, body }), () => [{ send: ok }])
      const head = pair.head(surface, { target, lines: ['Transfer-Encoding: chunked'] })
      await pair.compare(surface, [head, ...inChunks(body)], () => [{ send: ok }])
    })
  }

  test(`${surface.name}: 20 MB both ways at once`, async () => {
    const request = pair.request(surface, { method: 'PUT', target: '/v1/unknown/f', body: bytes })
    const reply = chunked('HTTP/1.1 200 OK', [], [bytes])
    await pair.compare(surface, request, ({ whenComplete }) => ({
      // The reply does not end before the upload: a complete reply would end the rest of the upload.
      early: [{ send: reply.subarray(0, -7) }, { pause: whenComplete }, { send: reply.subarray(-7) }],
    }))
  })
}
