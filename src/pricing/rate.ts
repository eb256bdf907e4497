import { type Fraction, formatUsd, type Nanos, roundHalfEven } from '../kernel/money.ts'
import { UNITS, type Unit, type Usage, type UsagePart } from '../kernel/usage.ts'
import { type Discount, keepFor } from './discount.ts'
import {
  amountOf,
  asDiscountedNanos,
  asNanos,
  type Multipliers,
  NO_MULTIPLIERS,
  ONE,
} from './exact-amount.ts'
import { findRate, type Tariffs, tariffsFor } from './find-rate.ts'
import { findModel, type ModelPrice, type PriceVersion, tableFor } from './price-book.ts'
import { UNIT_PRICES } from './rate-keys.ts'
import { type Surface, tierOf } from './service-tier.ts'

/** What rating must know beside the usage: how the call was made. */
export interface RatingContext {
  readonly surface: Surface
  readonly modelAsked: string | null
  /** The template of the endpoint, such as `/v1/chat/completions`. */
  readonly endpoint: string
  /** The upstream host processes in one region only. */
  readonly regional: boolean
  /** The usage is that of an entry of a batch. */
  readonly batch: boolean
  /** The model that the image tool of the request names. Upstream does not repeat it. */
  readonly imageToolModel?: string | null
}

/** A part of usage whose `model` is this was made by the image tool of a Responses call. */
export const IMAGE_TOOL = 'image_generation'
/** What the tool uses when the request names no model for it. */
export const IMAGE_TOOL_DEFAULT_MODEL = 'gpt-image-2'

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

export interface Rating {
  /** `unpriced`: none of the models that did something has a price. The figures are 0 and mean nothing. */
  readonly kind: 'rated' | 'unpriced'
  readonly lines: readonly RatedLine[]
  readonly listNanos: Nanos
  readonly costNanos: Nanos
  /** Some of it has no price on the list and was rated at another one, or at none. */
  readonly unpriced: boolean
  /** The model that upstream names has no price, and that of the requested one was taken. */
  readonly pricedAsRequested: boolean
  /** The id of the price that the response as a whole goes by. */
  readonly modelPriced: string | null
}

/**
 * Usage times prices. Nothing is rounded but the two totals, each once from the exact sum: a cost rounded from a
 * rounded list cost would be off by one for some discounts.
 */
export function rate(
  usage: Usage,
  context: RatingContext,
  version: PriceVersion,
  discount: Discount,
): Rating {
  const priceOf = (named: string | null): Resolved => resolve(named, context.modelAsked, version)
  const whole = priceOf(usage.modelServed)
  const parts = usage.freeRefusal ? [] : usage.parts.filter(didSomething)
  const rated = parts.map((part) => ratePart(part, priceOf(nameOf(part, usage, context)), usage, context))

  let list = 0n
  let cost = 0n
  for (const { numerator, resolved } of rated) {
    if (resolved.model === null) continue
    list += numerator
    cost += numerator * keepFor(discount, resolved.model.id)
  }
  return {
    kind: rated.length > 0 && rated.every(({ resolved }) => resolved.model === null) ? 'unpriced' : 'rated',
    // Words for people, of which most calls need none.
    get lines() {
      return rated.flatMap((part) => part.lines())
    },
    listNanos: roundHalfEven(asNanos(list)),
    costNanos: roundHalfEven(asDiscountedNanos(cost)),
    unpriced: rated.some(({ unpriced }) => unpriced),
    pricedAsRequested: rated.some(({ resolved }) => resolved.asRequested),
    modelPriced: whole.model?.id ?? null,
  }
}

interface Resolved {
  readonly model: ModelPrice | null
  readonly asRequested: boolean
}

/** Where upstream names no model at all (images, speech), the requested one is simply the model. */
function resolve(named: string | null, asked: string | null, version: PriceVersion): Resolved {
  const own = named === null ? null : findModel(version, named)
  if (own !== null) return { model: own, asRequested: false }
  const requested = asked === null ? null : findModel(version, asked)
  return { model: requested, asRequested: requested !== null && named !== null }
}

function nameOf(part: UsagePart, usage: Usage, context: RatingContext): string | null {
  if (part.model === IMAGE_TOOL) return context.imageToolModel ?? IMAGE_TOOL_DEFAULT_MODEL
  return part.model ?? usage.modelServed
}

function didSomething(part: UsagePart): boolean {
  for (const unit in part.quantities) if (quantityOf(part, unit as Unit) > 0) return true
  return false
}

/** Metering promises whole numbers; what is none must not become a credit, nor end the process in BigInt(). */
function quantityOf(part: UsagePart, unit: Unit): number {
  const quantity = part.quantities[unit] ?? 0
  return Number.isSafeInteger(quantity) && quantity > 0 ? quantity : 0
}

interface RatedPart {
  readonly resolved: Resolved
  /** What it costs by the list, over the common denominator. */
  readonly numerator: bigint
  readonly unpriced: boolean
  lines(): RatedLine[]
}

interface PricedUnit {
  readonly unit: Unit
  readonly quantity: number
  readonly found: ReturnType<typeof findRate>
  readonly numerator: bigint
}

function ratePart(part: UsagePart, resolved: Resolved, usage: Usage, context: RatingContext): RatedPart {
  const { model } = resolved
  if (model === null) return { resolved, numerator: 0n, unpriced: true, lines: () => [] }
  const reported = tierOf(context.surface, { ...usage, batch: context.batch })
  const tariffs = tariffsFor(tableFor(model, context.endpoint), reported.tier, part.promptTokens)
  const multipliers = multipliersFor(model, usage.geography, context.regional)
  const priced: PricedUnit[] = []
  let sum = 0n
  let unpriced = !reported.known || !tariffs.listed
  for (const name in part.quantities) {
    const unit = name as Unit
    const quantity = quantityOf(part, unit)
    if (quantity === 0 || !(unit in UNIT_PRICES)) continue
    const isTool = UNIT_PRICES[unit].side === 'tool'
    const found = isTool ? findTool(model, unit) : findRate(tariffs, unit)
    if (found.how === 'sibling' || found.how === 'none') unpriced = true
    const numerator = amountOf(unit, BigInt(quantity), found.nanos, isTool ? NO_MULTIPLIERS : multipliers)
    sum += numerator
    priced.push({ unit, quantity, found, numerator })
  }
  const lines = (): RatedLine[] => {
    const circumstances = describe(model, tariffs, multipliers, usage.geography, context.endpoint)
    const inOrder = priced.toSorted((a, b) => UNITS.indexOf(a.unit) - UNITS.indexOf(b.unit))
    return inOrder.map((each) => lineOf(model, each, circumstances))
  }
  return { resolved, numerator: sum, unpriced, lines }
}

function lineOf(model: ModelPrice, priced: PricedUnit, circumstances: readonly string[]): RatedLine {
  const { unit, quantity, found, numerator } = priced
  const { units, side } = UNIT_PRICES[unit]
  return {
    model: model.id,
    unit,
    quantity,
    rate: formatUsd(found.nanos),
    per: Number(units),
    modifiers: [...(side === 'tool' ? [] : circumstances), ...SAID[found.how]],
    amount: asNanos(numerator),
  }
}

function findTool(model: ModelPrice, unit: Unit): ReturnType<typeof findRate> {
  const nanos = model.tools.get(unit)
  return nanos === undefined ? { nanos: 0n, how: 'none' } : { nanos, how: 'listed' }
}

function multipliersFor(model: ModelPrice, geography: string | null, regional: boolean): Multipliers {
  const place = geography === null ? undefined : model.geography.get(geography)
  return [place ?? ONE, (regional ? model.regionalUplift : null) ?? ONE]
}

const SAID: Readonly<Record<ReturnType<typeof findRate>['how'], readonly string[]>> = {
  listed: [],
  no_fee: ['no fee for cache writes'],
  sibling: ['no rate listed: the dearest of its side'],
  none: ['no rate listed'],
}

function describe(
  model: ModelPrice,
  tariffs: Tariffs,
  [place, region]: Multipliers,
  geography: string | null,
  endpoint: string,
): readonly string[] {
  const said: string[] = []
  if (model.endpoints.has(endpoint)) said.push(`endpoint ${endpoint}`)
  if (!tariffs.listed) said.push(`no ${tariffs.tier} rates listed: standard`)
  else if (tariffs.tier !== 'standard') said.push(tariffs.tier)
  if (tariffs.long) said.push('long context')
  if (place !== ONE) said.push(`geography ${geography} × ${formatUsd(place)}`)
  if (region !== ONE) said.push(`regional × ${formatUsd(region)}`)
  return said
}
