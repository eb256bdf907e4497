import { limits } from '../kernel/limits.ts'
import { addBounds, type Bound, limitHold, NO_COST } from '../kernel/money.ts'
import type { Unit, Usage } from '../kernel/usage.ts'
import { type NamedModels, NO_MODELS, type ObjectKind, type Surface } from '../kernel/vocabulary.ts'
import type { AccountTerms, BoundedFile } from '../ledger/account.ts'
import type { Hold, Unratable } from '../ledger/call.ts'

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
import { mostExpensiveNamed, resolveModel } from '../pricing/priced-parts.ts'
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
  /** Reads the usage of an earlier call, if the reply may contain the object which that call created. */
  readonly objectReader: UsageReader | null
  /** The kind of upstream object that states the cost later; null if this reply states it. */
  readonly deferredKind: ObjectKind | null
  /** Whether missing usage is estimated. If not, a reply without usage is free. */
  readonly estimatesUsage: boolean
  readonly answers: number
  /** The requested tier and speed, for a call that is cut before upstream states them. */
  readonly requested: { readonly serviceTier: string | null; readonly speed: string | null }
  /** Work that the delivered bytes do not show. Computed on demand, because few calls are cut. */
  unseen(): UnseenWork
  /** Input and output tokens of the hold, by the limits of the served model, else of the requested one. */
  holdTokens(modelServed: string | null): ReturnType<typeof holdTokens>
  withFees(usage: Usage): Usage
  /** `terms`: the account's own discount, if it has one. */
  rate(usage: Usage, terms?: AccountTerms | null): RatedCall
}

export type RatedCall = Omit<ReturnType<typeof rateFigures>, 'kind'>

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

  /** `stated`: the limits, if they are not read from the request. */
  function planInputs(call: PricedRequest, stated: RequestLimits | null, batch = false): PlanInputs {
    const version = versionAt(book, call.atMs)
    const limits = stated ?? limitsOf(call, version)
    const { serviceTier } = limits
    // A request for `auto`, or for no tier, leaves the tier to the settings of the upstream project.
    const isOpen = serviceTier === null || serviceTier === 'auto'
    const { hasProjectTier } = SURFACES[call.surface].pricing
    const tierAsked = isOpen && hasProjectTier ? settings.chatDefaultTier : serviceTier
    const context = {
      surface: call.surface,
      modelAsked: call.modelAsked,
      endpoint: call.endpoint?.template ?? truncated(call.path),
      regional: call.surface === 'chat' && settings.chatRegional,
      batch,
      imageToolModel: truncated(limits.tools.imageModel),
      tierAsked: truncated(tierAsked),
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
    /** The maximum cost of a request inside a batch. */
    boundEntry(...[endpoint, facts, atMs]: [...Parameters<BoundEntry>, atMs: number]): Bound {
      if (endpoint.billing === 'free') return NO_COST
      if (endpoint.billing !== 'metered') return { kind: 'unbounded', reason: 'it is not metered' }
      const { surface, template: path } = endpoint
      const entry = { surface, method: 'POST', path, endpoint, facts, bodyBytes: facts.bytes, atMs }
      return boundFor(planInputs({ ...entry, modelAsked: modelAsked(facts) }, null, true))
    },
    /** `plan` for a socket turn, which has no HTTP request. */
    planTurn(turn: SocketTurn): CallPlan {
      const inputs = planInputs({ ...turnRequest(turn), modelAsked: truncated(turn.model) }, TURN_LIMITS)
      const response = boundFor(inputs)
      const isAlone = turn.kind === 'transcription' || response.kind !== 'bound'
      const bound = isAlone ? response : addBounds(response, boundTranscript(inputs))
      const models = turn.model === null ? NO_MODELS : { ...NO_MODELS, names: [turn.model] }
      return { ...meteredPlan(inputs, bound), modelAsked: turn.model, models, reader: null }
    },
    plan(call: PricedRequest): CallPlan {
      const { endpoint } = call
      if (endpoint?.billing === 'metered') {
        const inputs = planInputs(call, null)
        return meteredPlan(inputs, boundFor(inputs))
      }
      const inputs = planInputs(call, TURN_LIMITS)
      const kind = endpoint?.makes
      if (settings.polls && (kind === 'message_batch' || kind === 'batch')) return batchPlan(inputs, kind)
      return unmeteredPlan(inputs, isFree(call) ? null : unratable('endpoint_not_metered', settings))
    },
  }
}

interface PlanInputs {
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
  { call, version, settings }: PlanInputs,
  context: RatingContext,
  modelDefault: string | null,
  hold: Hold,
) {
  const { modelAsked, endpoint, path, facts, query } = call
  const recordedContext = hold.kind === 'unbounded' ? { ...context, isUnbounded: true as const } : context
  return {
    hold,
    modelAsked,
    modelDefault,
    models: namedModels(endpoint, path, facts, query, modelDefault),
    priceVersion: version.id,
    rating: writeRating(recordedContext, settings.discount),
    objectReader: endpoint?.shows ?? null,
  }
}

const NOT_RATED = {
  unmeteredMember: null,
  estimatesUsage: false,
  answers: 1,
  requested: { serviceTier: null, speed: null },
  unseen: () => NOTHING_UNSEEN,
  holdTokens: () => ({ input: null, output: null, contextWindow: null }),
  withFees: (usage: Usage) => usage,
} as const

const NO_FIGURES = { costNanos: 0n, listNanos: 0n, pricedAsRequested: false }

function unmeteredPlan(inputs: PlanInputs, unratable: Unratable | null): CallPlan {
  return {
    // A call without a price is not free: even if it may pass, it is refused when the budget is exhausted.
    ...requestPlan(inputs, inputs.context, null, unratable === null ? { kind: 'none' } : NO_HOLD),
    ...NOT_RATED,
    unratable,
    ...{ unpricedModel: null, metered: false, reader: null, deferredKind: null },
    rate: () => ({ ...NO_FIGURES, unpriced: unratable !== null }),
  }
}

function batchPlan(inputs: PlanInputs, deferredKind: ObjectKind): CallPlan {
  const { endpoint, facts, batchFile, surface } = inputs.call
  const inFile = endpoint?.model === 'batch_file'
  const bound = (inFile ? batchFile?.bound : facts.items.bound) ?? null
  const named = (inFile ? batchFile?.models : facts.items.models) ?? []
  const [template = ''] = SURFACES[surface].batchEndpoints
  const stated = facts.body['endpoint']
  const lines = {
    ...inputs.context,
    endpoint: inFile ? truncated(typeof stated === 'string' ? stated : template) : template,
    modelAsked: mostExpensiveNamed(named, inputs.context, inputs.version),
    batch: true,
  }
  const isUnpriced = bound?.kind === 'unpriced'
  const unpriced = isUnpriced ? unratable('model_not_priced', inputs.settings) : null
  return {
    ...requestPlan(inputs, lines, null, bound === null || isUnpriced ? NO_HOLD : holdOf(bound)),
    ...NOT_RATED,
    unratable: bound === null ? UNKNOWN_BATCH : unpriced,
    unpricedModel: isUnpriced ? bound.model : null,
    ...{ metered: true, reader: DEFERRED_KINDS[deferredKind].reader, deferredKind },
    rate: () => ({ ...NO_FIGURES, unpriced: isUnpriced }),
  }
}

function meteredPlan(inputs: PlanInputs, bound: Bound): CallPlan {
  const { call, limits, modelDefault, version, context, settings } = inputs
  const usage = call.endpoint?.billing === 'metered' ? call.endpoint.usage : null
  const model = call.modelAsked ?? modelDefault
  // Other endpoints ignore `background`.
  const isBackground = limits.background && usage === 'responses'
  const createdKind = call.endpoint?.makes ?? (isBackground ? 'response' : null)
  // Without polling, the cost of background work would never be known.
  const isUnknowable = createdKind !== null && !settings.polls
  const deferredKind = isUnknowable ? null : createdKind
  const isUnpriced = bound.kind === 'unpriced'
  const reason = isUnknowable ? 'endpoint_not_metered' : isUnpriced ? 'model_not_priced' : null
  return {
    ...requestPlan(inputs, context, modelDefault, isUnpriced ? NO_HOLD : holdOf(bound)),
    unratable: reason === null ? null : unratable(reason, settings),
    unpricedModel: isUnpriced && !isUnknowable ? bound.model : null,
    unmeteredMember: isUnknowable && isBackground ? 'background' : null,
    metered: true,
    reader: deferredKind === null ? usage : DEFERRED_KINDS[deferredKind].reader,
    deferredKind,
    estimatesUsage: createdKind === null,
    answers: limits.n,
    requested: { serviceTier: context.tierAsked ?? null, speed: limits.speed },
    unseen: () => unseenWork(usage, call.facts, limits, model),
    holdTokens: (served) => holdTokens(served ?? model, inputs),
    withFees: (used) => withFees(used, inputs),
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

function unratable(reason: Unratable['reason'], { unpriced }: PricerSettings): Unratable {
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
  { call, limits, tierAsked: serviceTier, modelDefault, version, context, settings }: PlanInputs,
  model = call.modelAsked ?? modelDefault,
): Bound {
  const { surface, bodyBytes } = call
  const { endpoint, regional, batch } = context
  const request = { ...limits, surface, endpoint, regional, batch, model, bodyBytes, serviceTier }
  return boundOf(request, version, settings.discount)
}

/** Upper bound for transcribing a session's input, with the most expensive model: the session may choose any. */
function boundTranscript(inputs: PlanInputs): Bound {
  let max: Bound = NO_COST
  for (const { id, mode } of inputs.version.models) {
    if (mode !== 'audio_transcription') continue
    const bound = boundFor(inputs, id)
    if (bound.kind === 'bound' && max.kind === 'bound' && bound.listNanos > max.listNanos) max = bound
  }
  return max
}

function holdTokens(name: string | null, { call, limits, version }: PlanInputs) {
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

/** Truncates a model name for the stored rating. No priced name is longer than the limit. */
function truncated<T extends string | null>(name: T): T
function truncated(name: string | null): string | null {
  return name === null ? null : name.slice(0, limits.recordedCharsMax)
}

/** Adds the fees that follow from the request or the model, and removes fees for free work. */
function withFees(usage: Usage, { call, context, version }: PlanInputs): Usage {
  const fees = SURFACES[call.surface].fees(call.facts)
  if (fees.codeRunsFree) return { ...usage, parts: usage.parts.map(withoutCode) }
  if (context.endpoint !== '/v1/chat/completions') return usage
  const { model } = resolveModel(usage.modelServed, context, version)
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
