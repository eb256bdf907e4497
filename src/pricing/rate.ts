import { formatUsd } from '../kernel/money.ts'
import { type Quantities, UNIT_PRICES, UNITS, type Unit, type Usage } from '../kernel/usage.ts'
import {
  AMOUNT_DENOMINATOR,
  FACTOR_ONE,
  isTool,
  MULTIPLIER_ONE,
  payableFor,
  plainAmountOf,
  Totals,
} from './amounts.ts'
import type { FoundRate, PriceVersion } from './price-book.ts'
import { type PartPrice, pricedParts, quantityOf, rateOf } from './priced-parts.ts'
import type { RatingContext } from './rating-context.ts'

export type Rating = ReturnType<typeof rate>

export type RatedLine = ReturnType<typeof ratedLines>[number]

/** Rounds only the two totals, each once: a cost from a rounded list cost may be off by one. */
export function rate(usage: Usage, context: RatingContext, version: PriceVersion) {
  const totals = new Totals()
  const parts = pricedParts(usage, context, version)
  let unpriced = false
  for (const { quantities, price, isSubstitute } of parts) {
    unpriced ||= price === null || isSubstitute || !price.tierKnown
    if (price === null) continue
    const payable = payableFor(context.discount, price.model.id)
    let [tokens, tools] = [0n, 0n]
    for (const { unit, how, amount } of ratedUnits(quantities, price)) {
      unpriced ||= how !== 'listed'
      if (isTool(unit)) tools += amount
      else tokens += amount
    }
    totals.add(tokens, price.multiplier, payable)
    if (tools > 0n) totals.add(tools, MULTIPLIER_ONE, payable)
  }
  const isUnpriced = parts.length > 0 && parts.every(({ price }) => price === null)
  const { costNanos, listNanos } = totals.rounded()
  return {
    /** `unpriced`: no model with usage has a price. The figures are 0 and have no meaning. */
    kind: (isUnpriced ? 'unpriced' : 'rated') as 'rated' | 'unpriced',
    costNanos,
    listNanos,
    /** Whether some usage has no listed price, and was rated at another price or at none. */
    unpriced,
    /** Whether the served model has no price, so that the requested model's price applies. */
    pricedAsRequested: parts.some(({ asRequested }) => asRequested),
  }
}

interface RatedUnit extends FoundRate {
  readonly unit: Unit
  readonly quantity: number
  /** The amount without the multiplier, which does not apply to tools. */
  readonly amount: bigint
}

function ratedUnits(quantities: Quantities, price: PartPrice): RatedUnit[] {
  const rated: RatedUnit[] = []
  for (const name in quantities) {
    const unit = name as Unit
    const quantity = quantityOf(quantities, unit)
    if (quantity === 0 || !Object.hasOwn(UNIT_PRICES, name)) continue
    const { nanos, how } = rateOf(price, unit)
    const amount = plainAmountOf(unit, BigInt(quantity), nanos)
    rated.push({ unit, quantity, nanos, how, amount })
  }
  return rated
}

/** One line per priced unit of each part. */
export function ratedLines(usage: Usage, context: RatingContext, version: PriceVersion) {
  return pricedParts(usage, context, version).flatMap(({ quantities, price }) => {
    if (price === null) return []
    const circumstances = describe(price, usage, context)
    const units = ratedUnits(quantities, price)
    units.sort((a, b) => UNITS.indexOf(a.unit) - UNITS.indexOf(b.unit))
    return units.map(({ unit, quantity, nanos, how, amount }) => ({
      model: price.model.id,
      unit,
      quantity,
      rate: formatUsd(nanos),
      per: Number(UNIT_PRICES[unit].units),
      modifiers: [...(isTool(unit) ? [] : circumstances), ...RATE_NOTES[how]],
      amount: {
        numerator: amount * (isTool(unit) ? MULTIPLIER_ONE : price.multiplier),
        denominator: AMOUNT_DENOMINATOR,
      },
    }))
  })
}

const RATE_NOTES: Readonly<Record<FoundRate['how'], readonly string[]>> = {
  listed: [],
  sibling: ['no rate listed: the highest of its side'],
  none: ['no rate listed'],
}

function describe(price: PartPrice, usage: Usage, { endpoint }: RatingContext): readonly string[] {
  const { model, tier, isListed, isLong, geography, regional } = price
  const notes: string[] = []
  if (model.endpoints.has(endpoint)) notes.push(`endpoint ${endpoint}`)
  if (!isListed) notes.push(`no ${tier} rates listed: the standard ones times the factor of the tier`)
  else if (tier !== 'standard') notes.push(tier)
  if (isLong) notes.push('long context')
  if (geography !== FACTOR_ONE) notes.push(`geography ${usage.geography} × ${formatUsd(geography)}`)
  if (regional !== FACTOR_ONE) notes.push(`regional × ${formatUsd(regional)}`)
  return notes
}
