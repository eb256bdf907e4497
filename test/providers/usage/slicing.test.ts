import assert from 'node:assert/strict'
import {
  brotliCompressSync,
  deflateRawSync,
  deflateSync,
  gzipSync,
  type InputType,
  zstdCompressSync,
} from 'node:zlib'
import fc from 'fast-check'
import { type Coding, CopyDecoder } from '../../../src/metering/decode-copy.ts'
import { anyCharacter } from '../../support/any-character.ts'
import { runs } from '../../support/scale.ts'
import { test } from '../../support/suite.ts'
import { cutEvery, EVENTS, meterPieces, meterStream } from './replies.ts'
import { lookalikes, sampleStreams } from './sample-streams.ts'

const samples = sampleStreams()

/** Cuts the bytes at these positions, modulo their length. */
function cutAt(bytes: Buffer, places: readonly number[]): Buffer[] {
  const at = [0, ...places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  return at.slice(1).map((to, i) => bytes.subarray(at[i], to))
}

const places = fc.array(fc.nat(100_000), { maxLength: 40 })

for (const { name, reader, stream } of samples) {
  const variants: readonly (readonly [string, string])[] = [
    ['as it is', stream],
    ['with CRLF', stream.replaceAll('\n', '\r\n')],
    ['with CR', stream.replaceAll('\n', '\r')],
    ['with a byte order mark and comments', `\ufeff: hi\n\n${stream.replaceAll('\n\n', '\n\n: alive\n\n')}`],
    ['without its last blank line', stream.slice(0, -2)],
    ['with data over several lines', stream.replace(/^(data: \{"type":"[a-z_.]+",)/gm, '$1\ndata:')],
  ]

  test(`a ${name} stream gives the same result with any line ends and in any chunks`, () => {
    const expected = meterStream(reader, stream)
    assert.equal(expected.inputKnown && expected.outputKnown, true)
    assert.equal(expected.fault, null)
    for (const [variant, text] of variants) {
      const bytes = Buffer.from(text)
      for (const size of [1, 7, 64, bytes.length]) {
        const metered = meterPieces(reader, EVENTS, cutEvery(bytes, size))
        assert.deepEqual(metered, expected, `${variant}, in pieces of ${size} bytes`)
      }
    }
  })

  test(`a ${name} stream gives the same result wherever it is split`, () => {
    const bytes = Buffer.from(stream)
    const expected = meterPieces(reader, EVENTS, [bytes])
    fc.assert(
      fc.property(places, (cuts) => {
        assert.deepEqual(meterPieces(reader, EVENTS, cutAt(bytes, cuts)), expected)
      }),
      { numRuns: runs(40) },
    )
  })

  test(`a ${name} stream that ends anywhere gives the same result in one chunk and byte by byte`, () => {
    const bytes = Buffer.from(stream)
    fc.assert(
      fc.property(fc.nat(bytes.length), (length) => {
        const begun = bytes.subarray(0, length)
        const expected = meterPieces(reader, EVENTS, [begun], false)
        assert.deepEqual(meterPieces(reader, EVENTS, cutEvery(begun, 1), false), expected)
        assert.equal(expected.fault, null)
      }),
      { numRuns: runs(20) },
    )
  })
}

const codings: Readonly<Record<string, (bytes: InputType) => Buffer>> = {
  gzip: gzipSync,
  br: brotliCompressSync,
  zstd: zstdCompressSync,
  deflate: deflateSync,
}

for (const [coding, compress] of [...Object.entries(codings), ['deflate', deflateRawSync] as const]) {
  test(`streams compressed with ${coding} (${compress.name}) give the same result wherever they are split`, async () => {
    for (const { reader, stream } of samples) {
      const expected = meterStream(reader, stream)
      const compressed = compress(stream)
      await fc.assert(
        fc.asyncProperty(places, async (cuts) => {
          const pieces: Buffer[] = []
          const decoder = new CopyDecoder(coding as Coding, 1e6, (bytes) => pieces.push(Buffer.from(bytes)))
          for (const piece of cutAt(compressed, cuts)) await decoder.write(piece)
          assert.equal(await decoder.end(), 'whole')
          assert.deepEqual(meterPieces(reader, EVENTS, pieces), expected)
        }),
        { numRuns: runs(5) },
      )
    }
  })
}

test('no model output changes the metered usage', () => {
  const plain = new Map(
    sampleStreams(['x']).map(({ reader, stream }) => [reader, meterStream(reader, stream)]),
  )
  const text = fc.oneof(
    fc.constantFrom(...lookalikes),
    fc.string({ unit: anyCharacter }),
    fc
      .array(fc.constantFrom(...lookalikes, '"', '\\', '\n', 'data: ', '}'), { maxLength: 5 })
      .map((pieces) => pieces.join('')),
  )
  fc.assert(
    fc.property(fc.array(text, { maxLength: 8 }), (texts) => {
      for (const { reader, stream } of sampleStreams(texts)) {
        const { output: _, ...metered } = meterStream(reader, stream)
        const { output: __, ...expected } = plain.get(reader) ?? assert.fail(reader)
        assert.deepEqual(metered, expected)
      }
    }),
    { numRuns: runs(100) },
  )
})
