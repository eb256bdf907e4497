import assert from 'node:assert/strict'
import { isUtf8 } from 'node:buffer'
import fc from 'fast-check'
import { Utf8Check } from '../../src/metering/json-string.ts'
import { anyCharacter } from '../support/any-character.ts'
import { runs } from '../support/scale.ts'
import { test } from '../support/suite.ts'

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

test('a text is accepted if it is UTF-8, in any chunks', () => {
  fc.assert(
    fc.property(fc.array(text, { maxLength: 4 }), fc.integer({ min: 1, max: 9 }), (texts, size) => {
      const bytes = Buffer.concat(texts)
      for (const length of [size, Math.max(1, bytes.length)]) {
        const check = new Utf8Check()
        let accepted = true
        for (let at = 0; at < bytes.length && accepted; at += length)
          accepted = check.accepts(bytes.subarray(at, at + length))
        assert.equal(accepted && !check.isOpen, isUtf8(bytes))
      }
    }),
    { numRuns: runs(3000) },
  )
})
