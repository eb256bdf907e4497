import assert from 'node:assert/strict'
import fc from 'fast-check'
import { readBuffer } from '../../src/http/node-sockets.ts'
import { ChunkList } from '../../src/kernel/memory.ts'
import { runs } from '../support/scale.ts'
import { test } from '../support/suite.ts'

/** Appends pieces as a socket brings them: each in the shared buffer, and overwritten afterwards. */
function fill(list: ChunkList, pieces: readonly Uint8Array[]): Buffer {
  for (const piece of pieces) {
    readBuffer.set(piece)
    list.append(readBuffer.subarray(0, piece.length))
    readBuffer.fill(0xff)
  }
  return Buffer.concat(pieces)
}

const sizes = fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 10_000, max: readBuffer.length }))
const pieces = fc.array(
  fc
    .tuple(sizes, fc.integer({ min: 0, max: 250 }))
    .map(([size, from]) => Uint8Array.from({ length: size }, (_, i) => (from + i) % 251)),
  { minLength: 1, maxLength: 12 },
)

test('what was appended is all there, in order, whatever became of the memory it came in', () => {
  fc.assert(
    fc.property(pieces, fc.boolean(), (given, lookBetween) => {
      const list = new ChunkList()
      const half = Math.floor(given.length / 2)
      const first = fill(list, given.slice(0, half))
      if (lookBetween) assert.ok(Buffer.concat(list.all()).equals(first))
      const rest = fill(list, given.slice(half))
      const whole = Buffer.concat([first, rest])
      assert.ok(Buffer.concat(list.all()).equals(whole))
      assert.ok(list.joined().equals(whole))
      assert.ok(Buffer.concat(list.all()).equals(whole))
      list.clear()
    }),
    { numRuns: runs(100) },
  )
})

test('what was joined stays as it is when the list is cleared and its memory used again', () => {
  const large = Array.from({ length: 4 }, () => Uint8Array.from({ length: 50_000 }, () => 7))
  const list = new ChunkList()
  fill(list, large)
  const joined = list.joined()
  list.clear()
  fill(
    new ChunkList(),
    [...large, ...large].map((piece) => piece.fill(9)),
  )
  assert.ok(joined.every((byte) => byte === 7))
})
