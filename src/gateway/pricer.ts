import { limits } from '../kernel/limits.ts'
import { addBounds, type Bound, NO_COST } from '../kernel/money.ts'
import type { Unit, Usage } from '../kernel/usage.ts'
import type { NamedModels, ObjectKind, Surface } from '../kernel/vocabulary.ts'
import type { AccountTerms, BoundedFile } from '../ledger/account.ts'
import type { Hold, Unratable } from '../ledger/call.ts'
import { limitHold } from '../ledger/decide-admission.ts'
import type { RequestFacts } from '../metering/request-facts.ts'
import { type Discount, flatDiscount } from '../pricing/amounts.ts'
import { boundOf, inputTokensMax, outputTokensMax } from '../pricing/bound.ts'
import type { RatingContext } from '../pricing/modifiers.ts'
import {
  findModel,
  type PriceBook,
  type PriceVersion,
  suggestModel,
  versionAt,
} from '../pricing/price-book.ts'
import { mostExpensiveNamed, resolve } from '../pricing/priced-parts.ts'
import { rateFigures, writeRating } from '../pricing/rate.ts'
import type { BoundEntry } from '../providers/batch-requests.ts'
import { DEFERRED_KINDS } from '../providers/deferred-kinds.ts'
import type { Endpoint, UsageReader } from '../providers/endpoint.ts'
import { namedModels } from '../providers/named-models.ts'
import { addToolCalls } from '../providers/reading.ts'
import { type SocketTurn, TURN_LIMITS, turnRequest } from '../providers/realtime-events.ts'
import {
  NOTHING_UNSEEN,
  type RequestLimits,
  readLimits,
  type UnseenWork,
  unseenWork,
  withSearch,
} from '../providers/request-limits.ts'
import { isGiven, modelAsked } from '../providers/request-members.ts'
import { SURFACES } from '../providers/surfaces.ts'

/** Decided before admission: bound, models and pricing. Later price changes do not affect the call. */
export interface CallPlan {
  readonly modelAsked: string | null
  /** The endpoint's default model, if the request names none and refers to no stored object that could name one. */
  readonly modelDefault: string | null
  readonly models: NamedModels
  readonly hold: Hold
  readonly priceVersion: string
  /** As JSON. */
  readonly rating: string
  readonly unratable: Unratable | null
  readonly unpricedModel: string | null
  /** The request member that makes the call unmeterable, if one does. */
  readonly unmeteredMember: string | null
  /** Whether the reply can cost anything; free endpoints need no meter. */
  readonly metered: boolean
  /** Reads the usage in the reply; null if the reply is free or its events are read elsewhere. */
  readonly reader: UsageReader | null
  /** Reads the cost of an earlier call, if the reply shows an object that the earlier call created. */
  readonly shows: UsageReader | null
  /** The kind of upstream object that states the cost later; null if this reply states it. */
  readonly makes: ObjectKind | null
  /** Whether missing usage is estimated. If not, a reply without usage is free. */
  readonly counts: boolean
  readonly answers: number
  /** The requested tier and speed, for a call that is cut before upstream states them. */
  readonly asked: { readonly serviceTier: string | null; readonly speed: string | null }
  /** Work that is not visible in the delivered bytes. Computed on demand, because few calls are cut. */
  unseen(): UnseenWork
  /** Input and output tokens of the hold, by the limits of the served model, else of the requested one. */
  tokensHeld(modelServed: string | null): TokensHeld
  withFees(usage: Usage): Usage
  /** `terms`: the account's own discount, if it has one. */
  rate(usage: Usage, terms?: AccountTerms | null): RatedCall
}

export type RatedCall = Omit<ReturnType<typeof rateFigures>, 'kind' | 'modelPriced'>

interface TokensHeld {
  readonly input: number | null
  readonly output: number | null
  readonly contextWindow: number | null
}

export interface PricerSettings {
  readonly discount: Discount
  readonly unpriced: 'auto' | 'refuse' | 'pass'
  readonly chatDefaultTier: string | null
  readonly chatRegional: boolean
  /** Whether upstream is polled for objects whose cost comes later. Without polling it stays unknown. */
  readonly polls: boolean
}

interface PricedRequest {
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

export type Pricer = ReturnType<typeof createPricer>

export function createPricer(firstBook: PriceBook, settings: PricerSettings) {
  let book = firstBook

  /** `stated`: limits that are given, and not read from the request. */
  function begin(call: PricedRequest, stated: RequestLimits | null, batch = false): PlanParts {
    const version = versionAt(book, call.atMs)
    const limits = stated ?? limitsOf(call, version)
    const tierAsked = tierFor(call.surface, limits, settings)
    const context = {
      surface: call.surface,
      modelAsked: call.modelAsked,
      endpoint: call.endpoint?.template ?? recorded(call.path),
      regional: call.surface === 'chat' && settings.chatRegional,
      batch,
      imageToolModel: recorded(limits.tools.imageModel),
      tierAsked: recorded(tierAsked),
    }
    const modelDefault = defaultModel(call, limits, version)
    return { call, limits, tierAsked, modelDefault, version, context, settings }
  }

  return {
    /** Plans further calls with this price book. Calls in flight keep the book that they were planned with. */
    use(next: PriceBook): void {
      book = next
    },
    closestModel(name: string, atMs: number): string | null {
      return suggestModel(versionAt(book, atMs).names.keys(), name)
    },
    /** The most that a request can cost inside a batch. */
    boundEntry(...[endpoint, facts, atMs]: [...Parameters<BoundEntry>, atMs: number]): Bound {
      if (endpoint.billing === 'free') return NO_COST
      if (endpoint.billing !== 'metered') return { kind: 'unbounded', reason: 'it is not metered' }
      const { surface, template: path } = endpoint
      const entry = { surface, method: 'POST', path, endpoint, facts, bodyBytes: facts.bytes, atMs }
      return boundFor(begin({ ...entry, modelAsked: modelAsked(facts) }, null, true))
    },
    /** `plan` for a socket turn, which has no HTTP request. */
    planTurn(turn: SocketTurn): CallPlan {
      const parts = begin({ ...turnRequest(turn), modelAsked: recorded(turn.model) }, TURN_LIMITS)
      const response = boundFor(parts)
      const isAlone = turn.kind === 'transcription' || response.kind !== 'bound'
      const bound = isAlone ? response : addBounds(response, boundTranscript(parts))
      const models = { names: turn.model === null ? [] : [turn.model], unknown: null, batchFile: null }
      return { ...meteredPlan(parts, bound), modelAsked: turn.model, models, reader: null }
    },
    plan(call: PricedRequest): CallPlan {
      const { endpoint } = call
      if (endpoint?.billing === 'metered') {
        const parts = begin(call, null)
        return meteredPlan(parts, boundFor(parts))
      }
      const parts = begin(call, TURN_LIMITS)
      const makes = endpoint?.makes
      if (settings.polls && (makes === 'message_batch' || makes === 'batch')) return batchPlan(parts, makes)
      return unmeteredPlan(parts, isFree(call) ? null : refusal('endpoint_not_metered', settings))
    },
  }
}

interface PlanParts {
  readonly call: PricedRequest
  readonly limits: RequestLimits
  readonly tierAsked: string | null
  /** The model that upstream uses if the request names none. */
  readonly modelDefault: string | null
  readonly version: PriceVersion
  readonly context: RatingContext
  readonly settings: PricerSettings
}

function requestPlan(
  { call, version, settings }: PlanParts,
  context: RatingContext,
  modelDefault: string | null,
) {
  const { modelAsked, endpoint, path, facts, query } = call
  return {
    modelAsked,
    modelDefault,
    models: namedModels(endpoint, path, facts, query, modelDefault),
    priceVersion: version.id,
    rating: writeRating(context, settings.discount),
    shows: endpoint?.shows ?? null,
  }
}

const NOT_RATED = {
  unmeteredMember: null,
  counts: false,
  answers: 1,
  asked: { serviceTier: null, speed: null },
  unseen: () => NOTHING_UNSEEN,
  tokensHeld: () => ({ input: null, output: null, contextWindow: null }),
  withFees: (usage: Usage) => usage,
} as const

const NO_FIGURES = { costNanos: 0n, listNanos: 0n, pricedAsRequested: false }

function unmeteredPlan(parts: PlanParts, unratable: Unratable | null): CallPlan {
  return {
    ...requestPlan(parts, parts.context, null),
    ...NOT_RATED,
    // A call without a price is not free: even if it may pass, it is refused when the budget is exhausted.
    hold: unratable === null ? { kind: 'none' } : NO_HOLD,
    unratable,
    ...{ unpricedModel: null, metered: false, reader: null, makes: null },
    rate: () => ({ ...NO_FIGURES, unpriced: unratable !== null }),
  }
}

function batchPlan(parts: PlanParts, makes: ObjectKind): CallPlan {
  const { endpoint, facts, batchFile, surface } = parts.call
  const inFile = endpoint?.model === 'batch_file'
  const bound = (inFile ? batchFile?.bound : facts.items.bound) ?? null
  const named = (inFile ? batchFile?.models : facts.items.models) ?? []
  const [template = ''] = SURFACES[surface].batchEndpoints
  const stated = facts.body['endpoint']
  const lines = {
    ...parts.context,
    endpoint: inFile ? recorded(typeof stated === 'string' ? stated : template) : template,
    modelAsked: mostExpensiveNamed(named, parts.context, parts.version),
    batch: true,
  }
  const isUnpriced = bound?.kind === 'unpriced'
  const unpriced = isUnpriced ? refusal('model_not_priced', parts.settings) : null
  return {
    ...requestPlan(parts, lines, null),
    ...NOT_RATED,
    hold: bound === null || isUnpriced ? NO_HOLD : holdOf(bound),
    unratable: bound === null ? UNKNOWN_BATCH : unpriced,
    unpricedModel: isUnpriced ? bound.model : null,
    ...{ metered: true, reader: DEFERRED_KINDS[makes].reader, makes },
    rate: () => ({ ...NO_FIGURES, unpriced: isUnpriced }),
  }
}

function meteredPlan(parts: PlanParts, bound: Bound): CallPlan {
  const { call, limits, modelDefault, version, context, settings } = parts
  const usage = call.endpoint?.billing === 'metered' ? call.endpoint.usage : null
  const model = call.modelAsked ?? modelDefault
  // Other endpoints ignore `background`.
  const isBackground = limits.background && usage === 'responses'
  const later = call.endpoint?.makes ?? (isBackground ? 'response' : null)
  // Without polling, the cost of background work would never be known.
  const isLost = later !== null && !settings.polls
  const makes = isLost ? null : later
  const isUnpriced = bound.kind === 'unpriced'
  const reason = isLost ? 'endpoint_not_metered' : isUnpriced ? 'model_not_priced' : null
  return {
    ...requestPlan(parts, context, modelDefault),
    hold: isUnpriced ? NO_HOLD : holdOf(bound),
    unratable: reason === null ? null : refusal(reason, settings),
    unpricedModel: isUnpriced && !isLost ? bound.model : null,
    unmeteredMember: isLost && isBackground ? 'background' : null,
    metered: true,
    reader: makes === null ? usage : DEFERRED_KINDS[makes].reader,
    makes,
    counts: later === null,
    answers: limits.n,
    asked: { serviceTier: context.tierAsked ?? null, speed: limits.speed },
    unseen: () => unseenWork(usage, call.facts, limits, model),
    tokensHeld: (served) => tokensHeld(served ?? model, parts),
    withFees: (used) => withFees(used, parts),
    rate(used, terms) {
      const own = terms?.discountBillionths ?? null
      return rateFigures(used, context, version, own === null ? settings.discount : flatDiscount(own))
    },
  }
}

/** A path that is not byte for byte in our table is free only if the method reads. */
function isFree({ endpoint, method }: PricedRequest): boolean {
  if (endpoint !== null) return endpoint.billing === 'free'
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS'
}

function refusal(reason: Unratable['reason'], { unpriced }: PricerSettings): Unratable {
  if (unpriced === 'pass') return { reason, refuse: 'never' }
  return { reason, refuse: unpriced === 'refuse' ? 'always' : 'limited' }
}

const NO_HOLD: Hold = { kind: 'bound', nanos: 0n, listNanos: 0n }

/** A batch without a known bound is refused only to limited keys, because its cost is stated later. */
const UNKNOWN_BATCH: Unratable = { reason: 'batch_file_unknown', refuse: 'limited' }

function holdOf(bound: Exclude<Bound, { kind: 'unpriced' }>): Hold {
  if (bound.kind === 'unbounded') {
    const { othersNanos } = bound
    return { kind: 'unbounded', ...(othersNanos === undefined ? {} : { neededNanos: othersNanos }) }
  }
  const { costNanos, listNanos, largestNanos } = bound
  return {
    ...{ kind: 'bound', nanos: limitHold(costNanos), listNanos: limitHold(listNanos) },
    ...(largestNanos === undefined ? {} : { neededNanos: costNanos - largestNanos }),
  }
}


/** The limits of a request. Some chat models search the web for every answer, which costs a search. */
function limitsOf({ endpoint, facts, modelAsked }: PricedRequest, version: PriceVersion): RequestLimits {
  if (endpoint === null) return TURN_LIMITS
  const limits = readLimits(endpoint, facts)
  if (modelAsked === null || endpoint.template !== '/v1/chat/completions') return limits
  return findModel(version, modelAsked)?.searchesEachCall === true ? withSearch(limits) : limits
}

function boundFor(
  { call, limits, tierAsked: serviceTier, modelDefault, version, context, settings }: PlanParts,
  model = call.modelAsked ?? modelDefault,
): Bound {
  const { surface, bodyBytes } = call
  const { endpoint, regional, batch } = context
  const request = { ...limits, surface, endpoint, regional, batch, model, bodyBytes, serviceTier }
  return boundOf(request, version, settings.discount)
}

/** Upper bound for transcribing a session's input, with the most expensive model: the session may choose any. */
function boundTranscript(parts: PlanParts): Bound {
  let most: Bound = NO_COST
  for (const { id, mode } of parts.version.models) {
    if (mode !== 'audio_transcription') continue
    const bound = boundFor(parts, id)
    if (bound.kind === 'bound' && most.kind === 'bound' && bound.listNanos > most.listNanos) most = bound
  }
  return most
}

function tokensHeld(name: string | null, { call, limits, version }: PlanParts): TokensHeld {
  const { endpoint, bodyBytes } = call
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

/** The model that upstream uses if the request names none. Null if it names one, even an unreadable one. */
function defaultModel(call: PricedRequest, { stored }: RequestLimits, version: PriceVersion): string | null {
  if (call.modelAsked !== null || call.endpoint === null || stored) return null
  if (isGiven(call.facts.body['model'])) return null
  return version.defaultModels.get(call.endpoint.template) ?? null
}

/** A request for `auto`, or for no tier, leaves the tier to the settings of the upstream project. */
function tierFor(
  surface: Surface,
  { serviceTier }: RequestLimits,
  { chatDefaultTier }: PricerSettings,
): string | null {
  const isLeft = serviceTier === null || serviceTier === 'auto'
  return isLeft && SURFACES[surface].pricing.hasProjectTier ? chatDefaultTier : serviceTier
}

/** Truncates a model name for the stored rating. No priced name is longer than the limit. */
function recorded<T extends string | null>(name: T): T
function recorded(name: string | null): string | null {
  return name === null ? null : name.slice(0, limits.recordedCharsMax)
}

/** Adds the fees that follow from the request or the model, and removes fees for free work. */
function withFees(usage: Usage, { call, context, version }: PlanParts): Usage {
  const fees = SURFACES[call.surface].fees(call.facts)
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
