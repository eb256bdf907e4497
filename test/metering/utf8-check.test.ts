import assert from 'node:assert/strict'
import { isUtf8 } from 'node:buffer'
import fc from 'fast-check'
import { Utf8Check } from '../../src/metering/json-string.ts'
import { anyCharacter } from '../support/any-character.ts'
import { runs } from '../support/scale.ts'
import { test } from '../support/suite.ts'

/** The offset of the first invalid byte, found by trying every prefix with every way to go on; or the length. */
function firstFault(bytes: Uint8Array): number {
  const endings = [
    '',
    '\x80',
    '\xa0',
    '\x90',
    '\x80\x80',
    '\xa0\x80',
    '\x90\x80',
    '\x80\x80\x80',
    '\x90\x80\x80',
  ]
  for (let length = 1; length <= bytes.length; length++) {
    const prefix = bytes.subarray(0, length)
    const canGoOn = endings.some((ending) => isUtf8(Buffer.concat([prefix, Buffer.from(ending, 'latin1')])))
    if (!canGoOn) return length - 1
  }
  return bytes.length
}

const byte = fc.oneof(
  fc.constantFrom(
    0x22,
    0x7f,
    0x80,
    0x8f,
    0x90,
    0x9f,
    0xa0,
    0xbf,
    0xc1,
    0xc2,
    0xdf,
    0xe0,
    0xed,
    0xef,
    0xf0,
    0xf4,
    0xf5,
  ),
  fc.integer({ min: 0, max: 255 }),
)
const text = fc.oneof(
  fc.string({ unit: anyCharacter }).map((s) => Buffer.from(s.toWellFormed())),
  fc.array(byte, { maxLength: 12 }).map((bytes) => Buffer.from(bytes)),
)

test('the first byte that cannot be UTF-8 is found, however the text is cut', () => {
  fc.assert(
    fc.property(fc.array(text, { maxLength: 4 }), fc.integer({ min: 1, max: 9 }), (texts, size) => {
      const bytes = Buffer.concat(texts)
      const expected = firstFault(bytes)
      assert.equal(new Utf8Check().validPrefix(bytes), expected)
      const check = new Utf8Check()
      let at = 0
      while (at < bytes.length) {
        const piece = bytes.subarray(at, at + size)
        const valid = check.validPrefix(piece)
        at += valid
        if (valid < piece.length) break
      }
      assert.equal(at, expected)
    }),
    { numRuns: runs(3000) },
  )
})
