import assert from 'node:assert/strict'
import fc from 'fast-check'
import { floorDivide, roundHalfEven } from '../../src/kernel/money.ts'
import { AMOUNT_DENOMINATOR, FACTOR_ONE, MULTIPLIER_ONE, Totals } from '../../src/pricing/amounts.ts'
import { test } from '../support/suite.ts'

const amount = fc.oneof(fc.bigInt({ min: 0n, max: 10n ** 12n }), fc.bigInt({ min: 0n, max: 10n ** 30n }))
const fraction = fc.oneof(fc.constant(FACTOR_ONE), fc.bigInt({ min: 0n, max: 2n * FACTOR_ONE }))
const added = fc.record({
  amount,
  multiplier: fc.oneof(
    fc.constant(MULTIPLIER_ONE),
    fc.tuple(fraction, fraction).map(([place, region]) => place * region),
  ),
  keep: fraction.map((keep) => (keep > FACTOR_ONE ? FACTOR_ONE : keep)),
})

test('totals are exact sums, rounded or raised once, whatever the multipliers and discounts', () => {
  fc.assert(
    fc.property(fc.array(added, { maxLength: 6 }), (all) => {
      const totals = new Totals()
      let list = 0n
      let cost = 0n
      for (const each of all) {
        totals.add(each.amount, each.multiplier, each.keep)
        const listed = each.amount * each.multiplier
        list += listed
        cost += listed * each.keep
      }
      assert.deepEqual(totals.rounded(), {
        listNanos: roundHalfEven({ numerator: list, denominator: AMOUNT_DENOMINATOR }),
        costNanos: roundHalfEven({ numerator: cost, denominator: AMOUNT_DENOMINATOR * FACTOR_ONE }),
      })
      assert.deepEqual(totals.roundedUp(), {
        listNanos: -floorDivide(-list, AMOUNT_DENOMINATOR),
        costNanos: -floorDivide(-cost, AMOUNT_DENOMINATOR * FACTOR_ONE),
      })
    }),
  )
})
