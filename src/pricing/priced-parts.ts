import {
  IMAGE_TOOL,
  NO_USAGE,
  type Quantities,
  UNITS,
  type Unit,
  type Usage,
  type UsagePart,
} from '../kernel/usage.ts'
import { SURFACE_NAMES, type Surface } from '../kernel/vocabulary.ts'
import { FACTOR_ONE, isTool, MULTIPLIER_ONE, plainAmountOf } from './amounts.ts'
import { maxRate, PRICE_TERMS, tierOf } from './modifiers.ts'
import {
  type FoundRate,
  findModel,
  findPriceFor,
  findRate,
  type ModelPrice,
  type PriceVersion,
  tableFor,
} from './price-book.ts'
import type { RatingContext } from './rating-context.ts'

/** Other values than positive integers count as 0: they must not become a credit, or crash in BigInt(). */
export function quantityOf(quantities: Quantities, unit: Unit): number {
  const quantity = quantities[unit]
  return quantity !== undefined && Number.isSafeInteger(quantity) && quantity > 0 ? quantity : 0
}

export function rateOf({ model, tariff }: PartPrice, unit: Unit): FoundRate {
  return findRate(isTool(unit) ? model.tools : tariff, unit)
}

export function toolsOf(quantities: Quantities): Quantities {
  return Object.fromEntries(Object.entries(quantities).filter(([unit]) => isTool(unit)))
}

export function pricedParts(usage: Usage, context: RatingContext, version: PriceVersion) {
  return usage.parts.flatMap((part) => {
    // Searches before a refusal are still charged.
    const quantities = usage.freeRefusal ? toolsOf(part.quantities) : part.quantities
    if (!hasQuantities(quantities)) return []
    const isDrawn = PRICE_TERMS[context.surface].imageModel !== null && part.model !== null
    const priceFor = (model: ModelPrice) => priceOf(model, part.promptTokens, usage, context, isDrawn)
    const found = modelOf(part, isDrawn, usage, context, version, priceFor)
    // The price is null if its model has none.
    return [{ ...found, quantities, price: found.model === null ? null : priceFor(found.model) }]
  })
}

export type PartPrice = ReturnType<typeof priceOf>

/** The rates of a model for a part of the usage, with the circumstances that chose them. Factors are in billionths. */
function priceOf(
  model: ModelPrice,
  promptTokens: number,
  usage: Usage,
  context: RatingContext,
  isDrawn: boolean,
) {
  // In the replies of most endpoints, no tier means standard.
  const serviceTier = isDrawn ? null : (usage.serviceTier ?? context.tierAsked ?? null)
  const reported = { serviceTier, speed: usage.speed, batch: context.batch }
  const { tier, known: tierKnown } = tierOf(context.surface, reported)
  const { tiers, longContextAbove } = tableFor(model, context.endpoint)
  const { listed: isListed, short, long } = tiers[tier]
  const isLong = longContextAbove !== null && promptTokens > longContextAbove && long !== null
  const geography = model.factors.geography.get(usage.geography ?? '') ?? FACTOR_ONE
  const regional = context.regional ? model.factors.regional : FACTOR_ONE
  // Nearly all factors are 1, and a multiplication of bigints allocates.
  const multiplier =
    geography === FACTOR_ONE && regional === FACTOR_ONE ? MULTIPLIER_ONE : geography * regional
  const tariff = isLong ? long : short
  return { model, tier, tierKnown, isListed, isLong, tariff, geography, regional, multiplier }
}

interface Resolved {
  readonly model: ModelPrice | null
  readonly asRequested: boolean
  /** Whether the part is priced as a model that neither upstream nor the request named. */
  readonly isSubstitute: boolean
}

function modelOf(
  part: UsagePart,
  isDrawn: boolean,
  usage: Usage,
  context: RatingContext,
  version: PriceVersion,
  priceFor: (model: ModelPrice) => PartPrice,
): Resolved {
  const named = nameOf(part, usage, context)
  // Images that a second model drew are never rated at the price of the first model.
  const found = isDrawn
    ? { model: findModel(version, named), asRequested: false, isSubstitute: false }
    : resolveModel(named, context, version)
  // If the request names a model without a price, only that model's price can apply.
  if (found.model !== null || (context.modelAsked !== null && !isDrawn)) return found
  const model = mostExpensiveModel(candidates(context, isDrawn, version), part.quantities, priceFor)
  return { model, asRequested: false, isSubstitute: true }
}

/** The model for rating: the one upstream names, else the requested one, else the endpoint's default. */
export function resolveModel(
  named: string | null,
  { modelAsked, endpoint }: RatingContext,
  version: PriceVersion,
): Resolved {
  const own = findModel(version, named)
  if (own !== null) return { model: own, asRequested: false, isSubstitute: false }
  const requested = modelAsked ?? version.defaultModels.get(endpoint) ?? null
  const model = findPriceFor(version, requested)
  const isOther = model !== null && named !== null
  const isFallback = model !== null && findModel(version, requested) === null
  return {
    model,
    asRequested: isOther && modelAsked !== null && named !== modelAsked,
    isSubstitute: isFallback || (isOther && modelAsked === null),
  }
}

function nameOf(part: UsagePart, usage: Usage, context: RatingContext): string | null {
  if (part.model === IMAGE_TOOL) return context.imageToolModel ?? PRICE_TERMS[context.surface].imageModel
  return part.model ?? usage.modelServed
}

function hasQuantities(quantities: Quantities): boolean {
  for (const unit in quantities) if (quantityOf(quantities, unit as Unit) > 0) return true
  return false
}

/** Upstreams with the Chat API also serve models of other providers. */
function surfaceOfProvider(provider: string): Surface {
  return SURFACE_NAMES.find((surface) => PRICE_TERMS[surface].provider === provider) ?? 'chat'
}

/** The models that can serve an endpoint; for images of a second model, all image models. */
function candidates(
  { surface, modes: serving = [] }: RatingContext,
  isDrawn: boolean,
  { models }: PriceVersion,
): readonly ModelPrice[] {
  const modes = isDrawn ? ['image'] : serving
  return models.filter(
    ({ mode, provider, entry }) =>
      modes.includes(mode) && surfaceOfProvider(provider) === surface && entry.retired !== true,
  )
}

/** Null if the list is empty. */
function mostExpensiveModel(
  models: readonly ModelPrice[],
  quantities: Quantities,
  priceOf: (model: ModelPrice) => PartPrice,
): ModelPrice | null {
  const amountAt = (model: ModelPrice): bigint => {
    const price = priceOf(model)
    return UNITS.reduce(
      (sum, unit) =>
        sum + plainAmountOf(unit, BigInt(quantityOf(quantities, unit)), rateOf(price, unit).nanos),
      0n,
    )
  }
  const amounts = models.map(amountAt)
  const largest = amounts.reduce(maxRate, 0n)
  return models[amounts.indexOf(largest)] ?? null
}

/** The most expensive model that the batch names. Null if one of the named models has no price. */
export function mostExpensiveNamed(
  names: readonly string[],
  context: RatingContext,
  version: PriceVersion,
): string | null {
  const models = names.flatMap((name) => findPriceFor(version, name) ?? [])
  if (models.length < names.length) return null
  const price = (model: ModelPrice) => priceOf(model, 0, NO_USAGE, context, false)
  return mostExpensiveModel(models, { input_tokens: 1, output_tokens: 1 }, price)?.id ?? null
}
