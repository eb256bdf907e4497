import assert from 'node:assert/strict'
import { readDiscount as discount, payableFor } from '../../src/pricing/amounts.ts'
import { test } from '../support/suite.ts'

test('a discount is an exact decimal', () => {
  assert.equal(payableFor(discount('0.1'), 'any'), 900_000_000n)
  assert.equal(payableFor(discount('0.000000001'), 'any'), 999_999_999n)
  assert.equal(payableFor(discount('0'), 'any'), 1_000_000_000n)
  assert.equal(payableFor(discount('1'), 'any'), 0n)
})

test('the most specific matching pattern counts, in any order', () => {
  const given = discount('0.1', {
    '*': '0.2',
    'claude-*': '0.3',
    'claude-opus-*': '0.4',
    'claude-opus-5': '0.6',
  })
  const expected: readonly [model: string, payable: bigint][] = [
    ['gpt-5', 800_000_000n],
    ['claude-sonnet-4-6', 700_000_000n],
    ['claude-opus-4-8', 600_000_000n],
    ['claude-opus-5', 400_000_000n],
    ['claude-opus-5-5', 600_000_000n],
  ]
  for (const [model, payable] of expected) assert.equal(payableFor(given, model), payable, model)
})

const matching: readonly [pattern: string, model: string, matches: boolean][] = [
  ['gpt-5', 'gpt-5-mini', false],
  ['gpt-5*', 'gpt-5', true],
  ['gpt-5-*', 'gpt-5', false],
  ['*', 'gpt-5', true],
  ['gpt.5', 'gpt-5', false],
]
for (const [pattern, model, matches] of matching) {
  test(`the pattern ${pattern} ${matches ? 'matches' : 'does not match'} ${model}`, () => {
    assert.equal(payableFor(discount('0', { [pattern]: '1' }), model) === 0n, matches)
  })
}
