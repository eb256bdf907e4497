import assert from 'node:assert/strict'
import fc from 'fast-check'
import { readBuffer } from '../../src/http/node-sockets.ts'
import { ChunkList } from '../../src/kernel/chunk-list.ts'
import { runs } from '../support/scale.ts'
import { test } from '../support/suite.ts'

/** Appends chunks as a socket delivers them: each in the shared buffer, overwritten afterwards. */
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

test('appended chunks are complete and in order, even if their memory is reused', () => {
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

test('joined bytes do not change when the list is cleared and its memory reused', () => {
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
