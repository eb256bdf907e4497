import assert from 'node:assert/strict'
import fc from 'fast-check'
import { cutsOf, runs } from '../../support/scale.ts'
import { test } from '../../support/suite.ts'
import { slicesOf, twoVersions, UsageCutter } from './two-versions.ts'

function cut(chunks: readonly Buffer[], cutter = new UsageCutter()): Buffer {
  const out = chunks.map((chunk) => cutter.write(chunk))
  out.push(cutter.end())
  return Buffer.concat(out.filter((bytes) => bytes !== null))
}

test('the client gets the bytes of a stream without injected usage, in any chunks', () => {
  const sliced = twoVersions.chain(({ asked, notAsked }) =>
    fc.record({ chunks: slicesOf(Buffer.from(asked.join(''))), expected: fc.constant(notAsked.join('')) }),
  )
  fc.assert(
    fc.property(sliced, ({ chunks, expected }) => assert.equal(cut(chunks).toString(), expected)),
    { numRuns: runs(600) },
  )
})

test('an event leaves as soon as it is complete', () => {
  fc.assert(
    fc.property(twoVersions, ({ asked, notAsked }) => {
      // A CR at the end waits for its LF.
      fc.pre(!asked.some((block) => block.endsWith('\r')))
      const cutter = new UsageCutter()
      for (const [i, block] of asked.entries()) {
        const out = cutter.write(Buffer.from(block))
        assert.equal(out?.toString() ?? '', notAsked[i])
      }
      assert.equal(cutter.end(), null)
    }),
    { numRuns: runs(150) },
  )
})

test('a stream cut anywhere gives the client a prefix of the uncut stream', () => {
  fc.assert(
    fc.property(twoVersions, ({ asked, notAsked }) => {
      const bytes = Buffer.from(asked.join(''))
      const expected = Buffer.from(notAsked.join('')).toString('latin1')
      for (const end of [...cutsOf(bytes), bytes.length]) {
        const out = cut([bytes.subarray(0, end)]).toString('latin1')
        assert.ok(expected.startsWith(out), `cut at ${end}: ${JSON.stringify(out.slice(-80))}`)
      }
    }),
    { numRuns: runs(20) },
  )
})
