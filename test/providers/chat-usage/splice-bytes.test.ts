import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  applySplices,
  lengthChange,
  type Splice,
  Splicer,
  spliceChunks,
} from '../../../src/providers/chat-usage/splice-bytes.ts'
import { slicesOf } from './two-versions.ts'

const splice = (at: number, deleteBytes: number, insert: string): Splice => ({
  at,
  deleteBytes,
  insert: Buffer.from(insert),
})

test('bytes are put in, taken out and replaced, at the beginning, within and at the end', () => {
  const apply = (...splices: Splice[]): string => applySplices(Buffer.from('0123456789'), splices).toString()
  assert.equal(apply(), '0123456789')
  assert.equal(apply(splice(0, 0, 'a')), 'a0123456789')
  assert.equal(apply(splice(10, 0, 'a')), '0123456789a')
  assert.equal(apply(splice(3, 4, '')), '012789')
  assert.equal(apply(splice(0, 10, 'all')), 'all')
  assert.equal(apply(splice(1, 1, 'b'), splice(2, 0, 'c'), splice(2, 1, 'd'), splice(9, 1, '')), '0bcd345678')
})

test('changes that overlap, are out of order or lie behind the end are refused', () => {
  const bytes = Buffer.from('0123')
  assert.throws(() => applySplices(bytes, [splice(1, 2, ''), splice(2, 0, 'x')]), /overlap/)
  assert.throws(() => applySplices(bytes, [splice(2, 0, ''), splice(1, 0, 'x')]), /overlap/)
  assert.throws(() => applySplices(bytes, [splice(5, 0, 'x')]), /ends before/)
  assert.throws(() => applySplices(bytes, [splice(3, 2, 'x')]), /ends before/)
})

test('a body that is read in chunks gives the same bytes, and what stays of them is not copied', async () => {
  const cases = fc
    .record({
      bytes: fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
      steps: fc.array(fc.tuple(fc.nat({ max: 12 }), fc.nat({ max: 6 }), fc.string({ maxLength: 4 })), {
        maxLength: 4,
      }),
    })
    .chain(({ bytes, steps }) => {
      const splices: Splice[] = []
      let from = 0
      for (const [gap, deleteBytes, insert] of steps) {
        if (from + gap + deleteBytes > bytes.length) break
        splices.push(splice(from + gap, deleteBytes, insert))
        from += gap + deleteBytes
      }
      return fc.record({ bytes: fc.constant(bytes), splices: fc.constant(splices), chunks: slicesOf(bytes) })
    })
  await fc.assert(
    fc.asyncProperty(cases, async ({ bytes, splices, chunks }) => {
      const expected: Buffer[] = []
      let from = 0
      for (const { at, deleteBytes, insert } of splices) {
        expected.push(bytes.subarray(from, at), insert)
        from = at + deleteBytes
      }
      expected.push(bytes.subarray(from))
      const out: Buffer[] = []
      for await (const piece of spliceChunks(chunks, splices)) out.push(piece)
      assert.deepEqual(Buffer.concat(out), Buffer.concat(expected))
      assert.equal(Buffer.concat(out).length, bytes.length + lengthChange(splices))
    }),
    { numRuns: 400 },
  )
  const chunk = Buffer.from('abcdef')
  const [first, insert, second] = new Splicer([splice(2, 1, 'x')]).write(chunk)
  assert.equal(first?.buffer, chunk.buffer)
  assert.equal(insert?.toString(), 'x')
  assert.equal(second?.toString(), 'def')
})
