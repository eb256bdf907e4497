import { limits as kernelLimits } from '../kernel/limits.ts'
import { type Bound, NO_COST } from '../kernel/money.ts'
import type { Unit, Usage } from '../kernel/usage.ts'
import type { Surface } from '../kernel/vocabulary.ts'
import type { BoundedFile } from '../ledger/ledger-store.ts'
import type { RequestFacts } from '../metering/request-reader.ts'
import type { Discount } from '../pricing/amounts.ts'
import { boundOf, inputTokensMax, outputTokensMax } from '../pricing/bound.ts'
import type { RatingContext } from '../pricing/modifiers.ts'
import { findModel, type PriceVersion } from '../pricing/price-book.ts'
import { resolve } from '../pricing/priced-parts.ts'
import type { Endpoint } from '../providers/endpoint.ts'
import { addToolCalls } from '../providers/reading.ts'
import { TURN_LIMITS } from '../providers/realtime-events.ts'
import { type RequestLimits, readLimits, withSearch } from '../providers/request-limits.ts'
import { isGiven } from '../providers/request-members.ts'
import type { RequestFees } from '../providers/surface.ts'
import { SURFACES } from '../providers/surfaces.ts'

export interface PricedRequest {
  readonly surface: Surface
  readonly method: string
  readonly path: string
  readonly query?: string
  readonly endpoint: Endpoint | null
  readonly facts: RequestFacts
  readonly modelAsked: string | null
  readonly bodyBytes: number
  readonly batchFile?: BoundedFile | null
  readonly atMs: number
}

export interface PricerSettings {
  readonly discount: Discount
  readonly unpriced: 'auto' | 'refuse' | 'pass'
  readonly chatDefaultTier: string | null
  readonly chatRegional: boolean
  /** Whether upstream is polled for the objects that calls have made there. Else the cost of these calls is never known. */
  readonly polls: boolean
}

export interface TokensHeld {
  readonly input: number | null
  readonly output: number | null
  readonly contextWindow: number | null
}

/** Some models search the web for every answer they give to a chat. */
export function limitsOf(
  endpoint: Endpoint,
  { facts, modelAsked }: PricedRequest,
  version: PriceVersion,
): RequestLimits {
  const limits = readLimits(endpoint, facts)
  if (modelAsked === null || endpoint.template !== '/v1/chat/completions') return limits
  return findModel(version, modelAsked)?.searchesEachCall === true ? withSearch(limits) : limits
}

export function boundFor(
  call: PricedRequest,
  limits: RequestLimits,
  { endpoint, regional, batch }: RatingContext,
  version: PriceVersion,
  { chatDefaultTier: defaultTier, discount }: PricerSettings,
): Bound {
  const { surface, bodyBytes } = call
  const model = call.modelAsked ?? defaultModel(call, limits, version)
  return boundOf(
    { ...limits, surface, endpoint, model, bodyBytes },
    version,
    { defaultTier, regional, geographyPossible: true, batch },
    discount,
  )
}

/** The most that a transcription of a session's input may cost: the session may turn to any model for it. */
export function boundTranscript(
  call: PricedRequest,
  context: RatingContext,
  version: PriceVersion,
  settings: PricerSettings,
): Bound {
  let most: Bound = NO_COST
  for (const { id, mode } of version.models) {
    if (mode !== 'audio_transcription') continue
    const bound = boundFor({ ...call, modelAsked: id }, TURN_LIMITS, context, version, settings)
    if (bound.kind === 'bound' && most.kind === 'bound' && bound.listNanos > most.listNanos) most = bound
  }
  return most
}

export function tokensHeld(
  name: string | null,
  { endpoint, bodyBytes }: PricedRequest,
  limits: RequestLimits,
  version: PriceVersion,
): TokensHeld {
  const model = name === null ? null : findModel(version, name)
  const stated = limits.maxOutputTokens
  const contextWindow =
    model === null ? null : inputTokensMax(model, endpoint?.template ?? '', limits.prompts)
  const output = model === null ? stated : outputTokensMax(model, stated)
  return {
    input: limits.refersElsewhere ? contextWindow : Math.min(bodyBytes, contextWindow ?? bodyBytes),
    output: output === null ? null : output * limits.n,
    contextWindow,
  }
}

/** The model that upstream takes where a request leaves its model out. A name that cannot be read was not left out. */
export function defaultModel(
  call: PricedRequest,
  limits: RequestLimits,
  version: PriceVersion,
): string | null {
  if (call.modelAsked !== null || call.endpoint === null || limits.stored) return null
  if (isGiven(call.facts.body['model'])) return null
  return version.defaultModels.get(call.endpoint.template) ?? null
}

/** A request for `auto`, or for no tier, leaves the tier to the settings of the upstream project. */
export function tierFor(
  surface: PricedRequest['surface'],
  { serviceTier }: RequestLimits,
  settings: PricerSettings,
): string | null {
  const left = serviceTier === null || serviceTier === 'auto'
  return left && SURFACES[surface].pricing.hasProjectTier ? settings.chatDefaultTier : serviceTier
}

/** Cuts a name for the rating that is kept with a call. No name that has a price is longer than the limit. */
export function recorded<T extends string | null>(name: T): T
export function recorded(name: string | null): string | null {
  return name === null ? null : name.slice(0, kernelLimits.recordedCharsMax)
}

export function contextOf(call: PricedRequest, settings: PricerSettings): RatingContext {
  return {
    surface: call.surface,
    modelAsked: call.modelAsked,
    endpoint: call.endpoint?.template ?? recorded(call.path),
    regional: call.surface === 'chat' && settings.chatRegional,
    batch: false,
    imageToolModel: null,
  }
}

/** The usage of an answered call with the fees that follow from its request or its model, and without fees for free work. */
export function settleFees(
  usage: Usage,
  fees: RequestFees,
  context: RatingContext,
  version: PriceVersion,
): Usage {
  if (fees.codeRunsFree) return { ...usage, parts: usage.parts.map(withoutCode) }
  if (context.endpoint !== '/v1/chat/completions') return usage
  const { model } = resolve(usage.modelServed, context, version)
  if (!fees.asksForSearch && model?.searchesEachCall !== true) return usage
  const sized = SEARCHES_BY_SIZE.get(fees.searchSize ?? 'medium')
  const unit = sized !== undefined && model?.tools.has(sized) === true ? sized : 'web_searches'
  return { ...usage, parts: addToolCalls(usage.parts, { [unit]: 1 }) }
}

const SEARCHES_BY_SIZE: ReadonlyMap<string, Unit> = new Map([
  ['low', 'web_searches_low'],
  ['medium', 'web_searches_medium'],
  ['high', 'web_searches_high'],
])

function withoutCode(part: Usage['parts'][number]): Usage['parts'][number] {
  const { code_executions: _free, ...quantities } = part.quantities
  return { ...part, quantities }
}
