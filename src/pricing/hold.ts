import { addBounds, type Bound, NO_COST } from '../kernel/money.ts'
import { type Side, UNITS_OF } from '../kernel/usage.ts'
import { type Discount, MULTIPLIER_ONE, NO_DISCOUNT, payableFor, plainAmountOf, Totals } from './amounts.ts'
import { isSearchPaid } from './call-fees.ts'
import { maxRate, multiplierMax, tierOf } from './modifiers.ts'
import {
  findModel,
  findPriceFor,
  highestSearchRate,
  isPricedPer,
  type ModelPrice,
  type PriceVersion,
  type Tariff,
  type TierRates,
  tableFor,
} from './price-book.ts'
import type { RequestProfile, RequestTools } from './request-profile.ts'

/** 0.8 kbit/s, below the lowest setting of speech codecs. Longer encoded silence is charged as an overrun. */
const AUDIO_MS_PER_BYTE = 10

/** The largest possible cap. A larger bound would limit nothing, and would not fit the money columns. */
const BOUND_NANOS_MAX = 1_000_000_000n * 1_000_000_000n

/**
 * Upper bound of a request's cost, by its class (see BoundClass): its input at the highest possible input rate, its
 * output at the highest output rate, and its fees. If upstream may run several passes, each counts with the largest
 * window and the highest rates of all models involved.
 */
export function hold(
  profile: RequestProfile,
  version: PriceVersion,
  discount: Discount = NO_DISCOUNT,
): Bound {
  const bound = boundOf(profile, version, discount)
  if (!profile.mayTranscribe || bound.kind !== 'bound') return bound
  return addBounds(bound, boundTranscript(profile, version, discount))
}

/** The model that the request names, else the one that upstream uses by default. */
export function modelFor(
  { model, usesDefaultModel, endpoint }: RequestProfile,
  { defaultModels }: PriceVersion,
): string | null {
  return model ?? (usesDefaultModel ? (defaultModels.get(endpoint) ?? null) : null)
}

function boundOf(profile: RequestProfile, version: PriceVersion, discount: Discount): Bound {
  const name = modelFor(profile, version)
  if (name === null) return unbounded('the request names no model')
  const models: ModelPrice[] = []
  for (const each of [name, ...profile.otherModels]) {
    const model = findPriceFor(version, each)
    if (model === null) return { kind: 'unpriced', model: each }
    models.push(model)
  }
  if (profile.boundClass === 'unknown') return unbounded('the request does not limit all of its work')
  const [first] = models as [ModelPrice, ...ModelPrice[]]
  const request = isSearchPaid(profile, first) ? withSearch(profile) : profile
  const passes = request.boundClass === 'exotic' ? (1 + request.passes) * (request.compacts ? 2 : 1) : 1
  const tokens = tokensAmount(models, request, passes)
  if (typeof tokens === 'string') return unbounded(tokens)
  const fees = feesAmount(first, request.tools)
  let [listNanos, costNanos] = [0n, 0n]
  for (const model of models) {
    const totals = new Totals()
    const payable = payableFor(discount, model.id)
    totals.add(tokens * BigInt(passes), multiplierMax(model.factors, request), payable)
    if (fees !== 0n) totals.add(fees, MULTIPLIER_ONE, payable)
    const roundedUp = totals.roundedUp()
    listNanos = maxRate(listNanos, roundedUp.listNanos)
    costNanos = maxRate(costNanos, roundedUp.costNanos)
  }
  if (listNanos > BOUND_NANOS_MAX) return unbounded('the limits are beyond any cap')
  return { kind: 'bound', listNanos, costNanos }
}

/** One paid search, whose results the model reads. */
function withSearch(profile: RequestProfile): RequestProfile {
  const { boundClass, tools } = profile
  return {
    ...profile,
    boundClass: boundClass === 'plain' ? 'elsewhere' : boundClass,
    tools: { ...tools, webSearches: Math.max(1, tools.webSearches) },
  }
}

/** The cost of transcribing the input with the most expensive model. */
function boundTranscript(profile: RequestProfile, version: PriceVersion, discount: Discount): Bound {
  let max: Bound = NO_COST
  for (const { id, mode } of version.models) {
    if (mode !== 'audio_transcription') continue
    const bound = boundOf({ ...profile, model: id }, version, discount)
    if (bound.kind === 'bound' && max.kind === 'bound' && bound.listNanos > max.listNanos) max = bound
  }
  return max
}

function unbounded(reason: string): Bound {
  return { kind: 'unbounded', reason }
}

function tokensAmount(
  models: readonly ModelPrice[],
  request: RequestProfile,
  passes: number,
): bigint | string {
  let context: number | null = 0
  for (const model of models) {
    const limit = inputLimit(model, request)
    context = context === null || limit === null ? null : Math.max(context, limit)
  }
  // Prompts of several passes may be reported, and so rated, as one.
  const prompt = (context ?? Number.MAX_SAFE_INTEGER) * passes
  let nanos: HighestRates = NO_RATES
  for (const model of models) nanos = highestOfBoth(nanos, highestRatesFor(model, request, prompt))
  let sum = 0n
  if (nanos.duration > 0n) {
    const milliseconds = BigInt(request.audioMsMax ?? request.bodyBytes * AUDIO_MS_PER_BYTE)
    sum += plainAmountOf('audio_input_milliseconds', milliseconds, nanos.duration)
  }
  if (nanos.input > 0n) {
    if (context === null) return 'no context window is known for a model'
    sum += plainAmountOf('input_tokens', BigInt(context), nanos.input)
  }
  if (nanos.output > 0n) {
    const outputs = models.map((model) => outputTokensMax(model, request.maxOutputTokens))
    if (outputs.includes(null)) return 'no output limit is known for a model'
    const output = BigInt(Math.max(...outputs.map(Number))) * BigInt(request.answers)
    sum += plainAmountOf('output_tokens', output, nanos.output)
  }
  return sum
}

/** Maximum tokens of all prompts of a request together; null if unknown. */
function inputTokensMax(
  { contextWindowTokens: window }: ModelPrice,
  { inputTokensMax: max, prompts }: RequestProfile,
): number | null {
  if (max !== null) return Math.max(max, window ?? 0)
  return window === null ? null : window * prompts
}

/** A token has at least one byte, so the body's size limits it as the context window does. */
function inputLimit(model: ModelPrice, profile: RequestProfile): number | null {
  const { boundClass, bodyBytes, characters, endpoint } = profile
  if (characters !== null && isPricedPer('input_characters', model, endpoint)) return characters
  const tokensMax = inputTokensMax(model, profile)
  return boundClass === 'plain' ? Math.min(bodyBytes, tokensMax ?? bodyBytes) : tokensMax
}

/** The most that a call can read and write, by the limits of the served model, else of the one for the request. */
export function tokenLimits(profile: RequestProfile, served: string | null, version: PriceVersion) {
  const model = findModel(version, served) ?? findPriceFor(version, modelFor(profile, version))
  const stated = profile.maxOutputTokens
  const output = model === null ? stated : outputTokensMax(model, stated)
  return {
    input: model === null ? null : inputTokensMax(model, profile),
    output: output === null ? null : output * profile.answers,
  }
}

/** The maximum output tokens. The output must fit the context window: upstream refuses or reduces a larger limit. */
function outputTokensMax(model: ModelPrice, stated: number | null): number | null {
  const { contextWindowTokens, maxOutputTokens } = model
  const limit = stated ?? maxOutputTokens ?? contextWindowTokens
  if (limit === null) return null
  const room = Math.max(contextWindowTokens ?? 0, maxOutputTokens ?? 0)
  return room === 0 ? limit : Math.min(limit, room)
}

type PricedSide = Exclude<Side, 'tool'>

type HighestRates = Readonly<Record<PricedSide, bigint>>

const NO_RATES: HighestRates = { input: 0n, output: 0n, duration: 0n }

/** The highest rates for the requested tier and prompts up to the limit. A substitute rate is one of the listed rates. */
function highestRatesFor(model: ModelPrice, request: RequestProfile, promptTokensMax: number): HighestRates {
  const { tiers, longContextAbove } = tableFor(model, request.endpoint)
  const mayBeLong = longContextAbove !== null && promptTokensMax > longContextAbove
  const speed = request.mayBeFast ? 'fast' : null
  const { surface, serviceTier, batch } = request
  const { tier, known } = tierOf(surface, { serviceTier, speed, batch })
  const usual = highestOf(tiers.standard, mayBeLong)
  // A single request does not get the batch price, even if it names that tier.
  const own = tier === 'batch' && !request.batch ? usual : highestOf(tiers[tier], mayBeLong)
  // An unknown tier may be another name for any of the model's tiers.
  if (!known)
    return Object.values(tiers)
      .filter(({ listed }) => listed)
      .reduce((max, each) => highestOfBoth(max, highestOf(each, mayBeLong)), highestOfBoth(own, usual))
  // A faster, more expensive tier may be served, and reported, as standard. A model that lists the cheaper `flex` refuses
  // a call rather than serve it as standard.
  return request.batch || (tier === 'flex' && tiers.flex.listed) ? own : highestOfBoth(own, usual)
}

function highestOf({ short, long }: TierRates, mayBeLong: boolean): HighestRates {
  return mayBeLong && long !== null ? highestOfBoth(highestIn(short), highestIn(long)) : highestIn(short)
}

/** Cached, because finding the highest rates took a third of the time of a bound. A tariff never changes. */
const highestRatesCache = new WeakMap<Tariff, HighestRates>()

function highestIn(tariff: Tariff): HighestRates {
  const known = highestRatesCache.get(tariff)
  if (known !== undefined) return known
  const highestOn = (side: PricedSide): bigint =>
    UNITS_OF[side].reduce((highestSoFar, unit) => maxRate(highestSoFar, tariff.get(unit) ?? 0n), 0n)
  const highest = { input: highestOn('input'), output: highestOn('output'), duration: highestOn('duration') }
  highestRatesCache.set(tariff, highest)
  return highest
}

function highestOfBoth(a: HighestRates, b: HighestRates): HighestRates {
  return {
    input: maxRate(a.input, b.input),
    output: maxRate(a.output, b.output),
    duration: maxRate(a.duration, b.duration),
  }
}

function feesAmount(model: ModelPrice, tools: RequestTools): bigint {
  const { webSearches, fileSearches, containers } = tools
  let sum = plainAmountOf('web_searches', BigInt(webSearches), highestSearchRate(model.tools))
  for (const [unit, count] of [
    ['file_searches', fileSearches],
    ['containers', containers],
  ] as const)
    if (count > 0) sum += plainAmountOf(unit, BigInt(count), model.tools.get(unit) ?? 0n)
  return sum
}
