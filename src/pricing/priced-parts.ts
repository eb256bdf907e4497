import type { Quantities, Unit, Usage, UsagePart } from '../kernel/usage.ts'
import { type Multipliers, ONE } from './exact-amount.ts'
import { type FoundRate, findRate, type Tariffs, tariffsFor } from './find-rate.ts'
import { findModel, type ModelPrice, type PriceVersion, tableFor } from './price-book.ts'
import { UNITS_OF } from './rate-keys.ts'
import type { RatingContext } from './rating-context.ts'
import { tierOf } from './service-tier.ts'

/** A part of usage whose `model` is this was made by the image tool of a Responses call. */
export const IMAGE_TOOL = 'image_generation'
/** What the tool uses when the request names no model for it. */
export const IMAGE_TOOL_DEFAULT_MODEL = 'gpt-image-2'

/** A part of the usage that did something, and what it goes by. */
export interface PricedPart {
  readonly quantities: Quantities
  readonly asRequested: boolean
  /** Null: its model has no price. */
  readonly price: PartPrice | null
}

export interface PartPrice {
  readonly model: ModelPrice
  /** Upstream named a tier that is known. */
  readonly tierKnown: boolean
  readonly tariffs: Tariffs
  readonly multipliers: Multipliers
}

export function pricedParts(usage: Usage, context: RatingContext, version: PriceVersion): PricedPart[] {
  const priced: PricedPart[] = []
  if (usage.freeRefusal) return priced
  for (const part of usage.parts) {
    const { quantities } = part
    if (!didSomething(quantities)) continue
    const { model, asRequested } = resolve(nameOf(part, usage, context), context.modelAsked, version)
    const price = model === null ? null : priceOf(model, part.promptTokens, usage, context)
    priced.push({ quantities, asRequested, price })
  }
  return priced
}

function priceOf(model: ModelPrice, promptTokens: number, usage: Usage, context: RatingContext): PartPrice {
  const { serviceTier, speed, geography } = usage
  const { tier, known } = tierOf(context.surface, { serviceTier, speed, batch: context.batch })
  return {
    model,
    tierKnown: known,
    tariffs: tariffsFor(tableFor(model, context.endpoint), tier, promptTokens),
    multipliers: multipliersFor(model, geography, context.regional),
  }
}

interface Resolved {
  readonly model: ModelPrice | null
  readonly asRequested: boolean
}

/** Where upstream names no model at all (images, speech), the requested one is simply the model. */
export function resolve(named: string | null, asked: string | null, version: PriceVersion): Resolved {
  const own = named === null ? null : findModel(version, named)
  if (own !== null) return { model: own, asRequested: false }
  const requested = asked === null ? null : findModel(version, asked)
  return { model: requested, asRequested: requested !== null && named !== null }
}

function nameOf(part: UsagePart, usage: Usage, context: RatingContext): string | null {
  if (part.model === IMAGE_TOOL) return context.imageToolModel ?? IMAGE_TOOL_DEFAULT_MODEL
  return part.model ?? usage.modelServed
}

function didSomething(quantities: Quantities): boolean {
  for (const unit in quantities) if (quantityOf(quantities, unit as Unit) > 0) return true
  return false
}

/** Metering promises whole numbers; what is none must not become a credit, nor end the process in BigInt(). */
export function quantityOf(quantities: Quantities, unit: Unit): number {
  const quantity = quantities[unit] ?? 0
  return Number.isSafeInteger(quantity) && quantity > 0 ? quantity : 0
}

const TOOLS: ReadonlySet<Unit> = new Set(UNITS_OF.tool)

/** What is priced by the call: tiers and multipliers leave it alone. */
export function isTool(unit: Unit): boolean {
  return TOOLS.has(unit)
}

/** The rate that a unit of the part goes by. */
export function rateOf({ model, tariffs }: PartPrice, unit: Unit): FoundRate {
  return isTool(unit) ? findTool(model, unit) : findRate(tariffs, unit)
}

function findTool(model: ModelPrice, unit: Unit): FoundRate {
  const nanos = model.tools.get(unit)
  return nanos === undefined ? { nanos: 0n, how: 'none' } : { nanos, how: 'listed' }
}

function multipliersFor(model: ModelPrice, geography: string | null, regional: boolean): Multipliers {
  const place = geography === null ? undefined : model.geography.get(geography)
  return [place ?? ONE, (regional ? model.regionalUplift : null) ?? ONE]
}
