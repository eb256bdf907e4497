import assert from 'node:assert/strict'
import fc from 'fast-check'
import { JsonString } from '../../src/metering/json-string.ts'
import { runs } from '../support/scale.ts'
import { test } from '../support/suite.ts'

/** Where the string ends, byte by byte: its quote, the length, or `-1 - offset` of an invalid byte. */
function endOf(bytes: Buffer, strict: boolean): number {
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] ?? 0
    if (byte === 0x22) return i
    if (strict && byte < 0x20) return -1 - i
    if (byte !== 0x5c) continue
    i++
    if (i < bytes.length && bytes[i] !== 0x75 && !'"\\/bfnrt'.includes(String.fromCharCode(bytes[i] ?? 0)))
      return -1 - i
    if (bytes[i] !== 0x75) continue
    for (let digit = 0; digit < 4; digit++) {
      i++
      if (i < bytes.length && !/[0-9a-f]/i.test(String.fromCharCode(bytes[i] ?? 0))) return -1 - i
    }
  }
  return bytes.length
}

/** Where it ends in these chunks, alternating with another string. */
function crossInPieces(bytes: Buffer, sizes: readonly number[], strict: boolean): number {
  const [string, other] = [new JsonString(), new JsonString()]
  string.open(strict)
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const memory = Buffer.from(bytes.subarray(at, at + (sizes[turn % sizes.length] ?? 1)))
    string.enterChunk()
    const end = string.read(memory, 0)
    if (end < 0) return end - at
    if (end < memory.length) return at + end
    at += memory.length
    memory.fill('"')
    other.open(false)
    other.enterChunk()
    other.read(Buffer.from('\\n another"'), 0)
  }
  return bytes.length
}

const piece = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.constantFrom('\\n', '\\"', '\\\\', '\\/', 'plain', ' ', 'ü', '€', '😀', '\x7f'),
  },
  { weight: 2, arbitrary: fc.integer({ min: 0, max: 70 }).map((length) => 'x'.repeat(length)) },
  {
    weight: 3,
    arbitrary: fc.constantFrom('\\u00e9', '\\u4F60\\u597d', '\\ud83d\\ude00', '\\u0020', '\\\\u12'),
  },
  fc.constantFrom('"', '\\u0061', '\\u003', '\\u00g0', '\\x', '\\', '\n', '\x1f', '\0', '\t'),
)
const strings = fc.oneof(
  fc.array(piece, { maxLength: 60 }).map((pieces) => Buffer.from(pieces.join(''))),
  fc.uint8Array({ maxLength: 100 }).map((bytes) => Buffer.from(bytes)),
)
const sizes = fc.array(fc.integer({ min: 1, max: 80 }), { minLength: 1 })

test('a string ends where a bytewise scan says, in any chunks', () => {
  fc.assert(
    fc.property(strings, sizes, fc.boolean(), (bytes, cuts, strict) => {
      const wanted = endOf(bytes, strict)
      assert.equal(crossInPieces(bytes, [bytes.length], strict), wanted)
      assert.equal(crossInPieces(bytes, cuts, strict), wanted)
    }),
    { numRuns: runs(3000) },
  )
})

for (const [name, inside] of [
  ['characters', 'x'],
  ['escapes', '\\n'],
  ['quotes', '\\"'],
  ['backslashes', '\\\\'],
  ['digits', '\\u4f60'],
] as const) {
  test(`the end is found across block boundaries: ${name}`, () => {
    for (let length = 32_740; length < 32_790; length++) {
      const text = `${'x'.repeat(length)}${inside.repeat(40_000)}`
      const string = new JsonString()
      for (const strict of [false, true]) {
        string.open(strict)
        string.enterChunk()
        assert.equal(string.read(Buffer.from(`${text}"more`), 0), text.length, `from ${length} on`)
      }
    }
  })
}
