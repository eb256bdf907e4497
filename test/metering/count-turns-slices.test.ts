import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { SLICE_CHARS_MAX, TextSlices } from '../../src/metering/count-turns.ts'
import { anyCharacter } from '../support/any-character.ts'
import { realTokens } from './real-tokens.ts'

/** The slices of texts that come in pieces of so many characters. */
function slicesOf(texts: readonly string[], pieceChars = Infinity): (readonly string[])[] {
  const taken: (readonly string[])[] = []
  const slices = new TextSlices((slice) => taken.push(slice))
  for (const text of texts) {
    for (let i = 0; i < text.length; i += pieceChars) slices.add(text.slice(i, i + pieceChars))
    slices.endText()
  }
  slices.flush()
  return taken
}

const slicedTokens = (text: string) =>
  slicesOf([text])
    .flat()
    .reduce((sum, part) => sum + realTokens(part), 0)

test('a run without breaks is cut into as few slices as it takes, so the work grows with its length alone', () => {
  // The cost of a run without breaks grows with the square of a slice.
  assert.ok(SLICE_CHARS_MAX <= 1_024)
  for (const chars of [1, 511, 512, 513, 64_000, 1_000_001]) {
    const slices = slicesOf(['世'.repeat(chars)])
    assert.equal(slices.length, Math.ceil(chars / SLICE_CHARS_MAX), String(chars))
    assert.equal(slices.flat().join(''), '世'.repeat(chars))
  }
})

test('no text is cut within a pair of surrogates, and none is longer than a slice', () => {
  const text = `x${'😀'.repeat(5_000)}`
  for (const slice of slicesOf([text])) {
    assert.ok(slice.join('').isWellFormed())
    assert.ok(slice.join('').length <= SLICE_CHARS_MAX)
  }
  assert.equal(slicesOf([text]).flat().join(''), text)
})

test('a cut that falls within a pair of surrogates between two pieces does no harm', () => {
  const text = `x${'😀'.repeat(2_000)}`
  assert.deepEqual(slicesOf([text], 3).flat(), slicesOf([text]).flat())
})

test('short texts share a slice, and stay texts of their own', () => {
  const texts = Array.from({ length: 1_024 }, () => 'a')
  assert.deepEqual(
    slicesOf(texts).map((slice) => slice.length),
    [SLICE_CHARS_MAX, SLICE_CHARS_MAX],
  )
  assert.deepEqual(slicesOf(['', 'Hello', '', 'Hello']), [['Hello', 'Hello']])
})

const word = fc.oneof(
  fc.stringMatching(/^[a-zA-Z]{1,12}[.,;!?]?$/),
  fc.constantFrom('3.14159', 'größer', 'привет', "it's", '=>', '{', '});', 'https://example.com/a?b=c', '😀'),
)
const gap = fc.oneof(
  { weight: 9, arbitrary: fc.constant(' ') },
  fc.constantFrom('\n', '  ', '\n\n    ', '\t', ' \n '),
)
const prose = fc
  .array(fc.tuple(word, gap), { minLength: 150, maxLength: 600 })
  .map((parts) => parts.flat().join(''))

test('text with blanks has exactly as many tokens in slices as it has in one', () => {
  fc.assert(
    fc.property(prose, (text) => {
      assert.equal(slicedTokens(text), realTokens(text))
    }),
    { numRuns: 100 },
  )
})

test('text without any blank has in slices at most two tokens more or less for each cut', () => {
  const run = fc
    .array(
      fc.oneof(
        fc.string({ unit: 'grapheme', maxLength: 40 }),
        fc.string({ unit: anyCharacter, maxLength: 40 }),
      ),
      {
        minLength: 40,
        maxLength: 120,
      },
    )
    .map((parts) => parts.join('').replaceAll(' ', '').toWellFormed())
  fc.assert(
    fc.property(run, (text) => {
      const cuts = slicesOf([text]).length
      const difference = Math.abs(slicedTokens(text) - realTokens(text))
      assert.ok(difference <= 2 * cuts, `${difference} tokens for ${cuts} cuts`)
    }),
    { numRuns: 100 },
  )
})
