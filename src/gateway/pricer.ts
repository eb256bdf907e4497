import { limits as kernelLimits } from '../kernel/limits.ts'
import { type Bound, type Nanos, NO_COST } from '../kernel/money.ts'
import type { ObjectKind, Surface } from '../kernel/surface.ts'
import type { Quantities, Usage } from '../kernel/usage.ts'
import type { Hold, Unratable } from '../ledger/call.ts'
import { HOLD_NANOS_MAX } from '../ledger/decide-admission.ts'
import type { RequestFacts } from '../metering/request-facts.ts'
import type { Discount } from '../pricing/amounts.ts'
import { boundOf, inputTokensMax, outputTokensMax } from '../pricing/bound.ts'
import type { RatingContext } from '../pricing/modifiers.ts'
import { findModel, type PriceBook, type PriceVersion, versionAt } from '../pricing/price-book.ts'
import { dearestNamed, resolve } from '../pricing/priced-parts.ts'
import { rateFigures, writeRating } from '../pricing/rate.ts'
import type { Endpoint } from '../providers/endpoint.ts'
import { type RequestLimits, readLimits, withSearch } from '../providers/request-limits.ts'
import { memberGetter, membersOf, modelAsked } from '../providers/request-members.ts'
import { type SocketTurn, TURN_LIMITS, turnRequest } from '../providers/socket-turn.ts'
import type { RequestFees } from '../providers/surface.ts'
import { SURFACES } from '../providers/surfaces.ts'
import { NOTHING_UNSEEN, type UnseenWork, unseenWork } from '../providers/unseen-work.ts'
import { addToolCalls } from '../providers/usage/reading.ts'
import type { BoundEntry } from '../providers/watch-records.ts'

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
    boundEntry(endpoint, facts, bodyBytes, atMs) {
      if (endpoint.billing === 'free') return NO_COST
      if (endpoint.billing !== 'metered') return { kind: 'unbounded', reason: 'it is not metered' }
      const { surface, template: path } = endpoint
      const entry = { surface, method: 'POST', path, endpoint, facts, bodyBytes, atMs }
      const call = { ...entry, modelAsked: modelAsked(facts) }
      const version = versionAt(book, atMs)
      const context = { ...contextOf(call, settings), batch: true }
      return boundFor(call, limitsOf(endpoint, call, version), context, version, settings)
    },
    planTurn(turn) {
      const version = versionAt(book, turn.atMs)
      const call = { ...turnRequest(turn), modelAsked: recorded(turn.model) }
      const context = contextOf(call, settings)
      const plan = metered(call, TURN_LIMITS, context, version, settings)
      if (turn.kind === 'transcription' || plan.hold.kind !== 'bound') return plan
      const { nanos, listNanos } = plan.hold
      const heard = boundTranscript(call, context, version, settings)
      const hold = { costNanos: nanos + heard.costNanos, listNanos: listNanos + heard.listNanos }
      return { ...plan, hold: holdOf({ kind: 'bound', ...hold }) }
    },
    plan(call) {
      const version = versionAt(book, call.atMs)
      const context = contextOf(call, settings)
      const { endpoint } = call
      if (endpoint?.billing !== 'metered') {
        const batch = batchPlan(call, context, version, settings)
        if (batch !== null) return batch
        const unratable = isFree(call) ? null : refusal('endpoint_not_metered', settings)
        return unmetered(version, context, settings, unratable)
      }
      const limits = limitsOf(endpoint, call, version)
      const imageToolModel = recorded(limits.tools.imageModel)
      const tierAsked = recorded(tierFor(call.surface, limits, settings))
      const asked = { ...context, imageToolModel, tierAsked }
      const plan = metered(call, limits, asked, version, settings)
      // Other endpoints do nothing in the background, whatever a request says.
      const isBackground = limits.background && endpoint.usage === 'responses'
      if (!isBackground) return plan
      if (settings.polls) return { ...plan, makes: 'response', counts: false }
      const unratable = refusal('endpoint_not_metered', settings)
      return { ...plan, counts: false, unratable, unpricedModel: null, unmeteredMember: 'background' }
    },
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

/** The hold that a bound leads to, or why the call cannot be rated. */
function holding(
  bound: Bound,
  settings: PricerSettings,
): Pick<BillPlan, 'hold' | 'unratable' | 'unpricedModel'> {
  if (bound.kind !== 'unpriced') return { hold: holdOf(bound), unratable: null, unpricedModel: null }
  return { hold: NO_HOLD, unratable: refusal('model_not_priced', settings), unpricedModel: bound.model }
}

function unmetered(
  version: PriceVersion,
  context: RatingContext,
  settings: PricerSettings,
  unratable: Unratable | null,
): BillPlan {
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

function metered(
  call: PricedRequest,
  limits: RequestLimits,
  context: RatingContext,
  version: PriceVersion,
  settings: PricerSettings,
): BillPlan {
  const reader = call.endpoint?.billing === 'metered' ? call.endpoint.usage : null
  const modelDefault = defaultModel(call, limits, version)
  const model = call.modelAsked ?? modelDefault
  const fees = SURFACES[call.surface].fees(call.facts)
  const bound = boundFor(call, limits, context, version, settings)
  return {
    ...holding(bound, settings),
    priceVersion: version.id,
    rating: writeRating(context, settings.discount),
    unmeteredMember: null,
    metered: true,
    makes: null,
    counts: true,
    unseen: () => unseenWork(reader, call.facts, limits, model),
    tokensHeld: (served) => tokensHeld(served ?? model, call, limits, version),
    answers: limits.n,
    modelDefault,
    asked: { serviceTier: context.tierAsked ?? null, speed: limits.speed },
    withFees: (usage) => settleFees(usage, fees, context, version),
    rate: (usage) => rateFigures(usage, context, version, settings.discount),
  }
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
  const limited = boundOf(
    { ...limits, surface, endpoint, model, bodyBytes },
    version,
    { defaultTier, regional, geographyPossible: true, batch },
    discount,
  )
  if (!limits.unlimited || limited.kind !== 'bound') return limited
  return { kind: 'unbounded', reason: 'something takes part that the request does not limit' }
}

/** The most that a transcription of a session's input may cost: the session may turn to any model for it. */
function boundTranscript(
  call: PricedRequest,
  context: RatingContext,
  version: PriceVersion,
  settings: PricerSettings,
): { readonly costNanos: Nanos; readonly listNanos: Nanos } {
  let most = { costNanos: 0n, listNanos: 0n }
  for (const { id, mode } of version.models) {
    if (mode !== 'audio_transcription') continue
    const bound = boundFor({ ...call, modelAsked: id }, TURN_LIMITS, context, version, settings)
    if (bound.kind === 'bound' && bound.listNanos > most.listNanos) most = bound
  }
  return most
}

/** The plan of a batch, each request of which is rated by itself when done. Null for other calls, or without polling. */
function batchPlan(
  call: PricedRequest,
  context: RatingContext,
  version: PriceVersion,
  settings: PricerSettings,
): BillPlan | null {
  const { endpoint, facts } = call
  if (endpoint === null || !settings.polls) return null
  const { makes, model } = endpoint
  if (makes !== 'message_batch' && makes !== 'batch') return null
  const inFile = model === 'batch_file'
  const records = facts.kind === 'json' ? facts.records : null
  const bound = (inFile ? call.madeFrom?.fileBound : records?.bound) ?? null
  const named = (inFile ? call.madeFrom?.fileModels : records?.models) ?? []
  const [template = ''] = SURFACES[call.surface].batchEndpoints
  const lines = {
    ...context,
    endpoint: inFile ? recorded(endpointIn(facts) ?? template) : template,
    modelAsked: dearestNamed(named, context, version),
    batch: true,
  }
  const plan = unmetered(version, lines, settings, null)
  if (bound === null) return { ...plan, makes, metered: true, hold: NO_HOLD, unratable: UNKNOWN_BATCH }
  return { ...plan, makes, metered: true, ...holding(bound, settings) }
}

const NO_HOLD: Hold = { kind: 'bound', nanos: 0n, listNanos: 0n }

/** The cost of a batch is told later, so that a batch of unknown cost is refused only to keys with limits. */
const UNKNOWN_BATCH: Unratable = { reason: 'batch_file_unknown', refuse: 'limited' }

/** The endpoint of the requests of a batch, as the batch itself names it. */
function endpointIn(facts: RequestFacts): string | null {
  const member = memberGetter(facts)('endpoint')
  return member?.kind === 'string' ? member.value : null
}

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
  const output = model === null ? stated : outputTokensMax(model, stated, limits.predictedTokensMax)
  return {
    input: limits.refersElsewhere ? contextWindow : Math.min(bodyBytes, contextWindow ?? bodyBytes),
    output: output === null ? null : output * limits.n,
    contextWindow,
  }
}

/** The model that upstream takes where a request leaves its model out. A name that cannot be read was not left out. */
function defaultModel(call: PricedRequest, limits: RequestLimits, version: PriceVersion): string | null {
  if (call.modelAsked !== null || call.endpoint === null || limits.stored) return null
  if ((membersOf(call.facts)['model'] ?? null) !== null) return null
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
  return { kind: 'bound', nanos: atMost(bound.costNanos), listNanos: atMost(bound.listNanos) }
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
  const searches = fees.asksForSearch || resolve(usage.modelServed, context, version).model?.searchesEachCall
  return searches ? { ...usage, parts: addToolCalls(usage.parts, ONE_SEARCH) } : usage
}

const ONE_SEARCH: Quantities = { web_searches: 1 }

function withoutCode(part: Usage['parts'][number]): Usage['parts'][number] {
  const { code_executions: _free, ...quantities } = part.quantities
  return { ...part, quantities }
}
