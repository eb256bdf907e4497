import { limits as kernelLimits } from '../kernel/limits.ts'
import { addBounds, type Bound, type Nanos, NO_COST } from '../kernel/money.ts'
import type { ObjectKind, Surface } from '../kernel/surface.ts'
import type { Unit, Usage } from '../kernel/usage.ts'
import type { Hold, Unratable } from '../ledger/call.ts'
import { HOLD_NANOS_MAX } from '../ledger/decide-admission.ts'
import type { RequestFacts } from '../metering/request-facts.ts'
import type { Discount } from '../pricing/amounts.ts'
import { boundOf, inputTokensMax, outputTokensMax } from '../pricing/bound.ts'
import type { RatingContext } from '../pricing/modifiers.ts'
import { findModel, type PriceBook, type PriceVersion, versionAt } from '../pricing/price-book.ts'
import { dearestNamed, resolve } from '../pricing/priced-parts.ts'
import { rateFigures, writeRating } from '../pricing/rate.ts'
import type { BoundEntry } from '../providers/batch-entries.ts'
import type { Endpoint } from '../providers/endpoint.ts'
import { type RequestLimits, readLimits, withSearch } from '../providers/request-limits.ts'
import { isGiven, modelAsked } from '../providers/request-members.ts'
import { type SocketTurn, TURN_LIMITS, turnRequest } from '../providers/socket-turn.ts'
import type { RequestFees } from '../providers/surface.ts'
import { SURFACES } from '../providers/surfaces.ts'
import { NOTHING_UNSEEN, type UnseenWork, unseenWork } from '../providers/unseen-work.ts'
import { addToolCalls } from '../providers/usage/reading.ts'

/** The facts about a request that decide what its call may cost. */
export interface PricedRequest {
  readonly surface: Surface
  readonly method: string
  readonly path: string
  readonly endpoint: Endpoint | null
  readonly facts: RequestFacts
  readonly modelAsked: string | null
  /** The length of the decoded body. */
  readonly bodyBytes: number
  /** Left out where the call is made from no file that was there before. */
  readonly madeFrom?: MadeFrom
  readonly atMs: number
}

/** The file, uploaded before the call, that a batch is made of: the hold goes by it. */
export interface MadeFrom {
  /** The most that the file of a batch may cost; null where that is not known. */
  readonly fileBound: Bound | null
  /** The models that the file names, where its bound is known. */
  readonly fileModels?: readonly string[]
}

/** How a call will be rated, decided before it goes and kept with it: a price that changes meanwhile changes nothing. */
export interface BillPlan {
  readonly hold: Hold
  readonly priceVersion: string
  /** All that rating needs besides the usage, as JSON. */
  readonly rating: string
  readonly unratable: Unratable | null
  /** The model that has no price, where that is why the call cannot be rated. */
  readonly unpricedModel: string | null
  /** The member of the request for which the call cannot be metered, where one is the reason. */
  readonly unmeteredMember: string | null
  /** Whether upstream's answer costs anything; free endpoints need no meter. */
  readonly metered: boolean
  /** The kind of object that the call makes upstream, whose cost is told later; null where this reply tells the cost. */
  readonly makes: ObjectKind | null
  /** Whether usage that upstream does not state is counted. Else a reply that states no usage has no cost. */
  readonly counts: boolean
  /** Work that the reply will not show as it goes. Computed on demand: few calls are cut. */
  unseen(): UnseenWork
  /** The two sides of the hold in tokens, by the limits of the model that served, or else was asked for. */
  tokensHeld(modelServed: string | null): TokensHeld
  /** How many answers the request asks for. */
  readonly answers: number
  /** The model that the call goes by because the request names none, and nothing stored may bring another. */
  readonly modelDefault: string | null
  /** The tier and speed that the request asks for: upstream may not have stated them when the call is cut. */
  readonly asked: { readonly serviceTier: string | null; readonly speed: string | null }
  /** The usage of an answered call with the fees that its reply does not state. */
  withFees(usage: Usage): Usage
  rate(usage: Usage): RatedCall
}

/** The tokens of a hold; null where nothing limits them. */
export interface TokensHeld {
  readonly input: number | null
  readonly output: number | null
  /** No model reads more than its context window. */
  readonly contextWindow: number | null
}

export interface RatedCall {
  readonly costNanos: Nanos
  readonly listNanos: Nanos
  readonly unpriced: boolean
  readonly pricedAsRequested: boolean
}

export interface PricerSettings {
  readonly discount: Discount
  readonly unpriced: 'auto' | 'refuse' | 'pass'
  /** The tier that the upstream project gives requests which name none. */
  readonly chatDefaultTier: string | null
  /** The Chat upstream processes in one region only. */
  readonly chatRegional: boolean
  /** Whether upstream is polled for the objects that calls have made there. Else the cost of these calls is never known. */
  readonly polls: boolean
}

/** Knows the prices in force. */
export interface Pricer {
  plan(call: PricedRequest): BillPlan
  /** The most that a request can cost inside a batch. */
  boundEntry(...entry: [...Parameters<BoundEntry>, atMs: number]): Bound
  /** The same as `plan` for a turn of a socket, which no request describes. */
  planTurn(turn: SocketTurn): BillPlan
  /** Calls planned from now on are rated by this book; those under way keep the version they were planned with. */
  use(book: PriceBook): void
}

/** Decides before a call goes what it may cost and how it will be rated. */
export function createPricer(firstBook: PriceBook, settings: PricerSettings): Pricer {
  let book = firstBook
  return {
    use(next) {
      book = next
    },
    boundEntry(endpoint, facts, atMs) {
      if (endpoint.billing === 'free') return NO_COST
      if (endpoint.billing !== 'metered') return { kind: 'unbounded', reason: 'it is not metered' }
      const { surface, template: path } = endpoint
      const entry = { surface, method: 'POST', path, endpoint, facts, bodyBytes: facts.bytes, atMs }
      const call = { ...entry, modelAsked: modelAsked(facts) }
      const version = versionAt(book, atMs)
      const context = { ...contextOf(call, settings), batch: true }
      return boundFor(call, limitsOf(endpoint, call, version), context, version, settings)
    },
    planTurn(turn) {
      const version = versionAt(book, turn.atMs)
      const call = { ...turnRequest(turn), modelAsked: recorded(turn.model) }
      const context = contextOf(call, settings)
      const response = boundFor(call, TURN_LIMITS, context, version, settings)
      const bound =
        turn.kind === 'transcription' || response.kind !== 'bound'
          ? response
          : addBounds(response, boundTranscript(call, context, version, settings))
      return meteredPlan({ call, version, context, settings }, TURN_LIMITS, bound)
    },
    plan(call) {
      const version = versionAt(book, call.atMs)
      const context = contextOf(call, settings)
      const { endpoint } = call
      const parts = { call, version, context, settings }
      if (endpoint?.billing === 'metered') {
        const limits = limitsOf(endpoint, call, version)
        const imageToolModel = recorded(limits.tools.imageModel)
        const tierAsked = recorded(tierFor(call.surface, limits, settings))
        const bound = boundFor(call, limits, context, version, settings)
        return meteredPlan({ ...parts, context: { ...context, imageToolModel, tierAsked } }, limits, bound)
      }
      const makes = endpoint?.makes
      if (settings.polls && (makes === 'message_batch' || makes === 'batch')) return batchPlan(parts, makes)
      return unmeteredPlan(parts, isFree(call) ? null : refusal('endpoint_not_metered', settings))
    },
  }
}

interface PlanParts {
  readonly call: PricedRequest
  readonly version: PriceVersion
  readonly context: RatingContext
  readonly settings: PricerSettings
}

/** The plan of a call that costs nothing, or whose cost no reply tells. */
function unmeteredPlan({ version, context, settings }: PlanParts, unratable: Unratable | null): BillPlan {
  return {
    // A call that cannot be rated is no free call: where it is let pass, a spent cap still stops it.
    hold: unratable === null ? { kind: 'none' } : NO_HOLD,
    priceVersion: version.id,
    rating: writeRating(context, settings.discount),
    unratable,
    unpricedModel: null,
    unmeteredMember: null,
    metered: false,
    makes: null,
    counts: false,
    unseen: () => NOTHING_UNSEEN,
    tokensHeld: () => ({ input: null, output: null, contextWindow: null }),
    answers: 1,
    modelDefault: null,
    asked: { serviceTier: null, speed: null },
    withFees: (usage) => usage,
    rate: () => ({ costNanos: 0n, listNanos: 0n, unpriced: unratable !== null, pricedAsRequested: false }),
  }
}

/** The plan of a batch, each request of which is rated by itself when done. */
function batchPlan({ call, version, context, settings }: PlanParts, makes: ObjectKind): BillPlan {
  const { endpoint, facts, madeFrom, surface } = call
  const inFile = endpoint?.model === 'batch_file'
  const bound = (inFile ? madeFrom?.fileBound : facts.items.bound) ?? null
  const named = (inFile ? madeFrom?.fileModels : facts.items.models) ?? []
  const [template = ''] = SURFACES[surface].batchEndpoints
  const stated = facts.body['endpoint']
  const lines = {
    ...context,
    endpoint: inFile ? recorded(typeof stated === 'string' ? stated : template) : template,
    modelAsked: dearestNamed(named, context, version),
    batch: true,
  }
  const isUnpriced = bound?.kind === 'unpriced'
  return {
    hold: bound === null || isUnpriced ? NO_HOLD : holdOf(bound),
    priceVersion: version.id,
    rating: writeRating(lines, settings.discount),
    unratable: bound === null ? UNKNOWN_BATCH : isUnpriced ? refusal('model_not_priced', settings) : null,
    unpricedModel: isUnpriced ? bound.model : null,
    unmeteredMember: null,
    metered: true,
    makes,
    counts: false,
    unseen: () => NOTHING_UNSEEN,
    tokensHeld: () => ({ input: null, output: null, contextWindow: null }),
    answers: 1,
    modelDefault: null,
    asked: { serviceTier: null, speed: null },
    withFees: (usage) => usage,
    rate: () => ({ costNanos: 0n, listNanos: 0n, unpriced: isUnpriced, pricedAsRequested: false }),
  }
}

function meteredPlan(
  { call, version, context, settings }: PlanParts,
  limits: RequestLimits,
  bound: Bound,
): BillPlan {
  const reader = call.endpoint?.billing === 'metered' ? call.endpoint.usage : null
  const modelDefault = defaultModel(call, limits, version)
  const model = call.modelAsked ?? modelDefault
  const fees = SURFACES[call.surface].fees(call.facts)
  // Other endpoints do nothing in the background, whatever a request says.
  const isBackground = limits.background && reader === 'responses'
  const later = call.endpoint?.makes ?? (isBackground ? 'response' : null)
  // The cost of work in the background is told only where upstream is polled for it.
  const isLost = later !== null && !settings.polls
  const isUnpriced = bound.kind === 'unpriced'
  const reason = isLost ? 'endpoint_not_metered' : isUnpriced ? 'model_not_priced' : null
  return {
    hold: isUnpriced ? NO_HOLD : holdOf(bound),
    priceVersion: version.id,
    rating: writeRating(context, settings.discount),
    unratable: reason === null ? null : refusal(reason, settings),
    unpricedModel: isUnpriced && !isLost ? bound.model : null,
    unmeteredMember: isLost && isBackground ? 'background' : null,
    metered: true,
    makes: isLost ? null : later,
    counts: later === null,
    unseen: () => unseenWork(reader, call.facts, limits, model),
    tokensHeld: (served) => tokensHeld(served ?? model, call, limits, version),
    answers: limits.n,
    modelDefault,
    asked: { serviceTier: context.tierAsked ?? null, speed: limits.speed },
    withFees: (usage) => settleFees(usage, fees, context, version),
    rate: (usage) => rateFigures(usage, context, version, settings.discount),
  }
}

/** Some models search the web for every answer they give to a chat. */
function limitsOf(
  endpoint: Endpoint,
  { facts, modelAsked }: PricedRequest,
  version: PriceVersion,
): RequestLimits {
  const limits = readLimits(endpoint, facts)
  if (modelAsked === null || endpoint.template !== '/v1/chat/completions') return limits
  return findModel(version, modelAsked)?.searchesEachCall === true ? withSearch(limits) : limits
}

/** An endpoint that is not byte for byte in our table cannot be known to be free, unless its method only reads. */
function isFree({ endpoint, method }: PricedRequest): boolean {
  if (endpoint !== null) return endpoint.billing === 'free'
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS'
}

function refusal(reason: Unratable['reason'], { unpriced }: PricerSettings): Unratable {
  if (unpriced === 'pass') return { reason, refuse: 'never' }
  return { reason, refuse: unpriced === 'refuse' ? 'always' : 'limited' }
}

function boundFor(
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
function boundTranscript(
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

const NO_HOLD: Hold = { kind: 'bound', nanos: 0n, listNanos: 0n }

/** The cost of a batch is told later, so that a batch of unknown cost is refused only to keys with limits. */
const UNKNOWN_BATCH: Unratable = { reason: 'batch_file_unknown', refuse: 'limited' }

function tokensHeld(
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
function defaultModel(call: PricedRequest, limits: RequestLimits, version: PriceVersion): string | null {
  if (call.modelAsked !== null || call.endpoint === null || limits.stored) return null
  if (isGiven(call.facts.body['model'])) return null
  return version.defaultModels.get(call.endpoint.template) ?? null
}

/** A request for `auto`, or for no tier, leaves the tier to the settings of the upstream project. */
function tierFor(
  surface: PricedRequest['surface'],
  { serviceTier }: RequestLimits,
  settings: PricerSettings,
): string | null {
  const left = serviceTier === null || serviceTier === 'auto'
  return left && SURFACES[surface].pricing.hasProjectTier ? settings.chatDefaultTier : serviceTier
}

function holdOf(bound: Exclude<Bound, { kind: 'unpriced' }>): Hold {
  if (bound.kind === 'unbounded') return { kind: 'unbounded' }
  const { costNanos, listNanos, largestNanos } = bound
  return {
    ...{ kind: 'bound', nanos: atMost(costNanos), listNanos: atMost(listNanos) },
    ...(largestNanos === undefined ? {} : { largestNanos }),
  }
}

function atMost(nanos: bigint): bigint {
  return nanos < HOLD_NANOS_MAX ? nanos : HOLD_NANOS_MAX
}

/** Cuts a name for the rating that is kept with a call. No name that has a price is longer than the limit. */
function recorded<T extends string | null>(name: T): T
function recorded(name: string | null): string | null {
  return name === null ? null : name.slice(0, kernelLimits.recordedCharsMax)
}

function contextOf(call: PricedRequest, settings: PricerSettings): RatingContext {
  return {
    surface: call.surface,
    modelAsked: call.modelAsked,
    endpoint: call.endpoint?.template ?? recorded(call.path),
    regional: call.surface === 'chat' && settings.chatRegional,
    batch: false,
    imageToolModel: null,
  }
}

/** The usage of an answered call with the fees that only its request or its model tells of, and without fees for free work. */
function settleFees(usage: Usage, fees: RequestFees, context: RatingContext, version: PriceVersion): Usage {
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
