import assert from 'node:assert/strict'
import { type PriceSettings, Prices } from '../../src/calls/call-plan.ts'
import {
  NO_USAGE,
  type Quantities,
  UNIT_PRICES,
  UNITS,
  type Usage,
  type UsagePart,
} from '../../src/kernel/usage.ts'
import { type Discount, NO_DISCOUNT } from '../../src/pricing/amounts.ts'
import { loadPrices } from '../../src/pricing/load-book.ts'
import type { PriceBook, PriceVersion } from '../../src/pricing/price-book.ts'
import type { Mode } from '../../src/pricing/price-file.ts'
import { type RatedLine, type Rating, rate, ratedLines } from '../../src/pricing/rate.ts'
import type { RatingContext } from '../../src/pricing/rating-context.ts'
import { findEndpoint } from '../../src/providers/find-endpoint.ts'
import { test } from '../support/suite.ts'

/** The shipped list prices with an overlay. */
export function bookWith(overlay: object): PriceBook {
  const loaded = loadPrices(JSON.stringify(overlay))
  if (loaded.kind === 'refused') throw new Error(loaded.problems.join('\n'))
  return loaded.value.book
}

export function versionWith(overlay: object): PriceVersion {
  const { versions } = bookWith(overlay)
  return versions.at(-1) ?? versions[0]
}

/** The shipped list prices, from which the examples were calculated. */
export const shippedBook: PriceBook = bookWith([])

export const shipped: PriceVersion = shippedBook.versions.at(-1) ?? shippedBook.versions[0]

export function prices(changes: Partial<PriceSettings> = {}, book = shippedBook): Prices {
  return new Prices(book, {
    discount: NO_DISCOUNT,
    unpriced: 'auto',
    chatDefaultTier: null,
    chatRegional: false,
    polls: true,
    ...changes,
  })
}

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
  return { ...NO_USAGE, parts, ...said }
}

export const MESSAGES: RatingContext = {
  surface: 'messages',
  modelAsked: null,
  endpoint: '/v1/messages',
  regional: false,
  batch: false,
  modes: ['chat'],
  discount: NO_DISCOUNT,
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
      const modes = modesOf(String(context['endpoint']))
      assert.deepEqual(rate(usage, { ...context, modes } as unknown as RatingContext, shipped), {
        ...{ kind: 'rated', listNanos, costNanos: listNanos, ...flags },
      })
    })
  }
}

/** A rating with the lines of its bill. */
export interface Billed extends Rating {
  readonly lines: readonly RatedLine[]
}

export function bill(
  usage: Usage,
  context: RatingContext,
  discount = NO_DISCOUNT,
  version = shipped,
): Billed {
  const rating = rate(usage, { ...context, discount }, version)
  return { ...rating, lines: ratedLines(usage, context, version) }
}

/** The kinds of models that can serve an endpoint. */
export function modesOf(template: string): readonly Mode[] {
  const surface = template === MESSAGES.endpoint ? 'messages' : 'chat'
  const endpoint = findEndpoint(surface, 'POST', template) ?? findEndpoint(surface, 'WS', template)
  return endpoint?.billing === 'metered' ? endpoint.modes : []
}

export function discountOf(keepBillionths: bigint): Discount {
  return { payable: keepBillionths, overrides: [] }
}
