import { type Fraction, formatUsd, type Nanos } from '../kernel/money.ts'
import { type Quantities, UNITS, type Unit, type Usage } from '../kernel/usage.ts'
import { type Discount, multipliedBy, payableFor, plainAmountOf, readDiscount, Totals } from './amounts.ts'
import { describeModifiers, MULTIPLIER_ONE, ONE, type RatingContext } from './modifiers.ts'
import type { FoundRate, PriceVersion } from './price-book.ts'
import {
  isTool,
  type PartPrice,
  type PricedPart,
  pricedParts,
  quantityOf,
  rateOf,
  resolve,
} from './priced-parts.ts'
import { UNIT_PRICES } from './rate-keys.ts'

interface RatedFigures {
  /** `unpriced`: no model with usage has a price. The figures are 0 and have no meaning. */
  readonly kind: 'rated' | 'unpriced'
  readonly listNanos: Nanos
  readonly costNanos: Nanos
  /** Some usage has no listed price and was rated at another one, or at none. */
  readonly unpriced: boolean
  /** The served model has no price, so the requested model's applies. */
  readonly pricedAsRequested: boolean
  /** The priced model of the response as a whole. */
  readonly modelPriced: string | null
}

/** The cost of a call with its lines, for display. */
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
 * Usage × prices. Only the two totals are rounded, each once from the exact sum: a cost computed from a rounded list
 * cost would be off by one for some discounts.
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

function addPart(totals: Totals, quantities: Quantities, price: PartPrice, discount: Discount): boolean {
  let allListed = price.tierKnown
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
  const payable = payableFor(discount, price.model.id)
  totals.add(plain, price.multiplier, payable)
  if (tools !== 0n) totals.add(tools, MULTIPLIER_ONE, payable)
  return allListed
}

const KNOWN: ReadonlySet<string> = new Set(UNITS)

function isUnit(name: string): name is Unit {
  return KNOWN.has(name)
}

interface RatedLine {
  readonly model: string
  readonly unit: Unit
  readonly quantity: number
  /** USD for `per` units, as listed. */
  readonly rate: string
  readonly per: number
  /** Why the amount differs from the standard rate, as text. */
  readonly modifiers: readonly string[]
  readonly amount: Fraction
}

/** One line per priced unit of each part. */
function ratedLines(usage: Usage, context: RatingContext, version: PriceVersion): RatedLine[] {
  return pricedParts(usage, context, version).flatMap((part) => linesOf(part, usage, context))
}

function linesOf({ quantities, price }: PricedPart, usage: Usage, context: RatingContext): RatedLine[] {
  if (price === null) return []
  const circumstances = describe(price, usage, context)
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
    amount: multipliedBy(
      plainAmountOf(unit, BigInt(quantity), nanos),
      byTheCall ? MULTIPLIER_ONE : price.multiplier,
    ),
  }
}

const SAID: Readonly<Record<FoundRate['how'], readonly string[]>> = {
  listed: [],
  no_fee: ['no fee for cache writes'],
  free: ['no fee'],
  sibling: ['no rate listed: the highest of its side'],
  none: ['no rate listed'],
}

function describe({ model, tariffs }: PartPrice, usage: Usage, context: RatingContext): readonly string[] {
  const { endpoint } = context
  const said: string[] = []
  if (model.endpoints.has(endpoint)) said.push(`endpoint ${endpoint}`)
  if (!tariffs.listed)
    said.push(`no ${tariffs.tier} rates listed: the standard ones times the factor of the tier`)
  if (tariffs.listed && tariffs.tier !== 'standard') said.push(tariffs.tier)
  if (tariffs.long) said.push('long context')
  return [...said, ...describeModifiers(model.factors, usage, context, formatUsd)]
}

/** The inputs of rating other than usage and prices, as stored with the call. */
export interface StoredRating {
  readonly context: RatingContext
  readonly discount: Discount
}

/** Cache of the last text per model: similar calls share a text, and writing it took 2 µs per call. */
const written = new Map<string | null, StoredRating & { readonly text: string }>()
const WRITTEN_MAX = 256

export function writeRating(context: RatingContext, discount: Discount): string {
  const last = written.get(context.modelAsked)
  if (last !== undefined && last.discount === discount && isSame(last.context, context)) return last.text
  // Context and discount are joined as text, because the discount rarely changes.
  const text = `${JSON.stringify(context).slice(0, -1)},${discountText(discount)}`
  if (written.size >= WRITTEN_MAX) written.clear()
  written.set(context.modelAsked, { context, discount, text })
  return text
}

function isSame(a: RatingContext, b: RatingContext): boolean {
  return (
    a.surface === b.surface &&
    a.modelAsked === b.modelAsked &&
    a.endpoint === b.endpoint &&
    a.regional === b.regional &&
    a.batch === b.batch &&
    a.imageToolModel === b.imageToolModel &&
    a.tierAsked === b.tierAsked
  )
}

const discountTexts = new WeakMap<Discount, string>()

function discountText(discount: Discount): string {
  const known = discountTexts.get(discount)
  if (known !== undefined) return known
  const { payable, overrides } = discount
  const fraction = (payable: bigint) => formatUsd(ONE - payable)
  const members = {
    discount: fraction(payable),
    ...(overrides.length === 0
      ? {}
      : { discounts: Object.fromEntries(overrides.map((each) => [each.pattern, fraction(each.payable)])) }),
  }
  const text = JSON.stringify(members).slice(1)
  discountTexts.set(discount, text)
  return text
}

/** Parses the text of `writeRating`. Null if it is invalid. */
export function readRating(text: string): StoredRating | null {
  try {
    const {
      discount: all,
      discounts,
      ...context
    } = JSON.parse(text) as RatingContext & {
      discount: string
      discounts?: Record<string, string>
    }
    const read = readDiscount(all, discounts)
    return read.kind === 'discount' ? { context, discount: read.discount } : null
  } catch {
    return null
  }
}
