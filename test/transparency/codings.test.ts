import { Buffer } from 'node:buffer'
import zlib from 'node:zlib'
import { startPair } from '../support/pair.ts'
import { closeAfter, test } from '../support/suite.ts'
import { surfaces } from '../support/surfaces.ts'
import { chunked, message, noise, sized } from '../support/wire-bytes.ts'
import { eventsOf, goldenStreams } from './golden-streams.ts'

const pair = await startPair()
closeAfter(pair)

const codings: Record<string, (bytes: Buffer) => Buffer> = {
  gzip: (bytes) => zlib.gzipSync(bytes),
  br: (bytes) => zlib.brotliCompressSync(bytes),
  zstd: (bytes) => zlib.zstdCompressSync(bytes),
  deflate: (bytes) => zlib.deflateSync(bytes),
  'deflate without its wrapper': (bytes) => zlib.deflateRawSync(bytes),
  'gzip, br': (bytes) => zlib.brotliCompressSync(zlib.gzipSync(bytes)),
}

const halves = (bytes: Buffer): Buffer[] => [
  bytes.subarray(0, bytes.length >> 1),
  bytes.subarray(bytes.length >> 1),
]

for (const surface of surfaces) {
  for (const [coding, encode] of Object.entries(codings)) {
    const name = coding.split(' without')[0] ?? coding

    test(`${surface.name}: a request in ${coding} and its reply arrive unchanged`, async () => {
      const body = encode(Buffer.from(surface.jsonBody))
      const coded = encode(Buffer.from('{"ok":true,"usage":{"total_tokens":1}}'))
      const request = pair.request(surface, {
        lines: [`Content-Encoding: ${name}`, `Accept-Encoding: ${name}`],
        body,
      })
      const lines = ['Content-Type: application/json', `Content-Encoding: ${name}`, 'Vary: Accept-Encoding']
      await pair.compare(surface, request, () => [{ send: sized('HTTP/1.1 200 OK', lines, coded) }])
      await pair.compare(surface, request, () => [{ send: chunked('HTTP/1.1 200 OK', lines, halves(coded)) }])
    })

    test(`${surface.name}: a chunked request in ${coding}`, async () => {
      const body = encode(Buffer.from(surface.jsonBody))
      const head = pair.head(surface, { lines: [`content-encoding: ${name}`, 'Transfer-Encoding: chunked'] })
      const chunks = chunked('', [], halves(body))
      const content = chunks.subarray(chunks.indexOf('\r\n\r\n') + 4)
      await pair.compare(surface, Buffer.concat([head, content]), () => [
        { send: sized('HTTP/1.1 200 OK', [], '') },
      ])
    })
  }

  test(`${surface.name}: a body that contradicts its coding still arrives`, async () => {
    const body = noise(5_000)
    const request = pair.request(surface, { lines: ['Content-Encoding: gzip'], body })
    const reply = sized('HTTP/1.1 400 Bad Request', ['Content-Encoding: br'], noise(5_000, 7))
    await pair.compare(surface, request, () => [{ send: reply }])
  })
}

for (const stream of goldenStreams) {
  test(`${stream.name}: a gzip stream that upstream flushes at each event`, async () => {
    const events = await flushed(zlib.createGzip(), eventsOf(stream.bytes))
    const request = pair.request(stream.surface, { target: stream.endpoint, body: stream.body })
    const head = message('HTTP/1.1 200 OK', ['content-type: text/event-stream', 'content-encoding: gzip'])
    const wire = chunked(
      'HTTP/1.1 200 OK',
      ['content-type: text/event-stream', 'content-encoding: gzip'],
      events,
    )
    const at = Math.floor(wire.length / 2)
    await pair.compare(stream.surface, request, () => [
      { send: wire.subarray(0, at) },
      { send: wire.subarray(at) },
    ])
    await pair.compare(stream.surface, request, () => [
      { send: Buffer.concat([head, ...events]) },
      { close: true },
    ])
  })
}

async function flushed(encoder: zlib.Gzip, events: readonly Buffer[]): Promise<Buffer[]> {
  const parts: Buffer[] = []
  encoder.on('data', (part: Buffer) => parts.push(part))
  for (const event of events) {
    encoder.write(event)
    await new Promise<void>((resolve) => encoder.flush(zlib.constants.Z_SYNC_FLUSH, resolve))
  }
  encoder.end()
  await new Promise((resolve) => encoder.once('end', resolve))
  return parts
}
