import assert from 'node:assert/strict'
import fc from 'fast-check'
import { StringRuns } from '../../src/metering/json-string.ts'
import { runs } from '../support/scale.ts'
import { test } from '../support/suite.ts'

const SIMPLE = new Set(Buffer.from('"\\/bfnrt'))

/** The end of a string that `StringRuns` has to find, byte by byte. */
function runEnd(chunk: Buffer, from: number, to: number, strict: boolean): number {
  let i = from
  while (i < to) {
    const byte = chunk[i] ?? 0
    if (byte === 0x22 || (strict && byte < 0x20)) return i
    if (byte !== 0x5c) i += 1
    else if (i + 1 < to && SIMPLE.has(chunk[i + 1] ?? 0)) i += 2
    else if (/^\\u(?!00[3567])[0-9a-fA-F]{4}$/.test(chunk.toString('latin1', i, Math.min(i + 6, to)))) i += 6
    else return i
  }
  return to
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
const chunks = fc.oneof(
  fc.array(piece, { maxLength: 60 }).map((pieces) => Buffer.from(pieces.join(''))),
  fc.uint8Array({ maxLength: 100 }).map((bytes) => Buffer.from(bytes)),
)

test('a run ends where looking at each byte says it does', () => {
  fc.assert(
    fc.property(chunks, fc.nat(), fc.nat(), fc.boolean(), (chunk, a, b, strict) => {
      const [from = 0, to = 0] = [a % (chunk.length + 1), b % (chunk.length + 1)].sort((x, y) => x - y)
      const runs = new StringRuns()
      runs.enterChunk()
      assert.equal(runs.end(chunk, from, to, strict), runEnd(chunk, from, to, strict))
    }),
    { numRuns: runs(3000) },
  )
})

test('runs are found across the ends of the parts that are looked at at a time', () => {
  const end = Buffer.from('"')
  for (const [name, before] of [
    ['characters', 'x'],
    ['escapes', '\\n'],
    ['quotes', '\\"'],
    ['backslashes', '\\\\'],
    ['digits', '\\u4f60'],
  ] as const) {
    for (let length = 32_740; length < 32_790; length++) {
      // A first escape, so that native code does not find the end alone.
      const inside = Buffer.from(`\\n${'x'.repeat(length)}${before.repeat(40_000)}`)
      const chunk = Buffer.concat([inside, end, Buffer.from('more')])
      const runs = new StringRuns()
      runs.enterChunk()
      for (const strict of [false, true]) {
        assert.equal(runs.end(chunk, 0, chunk.length, strict), inside.length, `${name} from ${length} on`)
      }
    }
  }
})
