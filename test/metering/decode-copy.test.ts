import assert from 'node:assert/strict'
import {
  brotliCompressSync,
  deflateRawSync,
  deflateSync,
  gzipSync,
  constants as zlib,
  zstdCompressSync,
} from 'node:zlib'
import fc from 'fast-check'
import { type Coding, CopyDecoder } from '../../src/metering/decode-copy.ts'
import { PIECE_BYTES } from '../../src/metering/reading-pace.ts'
import { findEndpoint } from '../../src/providers/find-endpoint.ts'
import { RequestReader } from '../../src/providers/read-request.ts'
import { modelAsked } from '../../src/providers/request-facts.ts'
import { runs } from '../support/scale.ts'
import { test } from '../support/suite.ts'
import { pieceSizes } from './slices.ts'

type Text = { readonly plain: Uint8Array; readonly coded: Buffer }

const plain = fc.oneof(
  fc.uint8Array({ maxLength: 2_000 }),
  // Long compressible texts, so that one chunk decodes to many.
  fc
    .tuple(fc.uint8Array({ minLength: 1, maxLength: 20 }), fc.integer({ min: 1, max: 5_000 }))
    .map(([bytes, times]) => Uint8Array.from(Buffer.concat(Array.from({ length: times }, () => bytes)))),
)
const textIn = (encode: (bytes: Uint8Array) => Buffer): fc.Arbitrary<Text> =>
  plain.map((bytes) => ({ plain: bytes, coded: encode(bytes) }))
const gzip = fc
  .tuple(fc.integer({ min: 0, max: 9 }), plain)
  .map(([level, bytes]) => ({ plain: bytes, coded: gzipSync(bytes, { level }) }))
const zstd = fc.tuple(fc.integer({ min: 1, max: 6 }), fc.boolean(), plain).map(([level, checked, bytes]) => {
  const params = { [zlib.ZSTD_c_compressionLevel]: level, [zlib.ZSTD_c_checksumFlag]: checked ? 1 : 0 }
  return { plain: bytes, coded: zstdCompressSync(bytes, { params }) }
})

/** Bodies of one coding, as several compressed members in a row if the coding allows it. */
const bodies: Readonly<Record<string, fc.Arbitrary<readonly Text[]>>> = {
  gzip: fc.array(gzip, { minLength: 1, maxLength: 6 }),
  'x-gzip': fc.array(gzip, { minLength: 1, maxLength: 3 }),
  zstd: fc.array(zstd, { minLength: 1, maxLength: 4 }),
  br: textIn((bytes) => brotliCompressSync(bytes)).map((text) => [text]),
  deflate: fc
    .oneof(
      textIn((bytes) => deflateSync(bytes)),
      textIn((bytes) => deflateRawSync(bytes)),
    )
    .map((text) => [text]),
}

/** Mostly small chunks, and often the whole body in one, where the next member follows without a split. */
const sizes = fc.oneof(pieceSizes, fc.constant([1_000_000]))

function* piecesOf(bytes: Buffer, pieces: readonly number[]): Generator<Buffer> {
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const length = pieces[turn % pieces.length] ?? 1
    yield bytes.subarray(at, at + length)
    at += length
  }
}

for (const [coding, body] of Object.entries(bodies)) {
  test(`${coding}: the decoded copy equals the body, for any number of members and any chunks`, async () => {
    await fc.assert(
      fc.asyncProperty(body, sizes, fc.boolean(), async (texts, pieces, waits) => {
        const seen: Buffer[] = []
        const decoder = new CopyDecoder(coding as Coding, 1e7, (bytes) => seen.push(Buffer.from(bytes)))
        for (const piece of piecesOf(Buffer.concat(texts.map((text) => text.coded)), pieces)) {
          const wait = decoder.write(piece)
          if (waits) await wait
        }
        assert.equal(await decoder.end(), 'whole')
        assert.ok(Buffer.concat(seen).equals(Buffer.concat(texts.map((text) => text.plain))))
      }),
      { numRuns: runs(60) },
    )
  })
}

const MESSAGES = findEndpoint('messages', 'POST', '/v1/messages')
assert.ok(MESSAGES)
const json = JSON.stringify({ padding: 'x'.repeat(500), model: 'gpt-5.5', more: 'y'.repeat(500) })
test('gzip: a request of several members is read to its end', async () => {
  const cuts = fc.uniqueArray(fc.integer({ min: 1, max: json.length - 1 }), { maxLength: 5 })
  await fc.assert(
    fc.asyncProperty(cuts, sizes, async (at, pieces) => {
      const places = [0, ...at.sort((a, b) => a - b), json.length]
      const texts = places.slice(1).map((end, i) => gzipSync(Buffer.from(json.slice(places[i], end))))
      const head = { contentType: 'application/json', contentEncoding: 'gzip' }
      const reader = new RequestReader(MESSAGES, head)
      for (const piece of piecesOf(Buffer.concat(texts), pieces)) await reader.write(piece)
      assert.equal(modelAsked(await reader.end()), 'gpt-5.5')
    }),
    { numRuns: runs(40) },
  )
})

for (const [coding, encode] of Object.entries({
  gzip: (bytes: Buffer) => gzipSync(bytes),
  zstd: (bytes: Buffer) => zstdCompressSync(bytes),
  br: (bytes: Buffer) => brotliCompressSync(bytes),
  deflate: (bytes: Buffer) => deflateSync(bytes),
})) {
  test(`${coding}: at most one chunk of output is read per iteration of the event loop`, async () => {
    let inTurn = 0
    let most = 0
    let isOver = false
    const turn = () => {
      inTurn = 0
      if (!isOver) setImmediate(turn)
    }
    setImmediate(turn)
    const decoder = new CopyDecoder(coding as Coding, 10_000_000, (bytes) => {
      inTurn += bytes.length
      most = Math.max(most, inTurn)
    })
    await decoder.write(encode(Buffer.alloc(3_000_000, 'abc')))
    assert.equal(await decoder.end(), 'whole')
    isOver = true
    assert.ok(most <= PIECE_BYTES, String(most))
  })
}

async function decodeAll(
  coding: string,
  chunks: readonly Buffer[],
): Promise<{ text: string; state: string }> {
  let text = ''
  const decoder = new CopyDecoder(coding as Coding, 1_000_000, (bytes) => {
    text += bytes.toString()
  })
  for (const chunk of chunks) await decoder.write(chunk)
  return { state: await decoder.end(), text }
}

test('bytes after a compressed body make it corrupt, since other decoders may read on', async () => {
  const padded = Buffer.concat([gzipSync('a'), Buffer.alloc(3), gzipSync('b')])
  assert.deepEqual(await decodeAll('gzip', [padded]), { text: 'a', state: 'corrupt' })
  assert.deepEqual(await decodeAll('gzip', [gzipSync('a'), Buffer.alloc(3)]), { text: 'a', state: 'corrupt' })
  for (const [coding, encode] of [
    ['br', brotliCompressSync],
    ['deflate', deflateSync],
    ['zstd', zstdCompressSync],
  ] as const) {
    const behind = Buffer.concat([encode('a'), Buffer.from('behind it')])
    assert.deepEqual(await decodeAll(coding, [behind]), { text: 'a', state: 'corrupt' }, coding)
    assert.deepEqual(await decodeAll(coding, [encode('a'), Buffer.from('behind it')]), {
      text: 'a',
      state: 'corrupt',
    })
  }
})

test('a truncated body is corrupt, and its readable part was delivered', async () => {
  const encoded = gzipSync(Buffer.from('all work and no play'), { level: 0 })
  const cut = await decodeAll('gzip', [encoded.subarray(0, -9)])
  assert.deepEqual(cut, { text: 'all work and no pla', state: 'corrupt' })
})

test('a copy pauses while its reader does, and other copies continue', async () => {
  const body = gzipSync(Buffer.alloc(256 * 1024, 'a'))
  const { promise: paused, resolve: resume } = Promise.withResolvers<void>()
  let reads = 0
  const decoder = new CopyDecoder('gzip', 1024 ** 2, () => {
    reads += 1
    return paused
  })
  decoder.write(body)
  const ended = decoder.end()
  const other = new CopyDecoder('gzip', 1024 ** 2, () => {})
  other.write(body)
  await other.end()
  assert.ok(reads <= 1)
  resume()
  assert.deepEqual([await ended, reads], ['whole', 16])
})
