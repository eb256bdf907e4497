import { type NamedModels, NO_MODELS } from '../kernel/model-names.ts'
import { type Bound, limitHold, NO_COST } from '../kernel/money.ts'
import type { Usage } from '../kernel/usage.ts'
import type { ObjectKind } from '../kernel/vocabulary.ts'
import type { AccountTerms, BoundedFile } from '../ledger/account.ts'
import type { Reservation, Unratable } from '../ledger/call.ts'
import { type Discount, flatDiscount } from '../pricing/amounts.ts'
import { hold, modelFor } from '../pricing/hold.ts'
import { type PriceBook, type PriceVersion, suggestModel, versionAt } from '../pricing/price-book.ts'
import { mostExpensiveNamed } from '../pricing/priced-parts.ts'
import { type Rating, rate } from '../pricing/rate.ts'
import { type RatingContext, ratingContextOf } from '../pricing/rating-context.ts'
import type { RequestProfile } from '../pricing/request-profile.ts'
import { DEFERRED_KINDS } from '../providers/deferred-kinds.ts'
import type { Endpoint, UsageReader } from '../providers/endpoint.ts'
import { findEndpoint } from '../providers/find-endpoint.ts'
import { namedModels } from '../providers/named-models.ts'
import { type ProfiledRequest, profileRequest, type UpstreamTerms } from '../providers/profile-request.ts'
import { REALTIME, type SocketTurn, turnProfile } from '../providers/realtime-events.ts'
import { MODEL_NAME_CHARS_MAX, type RequestFacts } from '../providers/request-facts.ts'
import { SURFACES } from '../providers/surfaces.ts'

/** The profile of a request, with the prices, models and bound that apply to it. Later price changes do not affect it. */
export interface CallPlan extends RequestProfile {
  readonly version: PriceVersion
  /** The inputs of rating, with the installation's discount. */
  readonly context: RatingContext
  /** The endpoint's default model, if the request names none and refers to no stored object that could name one. */
  readonly modelDefault: string | null
  readonly models: NamedModels
  readonly hold: Reservation
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
}

export interface PriceSettings extends UpstreamTerms {
  readonly discount: Discount
  readonly unpriced: 'auto' | 'refuse' | 'pass'
  /** Whether upstream is polled for objects whose cost comes later. Without polling it stays unknown. */
  readonly polls: boolean
}

/** The price book in use, and the settings that prices depend on. Calls in flight keep the version of their plan. */
export class Prices {
  readonly settings: PriceSettings
  #book: PriceBook

  constructor(book: PriceBook, settings: PriceSettings) {
    this.#book = book
    this.settings = settings
  }

  use(book: PriceBook): void {
    this.#book = book
  }

  at(atMs: number): PriceVersion {
    return versionAt(this.#book, atMs)
  }

  closestModel(name: string, atMs: number): string | null {
    return suggestModel(this.at(atMs).names.keys(), name)
  }
}

export interface RequestToPlan extends ProfiledRequest {
  readonly method: string
  readonly query?: string
  readonly batchFile?: BoundedFile | null
  readonly atMs: number
}

export function planRequest(request: RequestToPlan, prices: Prices): CallPlan {
  const { endpoint } = request
  const { settings } = prices
  const profile = profileRequest(request, settings)
  const version = prices.at(request.atMs)
  if (endpoint?.billing === 'metered') {
    const byDefault = profile.model === null ? modelFor(profile, version) : null
    const models = namedModels(endpoint, request.path, request.facts, request.query, byDefault)
    return meteredPlan(endpoint, basePlan(profile, models, version, settings), settings)
  }
  const models = namedModels(endpoint, request.path, request.facts, request.query)
  const base = { ...basePlan(profile, models, version, settings), objectReader: endpoint?.shows ?? null }
  const kind = endpoint?.makes
  if (settings.polls && (kind === 'message_batch' || kind === 'batch'))
    return batchPlan(base, request, kind, settings)
  if (isFree(request)) return base
  // A call without a price is not free: even if it may pass, it is refused when the budget is exhausted.
  return { ...base, hold: NO_HOLD, unratable: unratable('endpoint_not_metered', settings) }
}

/** The plan of a Realtime turn, which has no HTTP request. */
export function planTurn(turn: SocketTurn, prices: Prices): CallPlan {
  const { settings } = prices
  const models = turn.model === null ? NO_MODELS : { ...NO_MODELS, names: [turn.model] }
  const base = basePlan(turnProfile(turn, settings), models, prices.at(turn.atMs), settings)
  return { ...meteredPlan(REALTIME, base, settings), reader: null }
}

/** The maximum cost of a request inside a batch. */
export function boundEntry(endpoint: Endpoint, facts: RequestFacts, prices: Prices, atMs: number): Bound {
  if (endpoint.billing === 'free') return NO_COST
  if (endpoint.billing !== 'metered') return { kind: 'unbounded', reason: 'it is not metered' }
  const { surface, template: path } = endpoint
  const profile = profileRequest({ surface, path, endpoint, facts, bodyBytes: facts.bytes }, prices.settings)
  return hold({ ...profile, batch: true }, prices.at(atMs), prices.settings.discount)
}

/** Rates usage at the prices of the plan, and at the discount of the account if it has its own. */
export function rateFor(
  { context, version }: Pick<CallPlan, 'context' | 'version'>,
  usage: Usage,
  terms: AccountTerms | null = null,
): Rating {
  const own = terms?.discountBillionths ?? null
  return rate(usage, own === null ? context : { ...context, discount: flatDiscount(own) }, version)
}

function basePlan(
  profile: RequestProfile,
  models: NamedModels,
  version: PriceVersion,
  { discount }: PriceSettings,
): CallPlan {
  return {
    ...profile,
    version,
    context: ratingContextOf(profile, discount),
    modelDefault: null,
    models,
    hold: { kind: 'none' },
    unratable: null,
    unpricedModel: null,
    unmeteredMember: null,
    metered: false,
    reader: null,
    objectReader: null,
    deferredKind: null,
    estimatesUsage: false,
  }
}

function meteredPlan(
  endpoint: Endpoint & { readonly billing: 'metered' },
  base: CallPlan,
  settings: PriceSettings,
): CallPlan {
  const bound = hold(base, base.version, settings.discount)
  const { background } = base.hidden
  const createdKind = endpoint.makes ?? (background ? 'response' : null)
  // Without polling, the cost of background work would never be known.
  const isUnknowable = createdKind !== null && !settings.polls
  const deferredKind = isUnknowable ? null : createdKind
  const isUnpriced = bound.kind === 'unpriced'
  const reason = isUnknowable ? 'endpoint_not_metered' : isUnpriced ? 'model_not_priced' : null
  return {
    ...withHold(base, bound),
    modelDefault: base.model === null ? modelFor(base, base.version) : null,
    unratable: reason === null ? null : unratable(reason, settings),
    unpricedModel: isUnpriced && !isUnknowable ? bound.model : null,
    unmeteredMember: isUnknowable && background ? 'background' : null,
    metered: true,
    reader: deferredKind === null ? endpoint.usage : DEFERRED_KINDS[deferredKind].reader,
    objectReader: endpoint.shows ?? null,
    deferredKind,
    estimatesUsage: createdKind === null,
  }
}

function batchPlan(
  base: CallPlan,
  { endpoint, facts, batchFile, surface }: RequestToPlan,
  deferredKind: ObjectKind,
  settings: PriceSettings,
): CallPlan {
  const inFile = endpoint?.model === 'batch_file'
  const bound = (inFile ? batchFile?.bound : facts.items.bound) ?? null
  const named = (inFile ? batchFile?.models : facts.items.models.names) ?? []
  const [template = ''] = SURFACES[surface].batchEndpoints
  const stated = facts.body['endpoint']
  const profile = { ...base, ...lineProfile(base, inFile && typeof stated === 'string' ? stated : template) }
  const model = mostExpensiveNamed(named, ratingContextOf(profile, settings.discount), base.version)
  const context = ratingContextOf({ ...profile, model }, settings.discount)
  const isUnpriced = bound?.kind === 'unpriced'
  const unpriced = isUnpriced ? unratable('model_not_priced', settings) : null
  return {
    ...withHold({ ...profile, context }, bound ?? NO_COST),
    unratable: bound === null ? UNKNOWN_BATCH : unpriced,
    unpricedModel: isUnpriced ? bound.model : null,
    metered: true,
    reader: DEFERRED_KINDS[deferredKind].reader,
    deferredKind,
  }
}

/** The lines of a batch are rated like requests to their endpoint, at batch prices. */
function lineProfile(batch: RequestProfile, template: string) {
  const endpoint = findEndpoint(batch.surface, 'POST', template)
  const modes = endpoint?.billing === 'metered' ? endpoint.modes : []
  return { endpoint: template.slice(0, MODEL_NAME_CHARS_MAX), modes, batch: true }
}

function withHold(plan: CallPlan, bound: Bound): CallPlan {
  const hold = holdOf(bound)
  if (bound.kind !== 'unbounded') return { ...plan, hold }
  return { ...plan, context: { ...plan.context, isUnbounded: true }, hold }
}

/** A path that is not byte for byte in our table is free only if the method reads. */
function isFree({ endpoint, method }: RequestToPlan): boolean {
  if (endpoint !== null) return endpoint.billing === 'free'
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS'
}

function unratable(reason: Unratable['reason'], { unpriced }: PriceSettings): Unratable {
  if (unpriced === 'pass') return { reason, refuse: 'never' }
  return { reason, refuse: unpriced === 'refuse' ? 'always' : 'limited' }
}

const NO_HOLD: Reservation = { kind: 'bound', nanos: 0n, listNanos: 0n }

/** A batch without a known bound is refused only to limited keys, because its cost is stated later. */
const UNKNOWN_BATCH: Unratable = { reason: 'batch_file_unknown', refuse: 'limited' }

function holdOf(bound: Bound): Reservation {
  if (bound.kind === 'unpriced') return NO_HOLD
  if (bound.kind === 'unbounded') {
    const { othersNanos } = bound
    return { kind: 'unbounded', ...(othersNanos === undefined ? {} : { neededNanos: othersNanos }) }
  }
  const { costNanos, listNanos, largestNanos } = bound
  const limited = { nanos: limitHold(costNanos), listNanos: limitHold(listNanos) }
  if (largestNanos === undefined) return { kind: 'bound', ...limited }
  return { kind: 'bound', ...limited, neededNanos: costNanos - largestNanos }
}
