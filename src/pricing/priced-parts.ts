import { NO_USAGE, type Quantities, UNITS, type Unit, type Usage, type UsagePart } from '../kernel/usage.ts'
import { SURFACE_NAMES, type Surface } from '../kernel/vocabulary.ts'
import { DEFAULT_IMAGE_MODEL, IMAGE_TOOL_MODEL } from '../providers/chat/images.ts'
import { SURFACES } from '../providers/surfaces.ts'
import { plainAmountOf } from './amounts.ts'
import { multiplierOf, type RatingContext, tierOf } from './modifiers.ts'
import {
  type FoundRate,
  findModel,
  findRate,
  highestSearchRate,
  type ModelPrice,
  type PriceVersion,
  type Tariffs,
  tableFor,
  tariffsFor,
} from './price-book.ts'
import type { Mode } from './price-file.ts'
import { UNITS_OF } from './rate-keys.ts'

export interface PartPrice {
  readonly model: ModelPrice
  readonly tierKnown: boolean
  readonly tariffs: Tariffs
  /** The product of all modifiers, over `MULTIPLIER_ONE`. */
  readonly multiplier: bigint
}

/** Metering promises non-negative integers. Anything else must neither become a credit nor crash in BigInt(). */
export function quantityOf(quantities: Quantities, unit: Unit): number {
  const quantity = quantities[unit] ?? 0
  return Number.isSafeInteger(quantity) && quantity > 0 ? quantity : 0
}

const TOOLS: ReadonlySet<Unit> = new Set(UNITS_OF.tool)

/** Whether a unit is priced per use: tiers and multipliers do not apply. */
export function isTool(unit: Unit): boolean {
  return TOOLS.has(unit)
}

export function rateOf({ model, tariffs }: PartPrice, unit: Unit): FoundRate {
  return isTool(unit) ? findTool(model, unit) : findRate(tariffs, unit)
}

function findTool({ tools }: ModelPrice, unit: Unit): FoundRate {
  const nanos = tools.get(unit)
  if (nanos !== undefined) return { nanos, how: 'listed' }
  const most = unit === 'web_searches' ? highestSearchRate(tools) : 0n
  return { nanos: most, how: most > 0n ? 'sibling' : 'none' }
}

export function toolsOf(quantities: Quantities): Quantities {
  const units = Object.entries(quantities).filter(([unit]) => isTool(unit as Unit))
  return Object.fromEntries(units)
}

/** A part of the usage with a quantity above 0, and its price. */
export interface PricedPart {
  readonly quantities: Quantities
  readonly asRequested: boolean
  /** Priced as a model that neither upstream nor the request named. */
  readonly standsIn: boolean
  /** Null: the model of the part has no price. */
  readonly price: PartPrice | null
}

export function pricedParts(usage: Usage, context: RatingContext, version: PriceVersion): PricedPart[] {
  const priced: PricedPart[] = []
  for (const part of usage.parts) {
    // Searches before a refusal are still charged.
    const quantities = usage.freeRefusal ? toolsOf(part.quantities) : part.quantities
    if (!didSomething(quantities)) continue
    const { otherModelsDraw } = SURFACES[context.surface].pricing
    const isDrawn = otherModelsDraw && part.model !== null
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
  const { speed } = usage
  const serviceTier = isDrawn ? null : (usage.serviceTier ?? tierUnstated(context))
  const { tier, known } = tierOf(context.surface, { serviceTier, speed, batch: context.batch })
  return {
    model,
    tierKnown: known,
    tariffs: tariffsFor(tableFor(model, context.endpoint), tier, promptTokens),
    multiplier: multiplierOf(model.factors, usage, context),
  }
}

/** A compaction has tiers, but its reply does not name one. Elsewhere a reply without a tier means standard. */
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
  if (found.model !== null) return found
  // A call that names an unpriced model was admitted to be rated later, at that model's own price.
  if (context.modelAsked !== null && !isDrawn) return found
  const price = (model: ModelPrice) => priceOf(model, part.promptTokens, usage, context, isDrawn)
  const model = costliestModel(candidates(context, isDrawn, version), part.quantities, price)
  return { model, asRequested: false, standsIn: true }
}

/** Images of a second model are never rated as the text model. */
function drawnBy(named: string | null, version: PriceVersion): Resolved {
  return { model: findModel(version, named), asRequested: false, standsIn: false }
}

/**
 * If upstream names no model (images, speech), the requested one counts; if the request names none either, the
 * endpoint's default.
 */
export function resolve(
  named: string | null,
  { modelAsked, endpoint }: RatingContext,
  version: PriceVersion,
): Resolved {
  const own = findModel(version, named)
  if (own !== null) return { model: own, asRequested: false, standsIn: false }
  const model = findModel(version, modelAsked ?? version.defaultModels.get(endpoint) ?? null)
  const instead = model !== null && named !== null
  return {
    model,
    asRequested: instead && modelAsked !== null,
    standsIn: instead && modelAsked === null,
  }
}

function nameOf(part: UsagePart, usage: Usage, context: RatingContext): string | null {
  if (part.model === IMAGE_TOOL_MODEL) return context.imageToolModel ?? DEFAULT_IMAGE_MODEL
  return part.model ?? usage.modelServed
}

function didSomething(quantities: Quantities): boolean {
  for (const unit in quantities) if (quantityOf(quantities, unit as Unit) > 0) return true
  return false
}

const MODES_OF: ReadonlyMap<string, readonly Mode[]> = new Map([
  ['/v1/messages', ['chat']],
  ['/v1/chat/completions', ['chat']],
  ['/v1/completions', ['completion']],
  ['/v1/embeddings', ['embedding']],
  ['/v1/images/generations', ['image']],
  ['/v1/images/edits', ['image']],
  ['/v1/audio/speech', ['audio_speech']],
  ['/v1/audio/transcriptions', ['audio_transcription']],
  ['/v1/realtime', ['realtime', 'audio_transcription']],
])

/** The modes of Responses and of endpoints with the same reply form. */
const RESPONSES_MODES: readonly Mode[] = ['chat', 'responses']

/** Models of other providers are served by upstreams with the Chat API. */
function surfaceOfProvider(provider: string): Surface {
  return SURFACE_NAMES.find((surface) => SURFACES[surface].pricing.provider === provider) ?? 'chat'
}

/** The models that can serve an endpoint; for images of a second model, all image models. */
function candidates(
  { surface, endpoint }: RatingContext,
  isDrawn: boolean,
  { models }: PriceVersion,
): readonly ModelPrice[] {
  const modes = isDrawn ? (['image'] as const) : (MODES_OF.get(endpoint) ?? RESPONSES_MODES)
  return models.filter(
    ({ mode, provider, entry }) =>
      modes.includes(mode) && surfaceOfProvider(provider) === surface && entry.retired !== true,
  )
}

/** The model at which the quantities cost most; null if there is none. */
function costliestModel(
  models: readonly ModelPrice[],
  quantities: Quantities,
  priceOf: (model: ModelPrice) => PartPrice,
): ModelPrice | null {
  let costliest: ModelPrice | null = null
  let most = -1n
  for (const model of models) {
    const price = priceOf(model)
    let amount = 0n
    for (const unit of UNITS)
      amount += plainAmountOf(unit, BigInt(quantityOf(quantities, unit)), rateOf(price, unit).nanos)
    if (amount > most) {
      costliest = model
      most = amount
    }
  }
  return costliest
}

/**
 * The model for rating a batch whose served model has no price: the most expensive one that it names. Null if one of
 * these has no price either: that one must get a price first.
 */
export function mostExpensiveNamed(
  names: readonly string[],
  context: RatingContext,
  version: PriceVersion,
): string | null {
  const models = names.flatMap((name) => findModel(version, name) ?? [])
  if (models.length < names.length) return null
  const price = (model: ModelPrice) => priceOf(model, 0, NO_USAGE, context, false)
  return costliestModel(models, { input_tokens: 1, output_tokens: 1 }, price)?.id ?? null
}
