import assert from 'node:assert/strict'
import { type Quantities, UNITS, type Usage, type UsagePart } from '../../src/kernel/usage.ts'
import { type Discount, NO_DISCOUNT } from '../../src/pricing/amounts.ts'
import { loadListPrices } from '../../src/pricing/load-book.ts'
import type { RatingContext } from '../../src/pricing/modifiers.ts'
import type { PriceBook, PriceVersion } from '../../src/pricing/price-book.ts'
import { type Rating, rate } from '../../src/pricing/rate.ts'
import { UNIT_PRICES } from '../../src/pricing/rate-keys.ts'
import { test } from '../support/suite.ts'

/** The list prices that the product ships, whose figures the examples were worked out from. */
export const shippedBook: PriceBook = (() => {
  const loaded = loadListPrices()
  if (loaded.kind === 'refused') throw new Error(loaded.problems.join('\n'))
  return loaded.book
})()

export const shipped: PriceVersion = shippedBook.versions[0]

/** All input tokens, by which the length of a prompt is measured. */
export function promptTokensOf(units: Quantities): number {
  return UNITS.filter((unit) => UNIT_PRICES[unit].side === 'input' && unit !== 'input_characters')
    .map((unit) => units[unit] ?? 0)
    .reduce((sum, count) => sum + count, 0)
}

export function partOf(units: Quantities, model: string | null = null): UsagePart {
  return { model, quantities: units, promptTokens: promptTokensOf(units) }
}

export function usageOf(parts: readonly UsagePart[], said: Partial<Usage> = {}): Usage {
  return {
    parts,
    modelServed: null,
    serviceTier: null,
    speed: null,
    geography: null,
    stopReason: null,
    freeRefusal: false,
    suspect: false,
    ...said,
  }
}

export const MESSAGES: RatingContext = {
  surface: 'messages',
  modelAsked: null,
  endpoint: '/v1/messages',
  regional: false,
  batch: false,
}

export const CHAT: RatingContext = { ...MESSAGES, surface: 'chat', endpoint: '/v1/chat/completions' }

export interface Example {
  readonly says: string
  readonly model: string
  readonly units: Quantities
  /** Facts that upstream reports beside the counts. */
  readonly said?: Partial<Usage>
  readonly context?: Partial<RatingContext>
  readonly listNanos: bigint
  /** The flags are false unless given. */
  readonly unpriced?: true
  readonly pricedAsRequested?: true
}

/** A test for each example, each with a list cost that was worked out by hand. */
export function testExamples(base: RatingContext, examples: readonly Example[]): void {
  for (const { says, model, units, said, context, ...expected } of examples) {
    test(says, () => {
      const rating = rate(
        usageOf([partOf(units)], { modelServed: model, ...said }),
        { ...base, ...context },
        shipped,
        NO_DISCOUNT,
      )
      assert.deepEqual(figures(rating), {
        kind: 'rated',
        listNanos: expected.listNanos,
        costNanos: expected.listNanos,
        unpriced: expected.unpriced ?? false,
        pricedAsRequested: expected.pricedAsRequested ?? false,
      })
    })
  }
}

export function figures(rating: Rating): Omit<Rating, 'lines' | 'modelPriced'> {
  const { lines: _lines, modelPriced: _modelPriced, ...rest } = rating
  return rest
}

export function discountOf(keepBillionths: bigint): Discount {
  return { payable: keepBillionths, overrides: [] }
}
