import type { Nanos } from '../kernel/money.ts'
import { type Quantities, UNITS, type Unit, type Usage } from '../kernel/usage.ts'
import { type Discount, keepFor } from './discount.ts'
import { multiplierOf, plainAmountOf, Totals } from './exact-amount.ts'
import { isTool, type PartPrice, quantityOf, rateOf } from './part-price.ts'
import type { PriceVersion } from './price-book.ts'
import { pricedParts, resolve } from './priced-parts.ts'
import { type RatedLine, ratedLines } from './rated-lines.ts'
import type { RatingContext } from './rating-context.ts'

/** What a call comes to. */
export interface RatedFigures {
  /** `unpriced`: none of the models that did something has a price. The figures are 0 and mean nothing. */
  readonly kind: 'rated' | 'unpriced'
  readonly listNanos: Nanos
  readonly costNanos: Nanos
  /** Some of it has no price on the list and was rated at another one, or at none. */
  readonly unpriced: boolean
  /** The model that upstream names has no price, and that of the requested one was taken. */
  readonly pricedAsRequested: boolean
  /** The id of the price that the response as a whole goes by. */
  readonly modelPriced: string | null
}

/** The same with how it comes about, for people. */
export interface Rating extends RatedFigures {
  readonly lines: readonly RatedLine[]
}

export function rate(
  usage: Usage,
  context: RatingContext,
  version: PriceVersion,
  discount: Discount,
): Rating {
  return {
    ...rateFigures(usage, context, version, discount),
    get lines() {
      return ratedLines(usage, context, version)
    },
  }
}

/**
 * Usage times prices. Nothing is rounded but the two totals, each once from the exact sum: a cost rounded from a
 * rounded list cost would be off by one for some discounts.
 */
export function rateFigures(
  usage: Usage,
  context: RatingContext,
  version: PriceVersion,
  discount: Discount,
): RatedFigures {
  const totals = new Totals()
  let nothingPriced = true
  let unpriced = false
  let pricedAsRequested = false
  const parts = pricedParts(usage, context, version)
  for (const part of parts) {
    if (part.asRequested) pricedAsRequested = true
    if (part.standsIn) unpriced = true
    if (part.price !== null) nothingPriced = false
    if (part.price === null || !addPart(totals, part.quantities, part.price, discount)) unpriced = true
  }
  const { listNanos, costNanos } = totals.rounded()
  return {
    kind: nothingPriced && parts.length > 0 ? 'unpriced' : 'rated',
    listNanos,
    costNanos,
    unpriced,
    pricedAsRequested,
    modelPriced: resolve(usage.modelServed, context, version).model?.id ?? null,
  }
}

/** False where some of it has no price of its own. */
function addPart(totals: Totals, quantities: Quantities, price: PartPrice, discount: Discount): boolean {
  let allListed = price.tierKnown && price.tariffs.listed
  let plain = 0n
  let tools = 0n
  for (const name in quantities) {
    const quantity = quantityOf(quantities, name as Unit)
    if (quantity === 0 || !isUnit(name)) continue
    const { nanos, how } = rateOf(price, name)
    if (how === 'sibling' || how === 'none') allListed = false
    const amount = plainAmountOf(name, BigInt(quantity), nanos)
    if (isTool(name)) tools += amount
    else plain += amount
  }
  const keep = keepFor(discount, price.model.id)
  totals.add(plain, multiplierOf(price.multipliers), keep)
  if (tools !== 0n) totals.add(tools, null, keep)
  return allListed
}

const KNOWN: ReadonlySet<string> = new Set(UNITS)

function isUnit(name: string): name is Unit {
  return KNOWN.has(name)
}
