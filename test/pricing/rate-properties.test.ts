import assert from 'node:assert/strict'
import fc from 'fast-check'
import { roundHalfEven } from '../../src/kernel/money.ts'
import { type Quantities, UNITS, type Unit, type Usage } from '../../src/kernel/usage.ts'
import type { RatingContext } from '../../src/pricing/rating-context.ts'
import { test } from '../support/suite.ts'
import { type Billed, bill, CHAT, discountOf, MESSAGES, partOf, shipped, usageOf } from './worked-example.ts'

const ONE = 1_000_000_000n

/** Few enough units that no prompt is long: adding two prompts does not change their rates. */
const fewUnits = unitsUpTo(4_000)
const manyUnits = unitsUpTo(2_000_000)

function unitsUpTo(max: number): fc.Arbitrary<Quantities> {
  const member = (): fc.Arbitrary<number> => fc.nat({ max })
  return fc.record(Object.fromEntries(UNITS.map((unit) => [unit, member()])), { requiredKeys: [] })
}

interface Circumstances {
  readonly said: Partial<Usage>
  readonly context: RatingContext
}

const circumstances: fc.Arbitrary<Circumstances> = fc
  .record({
    modelServed: fc.constantFrom(...shipped.names.keys()),
    serviceTier: fc.constantFrom(
      null,
      'default',
      'batch',
      'flex',
      'priority',
      'ultrafast',
      'standard',
      'odd',
    ),
    speed: fc.constantFrom(null, 'standard', 'fast'),
    geography: fc.constantFrom(null, 'us', 'global'),
    surface: fc.constantFrom(MESSAGES, CHAT),
    endpoint: fc.constantFrom('/v1/messages', '/v1/responses', '/v1/decisions'),
    regional: fc.boolean(),
    batch: fc.boolean(),
  })
  .map(({ surface, endpoint, regional, batch, ...said }) => ({
    said,
    context: { ...surface, endpoint, regional, batch },
  }))

function rated({ said, context }: Circumstances, ...parts: readonly Quantities[]): Billed {
  const usage = usageOf(
    parts.map((units) => partOf(units)),
    said,
  )
  return bill(usage, context)
}

/** The list cost before rounding. All lines share a denominator. */
function exactly({ lines }: Billed): bigint {
  return lines.reduce((sum, { amount }) => sum + amount.numerator, 0n)
}

function add(a: Quantities, b: Quantities): Quantities {
  return Object.fromEntries(UNITS.map((unit) => [unit, (a[unit] ?? 0) + (b[unit] ?? 0)]))
}

test('summed usage costs exactly the sum of its costs, below the long-context threshold', () => {
  fc.assert(
    fc.property(circumstances, fewUnits, fewUnits, (how, a, b) => {
      assert.equal(exactly(rated(how, add(a, b))), exactly(rated(how, a)) + exactly(rated(how, b)))
    }),
  )
})

test('two parts cost exactly the sum of their costs, at any length', () => {
  fc.assert(
    fc.property(circumstances, manyUnits, manyUnits, (how, a, b) => {
      assert.equal(exactly(rated(how, a, b)), exactly(rated(how, a)) + exactly(rated(how, b)))
    }),
  )
})

test('more usage never costs less, even across the threshold', () => {
  fc.assert(
    fc.property(circumstances, manyUnits, manyUnits, (how, a, b) => {
      assert.ok(rated(how, add(a, b)).listNanos >= rated(how, a).listNanos)
    }),
  )
})

test('no figure is negative, and each is the exact sum rounded once', () => {
  fc.assert(
    fc.property(circumstances, manyUnits, fc.bigInt({ min: 0n, max: ONE }), (how, units, keep) => {
      const usage = usageOf([partOf(units)], how.said)
      const rating = bill(usage, how.context, discountOf(keep))
      const denominator = rating.lines[0]?.amount.denominator ?? 1n
      const numerator = exactly(rating)
      assert.ok(
        rating.lines.every(({ amount }) => amount.numerator >= 0n && amount.denominator === denominator),
      )
      assert.equal(rating.listNanos, roundHalfEven({ numerator, denominator }))
      const cost = { numerator: numerator * keep, denominator: denominator * ONE }
      assert.equal(rating.costNanos, roundHalfEven(cost))
      assert.ok(rating.listNanos >= 0n && rating.costNanos >= 0n && rating.costNanos <= rating.listNanos)
    }),
  )
})

test('a discount of 0 gives the list cost, and of 1 gives 0', () => {
  fc.assert(
    fc.property(circumstances, manyUnits, (how, units) => {
      const usage = usageOf([partOf(units)], how.said)
      const list = bill(usage, how.context)
      assert.equal(list.costNanos, list.listNanos)
      assert.equal(bill(usage, how.context, discountOf(0n)).costNanos, 0n)
    }),
  )
})

test('the lines are exactly the units used', () => {
  fc.assert(
    fc.property(circumstances, manyUnits, (how, units) => {
      const used = UNITS.filter((unit: Unit) => (units[unit] ?? 0) > 0)
      assert.deepEqual(
        rated(how, units).lines.map(({ unit }) => unit),
        used,
      )
    }),
  )
})

test('the cost is not derived from the rounded list cost', () => {
  const usage = usageOf([partOf({ cache_read_tokens: 1 })], {
    modelServed: 'gpt-5-nano',
    serviceTier: 'flex',
  })
  const rating = bill(usage, CHAT, discountOf(600_000_000n))
  // 1 × $0.0025/M = 2.5, rounded 2; 2.5 × 0.6 = 1.5, rounded 2; but 2 × 0.6 = 1.2 would be 1
  assert.deepEqual([rating.listNanos, rating.costNanos], [2n, 2n])
})
