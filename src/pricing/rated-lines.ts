import { type Fraction, formatUsd } from '../kernel/money.ts'
import { UNITS, type Unit, type Usage } from '../kernel/usage.ts'
import { amountOf, asNanos, NO_MULTIPLIERS, ONE } from './exact-amount.ts'
import type { FoundRate } from './find-rate.ts'
import { isTool, type PartPrice, quantityOf, rateOf } from './part-price.ts'
import type { PriceVersion } from './price-book.ts'
import { type PricedPart, pricedParts } from './priced-parts.ts'
import { UNIT_PRICES } from './rate-keys.ts'
import type { RatingContext } from './rating-context.ts'

/** How a rating comes about, for people. */
export interface RatedLine {
  /** Its id in the price book. */
  readonly model: string
  readonly unit: Unit
  readonly quantity: number
  /** USD for `per` units, as listed. */
  readonly rate: string
  readonly per: number
  /** What makes the amount differ from the plain standard rate, in words. */
  readonly modifiers: readonly string[]
  /** In nanodollars, exactly. */
  readonly amount: Fraction
}

/** One line for each unit of each part that did something and has a price. */
export function ratedLines(usage: Usage, context: RatingContext, version: PriceVersion): RatedLine[] {
  return pricedParts(usage, context, version).flatMap((part) => linesOf(part, usage, context))
}

function linesOf({ quantities, price }: PricedPart, usage: Usage, context: RatingContext): RatedLine[] {
  if (price === null) return []
  const circumstances = describe(price, usage.geography, context.endpoint)
  const used = UNITS.filter((unit) => quantityOf(quantities, unit) > 0)
  return used.map((unit) => lineOf(price, unit, quantityOf(quantities, unit), circumstances))
}

function lineOf(price: PartPrice, unit: Unit, quantity: number, circumstances: readonly string[]): RatedLine {
  const { nanos, how } = rateOf(price, unit)
  const byTheCall = isTool(unit)
  return {
    model: price.model.id,
    unit,
    quantity,
    rate: formatUsd(nanos),
    per: Number(UNIT_PRICES[unit].units),
    modifiers: [...(byTheCall ? [] : circumstances), ...SAID[how]],
    amount: asNanos(amountOf(unit, BigInt(quantity), nanos, byTheCall ? NO_MULTIPLIERS : price.multipliers)),
  }
}

const SAID: Readonly<Record<FoundRate['how'], readonly string[]>> = {
  listed: [],
  no_fee: ['no fee for cache writes'],
  sibling: ['no rate listed: the dearest of its side'],
  none: ['no rate listed'],
}

function describe(
  { model, tariffs, multipliers: [place, region] }: PartPrice,
  geography: string | null,
  endpoint: string,
): readonly string[] {
  const said: string[] = []
  if (model.endpoints.has(endpoint)) said.push(`endpoint ${endpoint}`)
  if (!tariffs.listed) {
    const rates = tariffs.table.unlisted !== null ? 'as usual of its family' : 'standard'
    said.push(`no ${tariffs.tier} rates listed: ${rates}`)
  }
  if (tariffs.listed && tariffs.tier !== 'standard') said.push(tariffs.tier)
  if (tariffs.long) said.push('long context')
  if (place !== ONE) said.push(`geography ${geography} × ${formatUsd(place)}`)
  if (region !== ONE) said.push(`regional × ${formatUsd(region)}`)
  return said
}
