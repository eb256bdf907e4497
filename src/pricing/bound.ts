import type { Nanos } from '../kernel/money.ts'
import { type Discount, keepFor, NO_DISCOUNT } from './discount.ts'
import { type Multipliers, multiplierOf, ONE, plainAmountOf, Totals } from './exact-amount.ts'
import { dearer } from './find-rate.ts'
import {
  findModel,
  type ModelPrice,
  type PriceVersion,
  ratesOf,
  type Tariff,
  type TierRates,
  tableFor,
} from './price-book.ts'
import { type Side, type Tier, UNITS_OF } from './rate-keys.ts'
import { type Surface, tierOf } from './service-tier.ts'

/** What a request says that limits what it can cost. */
export interface BoundRequest {
  readonly surface: Surface
  /** The template of the endpoint, such as `/v1/messages`. */
  readonly endpoint: string
  /** Null where the request names none: it may come from a stored prompt or conversation. */
  readonly model: string | null
  /** Of the decoded body. */
  readonly bodyBytes: number
  /** The limit on output tokens that the request states. */
  readonly maxOutputTokens: number | null
  /** How many answers are asked for, at least 1. */
  readonly n: number
  readonly serviceTier: string | null
  /** Messages only. */
  readonly speed: string | null
  /** Messages only: where the request asks inference to run. */
  readonly geography: string | null
  /** URLs, file ids, stored prompts and responses, server tools: the model reads more than the body holds. */
  readonly refersElsewhere: boolean
  readonly tools: ToolLimits
  /** Each of them may answer after the ones before it have been paid for. */
  readonly fallbackModels: readonly string[]
}

export interface ToolLimits {
  /** Any tool at all: upstream then adds instructions of its own to the prompt. */
  readonly declared: boolean
  /** 0 without such a tool, null with one whose calls the request does not limit. */
  readonly webSearchesMax: number | null
  readonly fileSearchesMax: number | null
  /** The model that draws, if an image tool is there. */
  readonly imageModel: string | null
}

export const NO_TOOLS: ToolLimits = {
  declared: false,
  webSearchesMax: 0,
  fileSearchesMax: 0,
  imageModel: null,
}

export interface BoundSettings {
  /** What `auto` and no service tier at all mean on the Chat surface; it is a setting of the upstream project. */
  readonly defaultTier: string | null
  readonly regional: boolean
  /** A default of the upstream workspace may choose where inference runs. */
  readonly geographyPossible: boolean
}

export type Bound =
  | { readonly kind: 'bound'; readonly listNanos: Nanos; readonly costNanos: Nanos }
  /** No limit is known: the hold is all that is left. */
  | { readonly kind: 'unbounded'; readonly reason: string }
  | { readonly kind: 'unpriced'; readonly model: string }

/** What upstream puts before the prompt when tools are declared: documented sums stay below this. */
const TOOL_PROMPT_TOKENS = 2_048

/**
 * One byte of audio is taken for at most this much of it. That is 0.8 kbit/s, below the lowest setting of speech
 * codecs; a file of coded silence can pass it, and is then booked in full as an overrun.
 */
const AUDIO_MS_PER_BYTE = 10

/** The largest cap that a key can have. A bound beyond it limits nothing, and would not fit the columns for money. */
const BOUND_NANOS_MAX = 1_000_000_000n * 1_000_000_000n

/**
 * The most that a request can cost: all it sends at the dearest rate for input that it can lead to, all it may get
 * at the dearest rate for output, for every model that may answer. Never below what `rate` makes of any usage that
 * fits the request, and reached by some such usage.
 */
export function boundOf(
  request: BoundRequest,
  version: PriceVersion,
  settings: BoundSettings,
  discount: Discount = NO_DISCOUNT,
): Bound {
  if (request.model === null) return { kind: 'unbounded', reason: 'the request names no model' }
  const totals = new Totals()
  for (const name of modelsOf(request.model, request.fallbackModels)) {
    const model = findModel(version, name)
    if (model === null) return { kind: 'unpriced', model: name }
    const reason = addMost(totals, model, request, settings, keepFor(discount, model.id))
    if (reason !== null) return { kind: 'unbounded', reason }
  }
  const { imageModel } = request.tools
  if (imageModel !== null) {
    if (findModel(version, imageModel) === null) return { kind: 'unpriced', model: imageModel }
    return { kind: 'unbounded', reason: 'nothing limits how much the image tool draws' }
  }
  const { listNanos, costNanos } = totals.raised()
  if (listNanos > BOUND_NANOS_MAX) return { kind: 'unbounded', reason: 'the limits are beyond any cap' }
  return { kind: 'bound', listNanos, costNanos }
}

function modelsOf(asked: string, fallbacks: readonly string[]): readonly string[] {
  return fallbacks.length === 0 ? [asked] : [asked, ...fallbacks]
}

/** Adds the most that one model can cost, or says why that is not known. */
function addMost(
  totals: Totals,
  model: ModelPrice,
  request: BoundRequest,
  settings: BoundSettings,
  keep: bigint,
): string | null {
  const inputMost = inputLimit(model, request)
  const nanos = dearestFor(model, request, settings, inputMost ?? Number.MAX_SAFE_INTEGER)
  let sum = 0n
  if (nanos.duration > 0n) {
    const milliseconds = BigInt(request.bodyBytes * AUDIO_MS_PER_BYTE)
    sum += plainAmountOf('audio_input_milliseconds', milliseconds, nanos.duration)
  }
  if (nanos.input > 0n) {
    if (inputMost === null) return `no context window is known for ${model.id}`
    sum += plainAmountOf('input_tokens', BigInt(inputMost), nanos.input)
  }
  if (nanos.output > 0n) {
    const outputMost = outputLimit(model, request)
    if (outputMost === null) return `no output limit is known for ${model.id}`
    sum += plainAmountOf('output_tokens', BigInt(outputMost) * BigInt(request.n), nanos.output)
  }
  const searches = searchesOf(model, request.tools)
  if (typeof searches === 'string') return searches
  totals.add(sum, multiplierOf(multipliersFor(model, request, settings)), keep)
  if (searches !== 0n) totals.add(searches, null, keep)
  return null
}

/** No token is shorter than a byte, so the body's bytes bound its tokens; nothing passes the context window. */
function inputLimit(model: ModelPrice, request: BoundRequest): number | null {
  if (request.refersElsewhere) return model.contextWindowTokens
  const sent = request.bodyBytes + (request.tools.declared ? TOOL_PROMPT_TOKENS : 0)
  return Math.min(sent, model.contextWindowTokens ?? sent)
}

/** A stated limit beyond the window is refused upstream or cut to it; what a model writes has to fit its window. */
function outputLimit(model: ModelPrice, request: BoundRequest): number | null {
  const { contextWindowTokens, maxOutputTokens } = model
  if (request.maxOutputTokens === null) return maxOutputTokens ?? contextWindowTokens
  const room = Math.max(contextWindowTokens ?? 0, maxOutputTokens ?? 0)
  return room === 0 ? request.maxOutputTokens : Math.min(request.maxOutputTokens, room)
}

type Dearest = Readonly<Record<Exclude<Side, 'tool'>, bigint>>

/**
 * Over every set of rates the call may be rated with: the tier asked for, and prompts up to the limit. Of the listed
 * rates: whatever stands in for a missing one is among them.
 */
function dearestFor(
  model: ModelPrice,
  request: BoundRequest,
  settings: BoundSettings,
  promptTokensMax: number,
): Dearest {
  const table = tableFor(model, request.endpoint)
  const { standard, longContextAbove } = table
  const mayBeLong = longContextAbove !== null && promptTokensMax > longContextAbove
  const tier = tierFor(request, settings)
  if (tier === 'standard') return dearestOf(standard, mayBeLong)
  const rates = ratesOf(table, tier) ?? standard
  const own = dearestOf(rates, mayBeLong)
  // What is paid for speed may be served, and reported, as standard. Cheaper tiers are refused rather than raised,
  // by the models that have them.
  const isCheap = (tier === 'flex' || tier === 'batch') && rates.listed
  return isCheap ? own : dearestOfBoth(own, dearestOf(standard, mayBeLong))
}

function tierFor(request: BoundRequest, settings: BoundSettings): Tier {
  const left = request.serviceTier === null || request.serviceTier === 'auto'
  const serviceTier = left && request.surface === 'chat' ? settings.defaultTier : request.serviceTier
  return tierOf(request.surface, { serviceTier, speed: request.speed, batch: false }).tier
}

/** Rates never change; looking through them took a third of the time of a bound. */
const dearestKnown = new WeakMap<TierRates, { readonly short: Dearest; readonly either: Dearest }>()

function dearestOf(rates: TierRates, mayBeLong: boolean): Dearest {
  let known = dearestKnown.get(rates)
  if (known === undefined) {
    const short = dearestIn(rates.short)
    const either = rates.long === null ? short : dearestOfBoth(short, dearestIn(rates.long))
    known = { short, either }
    dearestKnown.set(rates, known)
  }
  return mayBeLong ? known.either : known.short
}

function dearestIn(tariff: Tariff): Dearest {
  const most = (side: Exclude<Side, 'tool'>): bigint =>
    UNITS_OF[side].reduce((sofar, unit) => dearer(sofar, tariff.get(unit) ?? 0n), 0n)
  return { input: most('input'), output: most('output'), duration: most('duration') }
}

function dearestOfBoth(a: Dearest, b: Dearest): Dearest {
  return {
    input: dearer(a.input, b.input),
    output: dearer(a.output, b.output),
    duration: dearer(a.duration, b.duration),
  }
}

function multipliersFor(model: ModelPrice, request: BoundRequest, settings: BoundSettings): Multipliers {
  const { geography } = request
  let place = ONE
  if (geography !== null) place = model.geography.get(geography) ?? ONE
  else if (settings.geographyPossible)
    for (const factor of model.geography.values()) place = dearer(place, factor)
  return [place, (settings.regional ? model.regionalUplift : null) ?? ONE]
}

function searchesOf(model: ModelPrice, tools: ToolLimits): bigint | string {
  if (tools.webSearchesMax === 0 && tools.fileSearchesMax === 0) return 0n
  let sum = 0n
  for (const [unit, most] of [
    ['web_searches', tools.webSearchesMax],
    ['file_searches', tools.fileSearchesMax],
  ] as const) {
    if (most === 0) continue
    const nanos = model.tools.get(unit) ?? 0n
    if (most === null && nanos > 0n) return `nothing limits the number of ${unit.replace('_', ' ')}`
    sum += plainAmountOf(unit, BigInt(most ?? 0), nanos)
  }
  return sum
}
