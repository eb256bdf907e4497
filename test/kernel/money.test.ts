import assert from 'node:assert/strict'
import fc from 'fast-check'
import {
  addBatchLine,
  type Bound,
  formatUsd,
  NO_COST,
  parseUsd,
  roundHalfEven,
  withCommas,
} from '../../src/kernel/money.ts'
import { test } from '../support/suite.ts'

const amounts: readonly [text: string, nanos: bigint][] = [
  ['0', 0n],
  ['1', 1_000_000_000n],
  ['0.000000001', 1n],
  ['-0.5', -500_000_000n],
  ['12.34', 12_340_000_000n],
  ['1000000000', 1_000_000_000_000_000_000n],
]
for (const [text, nanos] of amounts) {
  test(`${text} USD is ${nanos} nanodollars, and back`, () => {
    assert.equal(parseUsd(text), nanos)
    assert.equal(formatUsd(nanos), text)
  })
}

test('only a plain decimal with at most nine places is an amount', () => {
  for (const text of ['', ' 1', '1e3', '.5', '1.', '+1', '1,5', 'NaN', '0x1', '1.0000000001', '--1', '1 ']) {
    assert.equal(parseUsd(text), null, JSON.stringify(text))
  }
})

test('every amount survives formatting and parsing', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (nanos) => {
      assert.equal(parseUsd(formatUsd(nanos)), nanos)
    }),
  )
})

const halves: readonly [numerator: bigint, denominator: bigint, rounded: bigint][] = [
  [1n, 2n, 0n],
  [3n, 2n, 2n],
  [5n, 2n, 2n],
  [-1n, 2n, 0n],
  [-3n, 2n, -2n],
  [7n, 3n, 2n],
  [8n, 3n, 3n],
  [-7n, 3n, -2n],
  [-8n, 3n, -3n],
]
for (const [numerator, denominator, rounded] of halves) {
  test(`${numerator}/${denominator} rounds to ${rounded}`, () => {
    assert.equal(roundHalfEven({ numerator, denominator }), rounded)
  })
}

test('whole numbers have a comma at each thousand, as in English', () => {
  assert.equal(withCommas(1_000), '1,000')
  fc.assert(
    fc.property(
      fc.oneof(fc.maxSafeInteger(), fc.bigInt(), fc.integer({ min: -9_999, max: 9_999 })),
      (count) => assert.equal(withCommas(count), count.toLocaleString('en-US')),
    ),
  )
})

test('the lines of a batch count beside an unbounded one, and two unbounded lines fit no cap', () => {
  const line: Bound = { kind: 'bound', listNanos: 10n, costNanos: 10n }
  const odd: Bound = { kind: 'unbounded', reason: 'no limit' }
  const othersOf = (lines: readonly Bound[]) => {
    const sum = lines.reduce(addBatchLine, NO_COST)
    return sum.kind === 'unbounded' ? sum.othersNanos : null
  }
  assert.deepEqual(
    [othersOf([odd, line, line]), othersOf([line, odd, line]), othersOf([line, line])],
    [20n, 20n, null],
  )
  assert.ok((othersOf([odd, line, odd]) ?? 0n) >= 1_000_000_000n * 1_000_000_000n)
})
