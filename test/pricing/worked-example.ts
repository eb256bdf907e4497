import assert from 'node:assert/strict'
import { type Quantities, UNIT_PRICES, UNITS, type Usage, type UsagePart } from '../../src/kernel/usage.ts'
import { type Discount, NO_DISCOUNT } from '../../src/pricing/amounts.ts'
import { loadPrices } from '../../src/pricing/load-book.ts'
import type { RatingContext } from '../../src/pricing/modifiers.ts'
import type { PriceBook, PriceVersion } from '../../src/pricing/price-book.ts'
import { type Rating, rate } from '../../src/pricing/rate.ts'
import { test } from '../support/suite.ts'

/** The shipped list prices, from which the examples were calculated. */
export const shippedBook: PriceBook = (() => {
  const loaded = loadPrices()
  if (loaded.kind === 'refused') throw new Error(loaded.problems.join('\n'))
  return loaded.book
})()

export const shipped: PriceVersion = shippedBook.versions[0]

/** All input tokens, which measure the length of a prompt. */
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

/** A sentence; indented, `model | quantities | conditions and flags | nanodollars` and the calculation. */
export function testExamples(base: RatingContext, table: string): void {
  for (const [, says = '', line = ''] of table.matchAll(/^(\S.*)\n {2}(\S.*)$/gm)) {
    const [model = '', quantities = '', conditions = '', nanos = ''] = line
      .split('|')
      .map((cell) => cell.trim())
    const units: Record<string, number> = {}
    for (const [count = '', name = ''] of quantities.split(', ').map((each) => each.split(' '))) {
      const unit = UNITS.find((each) => each === name || each === `${name}_tokens`)
      if (unit === undefined) throw new Error(`${says}: there is no unit ${name}`)
      units[unit] = Number(count.replaceAll(',', ''))
    }
    const said: Record<string, unknown> = { modelServed: model }
    const context: Record<string, unknown> = { ...base }
    const flags: Record<string, unknown> = { unpriced: false, pricedAsRequested: false }
    for (const condition of conditions.split(', ').filter((text) => text !== '')) {
      const [name = '', value] = condition.split(' ')
      const object = name in flags ? flags : name in usageOf([]) ? said : context
      object[name] = value === 'null' ? null : (value ?? true)
    }
    test(says, () => {
      const usage = usageOf([partOf(units)], said)
      const listNanos = BigInt(nanos.replaceAll(',', ''))
      assert.deepEqual(figures(rate(usage, context as unknown as RatingContext, shipped, NO_DISCOUNT)), {
        ...{ kind: 'rated', listNanos, costNanos: listNanos, ...flags },
      })
    })
  }
}

export function figures(rating: Rating): Omit<Rating, 'lines'> {
  const { lines: _lines, ...rest } = rating
  return rest
}

export function discountOf(keepBillionths: bigint): Discount {
  return { payable: keepBillionths, overrides: [] }
}
