import type { Quantities, Unit, Usage, UsagePart } from '../kernel/usage.ts'
import { candidates, dearestModel } from './dearest-model.ts'
import { type Multipliers, ONE } from './exact-amount.ts'
import { tariffsFor } from './find-rate.ts'
import { type PartPrice, quantityOf, toolsOf } from './part-price.ts'
import { findModel, type ModelPrice, type PriceVersion, tableFor } from './price-book.ts'
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
  /** The price is that of a model which neither upstream nor the request named. */
  readonly standsIn: boolean
  /** Null: its model has no price. */
  readonly price: PartPrice | null
}

export function pricedParts(usage: Usage, context: RatingContext, version: PriceVersion): PricedPart[] {
  const priced: PricedPart[] = []
  if (usage.freeRefusal && version.rules === 1) return priced
  for (const part of usage.parts) {
    // What was searched before upstream refused is paid all the same.
    const quantities = usage.freeRefusal ? toolsOf(part.quantities) : part.quantities
    if (!didSomething(quantities)) continue
    // Only Messages has other models sample; on Chat a second model draws.
    const isDrawn = version.rules === 2 && context.surface === 'chat' && part.model !== null
    const { model, asRequested, standsIn } = modelOf(part, isDrawn, usage, context, version)
    const price = model === null ? null : priceOf(model, part.promptTokens, usage, context, isDrawn)
    priced.push({ quantities, asRequested, standsIn, price })
  }
  return priced
}

function priceOf(
  model: ModelPrice,
  promptTokens: number,
  usage: Usage,
  context: RatingContext,
  isDrawn: boolean,
): PartPrice {
  const { speed, geography } = usage
  const serviceTier = isDrawn ? null : (usage.serviceTier ?? tierUnstated(context))
  const { tier, known } = tierOf(context.surface, { serviceTier, speed, batch: context.batch })
  return {
    model,
    tierKnown: known,
    tariffs: tariffsFor(tableFor(model, context.endpoint), tier, promptTokens),
    multipliers: multipliersFor(model, geography, context.regional),
  }
}

/** A compaction has tiers, and its reply does not say which. Elsewhere a reply without a tier means the standard one. */
function tierUnstated({ endpoint, tierAsked }: RatingContext): string | null {
  return endpoint === '/v1/responses/compact' ? (tierAsked ?? null) : null
}

interface Resolved {
  readonly model: ModelPrice | null
  readonly asRequested: boolean
  readonly standsIn: boolean
}

function modelOf(
  part: UsagePart,
  isDrawn: boolean,
  usage: Usage,
  context: RatingContext,
  version: PriceVersion,
): Resolved {
  const named = nameOf(part, usage, context)
  const found = isDrawn ? drawnBy(named, version) : resolve(named, context, version)
  if (found.model !== null || version.rules === 1) return found
  // A model that the request names and that has no price was let pass to be rated later, at its own.
  if (context.modelAsked !== null && !isDrawn) return found
  const price = (model: ModelPrice) => priceOf(model, part.promptTokens, usage, context, isDrawn)
  const model = dearestModel(candidates(context, isDrawn, version), part.quantities, price)
  return { model, asRequested: false, standsIn: true }
}

/** What a second model drew never goes by the price of the one that wrote. */
function drawnBy(named: string | null, version: PriceVersion): Resolved {
  const model = named === null ? null : findModel(version, named)
  return { model, asRequested: false, standsIn: false }
}

/**
 * Where upstream names no model at all (images, speech), the requested one is simply the model; where the request names
 * none either, it is the default of the endpoint.
 */
export function resolve(
  named: string | null,
  { modelAsked, endpoint }: RatingContext,
  version: PriceVersion,
): Resolved {
  const own = named === null ? null : findModel(version, named)
  if (own !== null) return { model: own, asRequested: false, standsIn: false }
  const other = modelAsked ?? version.defaultModels.get(endpoint) ?? null
  const model = other === null ? null : findModel(version, other)
  const instead = model !== null && named !== null
  return {
    model,
    asRequested: instead && modelAsked !== null,
    standsIn: instead && modelAsked === null,
  }
}

function nameOf(part: UsagePart, usage: Usage, context: RatingContext): string | null {
  if (part.model === IMAGE_TOOL) return context.imageToolModel ?? IMAGE_TOOL_DEFAULT_MODEL
  return part.model ?? usage.modelServed
}

function didSomething(quantities: Quantities): boolean {
  for (const unit in quantities) if (quantityOf(quantities, unit as Unit) > 0) return true
  return false
}

function multipliersFor(model: ModelPrice, geography: string | null, regional: boolean): Multipliers {
  const place = geography === null ? undefined : model.geography.get(geography)
  return [place ?? ONE, (regional ? model.regionalUplift : null) ?? ONE]
}
