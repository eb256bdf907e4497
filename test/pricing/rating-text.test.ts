import assert from 'node:assert/strict'
import fc from 'fast-check'
import { type Discount, NO_DISCOUNT, readDiscount } from '../../src/pricing/amounts.ts'
import type { RatingContext } from '../../src/pricing/modifiers.ts'
import { readRating, writeRating } from '../../src/pricing/rate.ts'
import { test } from '../support/suite.ts'

function discountOf(all: string, byPattern: Record<string, string> = {}): Discount {
  const read = readDiscount(all, byPattern)
  assert.ok(read.kind === 'discount')
  return read.discount
}

const DISCOUNTS = [NO_DISCOUNT, discountOf('0.15'), discountOf('0.15', { 'gpt-*': '0.3' })]

const context: fc.Arbitrary<RatingContext> = fc.record(
  {
    surface: fc.constantFrom('messages' as const, 'chat' as const),
    modelAsked: fc.constantFrom(null, 'a', 'b', 'a"b'),
    endpoint: fc.constantFrom('/v1/messages', '/v1/responses'),
    regional: fc.boolean(),
    batch: fc.boolean(),
    imageToolModel: fc.constantFrom(null, 'a'),
    tierAsked: fc.constantFrom(null, 'flex', 'priority'),
  },
  { noNullPrototype: true },
)

test('what was written of a rating is read again', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(context, fc.constantFrom(...DISCOUNTS)), { maxLength: 20 }), (ratings) => {
      for (const [how, discount] of ratings) {
        assert.deepEqual(readRating(writeRating(how, discount)), { context: how, discount })
      }
    }),
  )
})
