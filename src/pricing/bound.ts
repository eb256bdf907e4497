import type { Bound } from '../kernel/money.ts'
import type { Fallback } from '../providers/request-limits.ts'
import type { Advisor, RequestTools } from '../providers/request-tools.ts'
import { SURFACES } from '../providers/surfaces.ts'
import { type Discount, NO_DISCOUNT, payableFor, plainAmountOf, Totals } from './amounts.ts'
import {
  type BoundRequest,
  type BoundSettings,
  MULTIPLIER_ONE,
  maxRate,
  multiplierMax,
  type ReportedTier,
  tierOf,
} from './modifiers.ts'
import {
  findModel,
  type ModelPrice,
  type PriceVersion,
  ratesOf,
  type Tariff,
  type TierRates,
  tableFor,
} from './price-book.ts'
import { type Side, UNITS_OF } from './rate-keys.ts'

/** The most tokens of all inputs of one request for embeddings together; each input has to fit the window. */
const EMBEDDED_TOKENS_MAX = 300_000

/**
 * One byte of audio is taken to last at most this long. That is 0.8 kbit/s, below the lowest setting of speech
 * codecs; a file of coded silence can last longer, and is then booked in full as an overrun.
 */
const AUDIO_MS_PER_BYTE = 10

/** The largest cap that a key can have. A bound beyond it limits nothing, and would not fit the columns for money. */
const BOUND_NANOS_MAX = 1_000_000_000n * 1_000_000_000n

/**
 * The most that a request can cost: all it sends at the dearest rate for input that it can lead to, all it may get
 * at the dearest rate for output, for every model that may answer. The bound is never below what `rate` makes of any
 * usage that fits the request, and some such usage reaches it.
 */
export function boundOf(
  request: BoundRequest,
  version: PriceVersion,
  settings: BoundSettings,
  discount: Discount = NO_DISCOUNT,
): Bound {
  const { model: asked, fallbacks, tools } = request
  if (asked === null) return unbounded('the request names no model')
  const attempts = [{ model: asked, maxOutputTokens: request.maxOutputTokens }, ...fallbacks]
  const steps = 1 + (tools.usesMax ?? 0)
  const works: Work[] = []
  for (const attempt of attempts) {
    const model = findModel(version, attempt.model)
    if (model === null) return { kind: 'unpriced', model: attempt.model }
    works.push(workOfAttempt(model, attempt, steps, request))
  }
  for (const advisor of tools.advisors) {
    const model = findModel(version, advisor.model)
    if (model === null) return { kind: 'unpriced', model: advisor.model }
    works.push(workOfAdvisor(model, advisor, attempts.length, request))
  }
  if (tools.imageModel !== null) {
    if (findModel(version, tools.imageModel) === null) return { kind: 'unpriced', model: tools.imageModel }
    return unbounded('nothing limits how much the image tool draws')
  }
  if (tools.usesMax === null) return unbounded('nothing limits how often tools are used')
  const totals = new Totals()
  for (const work of works) {
    const { model } = work
    const amount = tokensAmount(work, request, settings)
    const fees = work.paysFees ? feesAmount(model, tools) : 0n
    if (typeof amount === 'string') return unbounded(amount)
    if (typeof fees === 'string') return unbounded(fees)
    const payable = payableFor(discount, model.id)
    totals.add(amount, multiplierMax(model.factors, request, settings), payable)
    if (fees !== 0n) totals.add(fees, MULTIPLIER_ONE, payable)
  }
  const { listNanos, costNanos } = totals.raised()
  if (listNanos > BOUND_NANOS_MAX) return unbounded('the limits are beyond any cap')
  return { kind: 'bound', listNanos, costNanos }
}

function unbounded(reason: string): Bound {
  return { kind: 'unbounded', reason }
}

/** The tokens that a model reads and writes at a time, and how often. */
interface Work {
  readonly model: ModelPrice
  readonly context: number | null
  readonly contexts: number
  readonly output: number | null
  readonly answers: number
  readonly compactions: number
  /** The tools of the request are paid for beside the tokens. */
  readonly paysFees: boolean
}

/** The work of a model that answers the request, tools and all. */
function workOfAttempt(
  model: ModelPrice,
  { maxOutputTokens }: Fallback,
  steps: number,
  request: BoundRequest,
): Work {
  const context = inputLimit(model, request)
  const output = outputTokensMax(model, maxOutputTokens, request.predictedTokensMax)
  const answers = SURFACES[request.surface].pricing.limitsEachStep ? request.n * steps : request.n
  const compactions = mayCompact(request.compactsAbove, context, output) ? steps : 0
  return { model, context, contexts: steps, output, answers, compactions, paysFees: true }
}

/** The work of a model that a tool asks, and that reads all that the asking model reads. */
function workOfAdvisor(
  model: ModelPrice,
  { maxOutputTokens, usesMax }: Advisor,
  attempts: number,
  request: BoundRequest,
): Work {
  const context = inputLimit(model, request)
  const output = outputTokensMax(model, maxOutputTokens, request.predictedTokensMax)
  const times = usesMax * attempts
  return { model, context, contexts: times, output, answers: times, compactions: 0, paysFees: false }
}

/** The cost of the tokens, or why there is no limit. */
function tokensAmount(work: Work, request: BoundRequest, settings: BoundSettings): bigint | string {
  const { model, context, output, compactions } = work
  const readings = work.contexts + compactions
  // The prompts of several passes of one model may be reported, and so rated, as one prompt.
  const prompt = (context ?? Number.MAX_SAFE_INTEGER) * readings * (1 + request.fallbacks.length)
  const nanos = dearestFor(model, request, settings, prompt)
  let sum = 0n
  if (nanos.duration > 0n) {
    const milliseconds = BigInt(request.audioMsMax ?? request.bodyBytes * AUDIO_MS_PER_BYTE)
    sum += plainAmountOf('audio_input_milliseconds', milliseconds, nanos.duration)
  }
  if (nanos.input > 0n) {
    if (context === null) return `no context window is known for ${model.id}`
    sum += plainAmountOf('input_tokens', BigInt(context) * BigInt(readings), nanos.input)
  }
  if (nanos.output > 0n) {
    // The length of a summary is limited by the model: the limit in the request is that of the answer.
    const summary = compactions === 0 ? 0 : (model.maxOutputTokens ?? model.contextWindowTokens)
    if (output === null || summary === null) return `no output limit is known for ${model.id}`
    const tokens = BigInt(output) * BigInt(work.answers) + BigInt(summary) * BigInt(compactions)
    sum += plainAmountOf('output_tokens', tokens, nanos.output)
  }
  return sum
}

/** The most tokens of all prompts of one request together; null where that is not known. */
export function inputTokensMax(model: ModelPrice, endpoint: string, prompts: number): number | null {
  const { contextWindowTokens: window } = model
  if (endpoint === '/v1/embeddings') return Math.max(EMBEDDED_TOKENS_MAX, window ?? 0)
  return window === null ? null : window * prompts
}

/** No token is shorter than a byte, so the body's bytes bound its tokens; nothing passes the context window. */
function inputLimit(model: ModelPrice, request: BoundRequest): number | null {
  const most = inputTokensMax(model, request.endpoint, request.prompts)
  if (request.refersElsewhere || (request.mayReferToAudio && hearsAudio(model))) return most
  const sent = request.bodyBytes + request.tools.promptTokens
  return Math.min(sent, most ?? sent)
}

function hearsAudio({ rates }: ModelPrice): boolean {
  return rates.standard.short.has('audio_input_tokens')
}

/** A stated limit beyond the window is refused upstream or cut to it; the output of a model has to fit its window. */
export function outputTokensMax(
  model: ModelPrice,
  stated: number | null,
  predictedTokensMax: number,
): number | null {
  const { contextWindowTokens, maxOutputTokens } = model
  const limit = stated ?? maxOutputTokens ?? contextWindowTokens
  if (limit === null) return null
  const room = Math.max(contextWindowTokens ?? 0, maxOutputTokens ?? 0)
  const most = limit + predictedTokensMax
  return room === 0 ? most : Math.min(most, room)
}

function mayCompact(above: number | null, context: number | null, output: number | null): boolean {
  return above !== null && (context ?? Infinity) + (output ?? Infinity) >= above
}

/** The sides of tokens and of audio by its length; the cost of a video is known before, and needs no bound. */
type PricedSide = Exclude<Side, 'tool' | 'video'>

type Dearest = Readonly<Record<PricedSide, bigint>>

/**
 * The dearest rates of all sets the call may be rated with: the tier asked for, and prompts up to the limit. Only rates
 * that a set has are looked at: the rate that stands in for a missing one is among them.
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
  const { tier, known } = tierFor(request, settings)
  const usual = dearestOf(standard, mayBeLong)
  if (tier === 'standard' && known) return usual
  const rates = ratesOf(table, tier) ?? standard
  const own = dearestOf(rates, mayBeLong)
  // A tier that we do not know may be another name of any tier that the model has.
  if (!known)
    return [...table.others.values()].reduce(
      (most, each) => dearestOfBoth(most, dearestOf(each, mayBeLong)),
      dearestOfBoth(own, usual),
    )
  // A tier that is dearer for its speed may be served, and reported, as standard. Calls at a cheaper tier are refused
  // rather than raised to standard, by the models that have it.
  return settings.batch === true || (tier === 'flex' && rates.listed) ? own : dearestOfBoth(own, usual)
}

function tierFor(request: BoundRequest, settings: BoundSettings): ReportedTier {
  if (settings.batch === true) return { tier: 'batch', known: true }
  const left = request.serviceTier === null || request.serviceTier === 'auto'
  const serviceTier =
    left && SURFACES[request.surface].pricing.hasProjectTier ? settings.defaultTier : request.serviceTier
  const speed = request.mayBeFast ? 'fast' : null
  const reported = tierOf(request.surface, { serviceTier, speed, batch: false })
  // A request outside of a batch that asks for the batch tier does not get its price.
  return reported.tier === 'batch' ? { tier: 'standard', known: reported.known } : reported
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
  const most = (side: PricedSide): bigint =>
    UNITS_OF[side].reduce((sofar, unit) => maxRate(sofar, tariff.get(unit) ?? 0n), 0n)
  return { input: most('input'), output: most('output'), duration: most('duration') }
}

function dearestOfBoth(a: Dearest, b: Dearest): Dearest {
  return {
    input: maxRate(a.input, b.input),
    output: maxRate(a.output, b.output),
    duration: maxRate(a.duration, b.duration),
  }
}

/** The fees of tools, which are paid by the call and not by the token. */
function feesAmount(model: ModelPrice, tools: RequestTools): bigint | string {
  if (tools.webSearchesMax === 0 && tools.fileSearchesMax === 0 && tools.containers === 0) return 0n
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
  return sum + plainAmountOf('containers', BigInt(tools.containers), model.tools.get('containers') ?? 0n)
}
