import type { Hold, Unratable } from '../ledger/call.ts'
import { HOLD_NANOS_MAX } from '../ledger/decide-admission.ts'
import { type Bound, boundOf } from '../pricing/bound.ts'
import type { Discount } from '../pricing/discount.ts'
import { findModel, type PriceBook, type PriceVersion, versionAt } from '../pricing/price-book.ts'
import { rateFigures } from '../pricing/rate.ts'
import type { RatingContext } from '../pricing/rating-context.ts'
import { findMeant } from '../providers/find-endpoint.ts'
import { membersOf } from '../providers/pick-members.ts'
import { readFees } from '../providers/request-fees.ts'
import { type RequestLimits, readLimits } from '../providers/request-limits.ts'
import type { BillPlan, PlannedCall, Pricer } from './pricer.ts'
import { writeRating } from './rating-text.ts'
import { settleFees } from './settle-fees.ts'

export interface PricerSettings {
  readonly discount: Discount
  readonly unpriced: 'auto' | 'refuse' | 'pass'
  /** The tier that the upstream project gives requests which name none. */
  readonly chatDefaultTier: string | null
  /** The Chat upstream processes in one region only. */
  readonly chatRegional: boolean
}

export interface ReloadablePricer extends Pricer {
  /** Calls planned from now on are rated by this book; those under way keep the version they were planned with. */
  use(book: PriceBook): void
}

/** Decides before a call goes what it may cost and how it will be rated. */
export function createPricer(firstBook: PriceBook, settings: PricerSettings): ReloadablePricer {
  let book = firstBook
  return {
    use(next) {
      book = next
    },
    plan(call) {
      const version = versionAt(book, call.atMs)
      const context = contextOf(call, settings)
      const kind = kindOf(call)
      if (kind === 'free') return unmetered(version, context, settings, null)
      if (kind !== 'metered')
        return unmetered(version, context, settings, refusal('endpoint_not_metered', kind, settings))
      const limits = readLimits(call.surface, call.facts, () => call.body())
      if (limits.background) {
        return unmetered(version, context, settings, refusal('endpoint_not_metered', 'deferred', settings))
      }
      const imageToolModel = limits.tools.imageModel
      const tierAsked = tierFor(call.surface, limits, settings)
      return metered(call, limits, { ...context, imageToolModel, tierAsked }, version, settings)
    },
  }
}

type CallKind = 'free' | 'metered' | 'deferred' | 'unmeterable' | 'mints_credential'

/**
 * What is not byte for byte in our table cannot be known to be free, unless it only reads. Even then a `%`
 * or `;` may spell the path of an endpoint that hands out credentials.
 */
function kindOf({ endpoint, surface, method, path }: PlannedCall): CallKind {
  if (endpoint !== null) return endpoint.billing
  if (method !== 'GET' && method !== 'HEAD' && method !== 'OPTIONS') return 'unmeterable'
  const meant = findMeant(surface, method, path)
  return meant?.billing === 'mints_credential' ? 'mints_credential' : 'free'
}

function refusal(
  reason: Unratable['reason'],
  kind: Exclude<CallKind, 'free'>,
  { unpriced }: PricerSettings,
): Unratable {
  if (unpriced === 'pass') return { reason, refuse: 'never' }
  // A credential that upstream hands out would outlive the revocation of ours, whatever the limits are.
  return { reason, refuse: unpriced === 'refuse' || kind === 'mints_credential' ? 'always' : 'limited' }
}

function unmetered(
  version: PriceVersion,
  context: RatingContext,
  settings: PricerSettings,
  unratable: Unratable | null,
): BillPlan {
  return {
    // What cannot be rated is no free call: where it is let pass, a spent cap still stops it.
    hold: unratable === null ? { kind: 'none' } : { kind: 'bound', nanos: 0n, listNanos: 0n },
    priceVersion: version.id,
    rating: writeRating(context, settings.discount),
    unratable,
    unpricedModel: null,
    metered: false,
    inputTokensMax: null,
    modelDefault: null,
    withFees: (usage) => usage,
    rate: () => ({ costNanos: 0n, listNanos: 0n, unpriced: unratable !== null, pricedAsRequested: false }),
  }
}

function metered(
  call: PlannedCall,
  limits: RequestLimits,
  context: RatingContext,
  version: PriceVersion,
  settings: PricerSettings,
): BillPlan {
  const modelDefault = defaultModel(call, limits, version)
  const model = call.modelAsked ?? modelDefault
  const fees = readFees(call.surface, call.facts)
  const limited = boundOf(
    {
      ...limits,
      surface: call.surface,
      endpoint: context.endpoint,
      model,
      bodyBytes: call.bodyBytes,
    },
    version,
    { defaultTier: settings.chatDefaultTier, regional: context.regional, geographyPossible: true },
    settings.discount,
  )
  const bound: Bound =
    limits.unlimited && limited.kind === 'bound'
      ? { kind: 'unbounded', reason: 'something takes part that the request does not limit' }
      : limited
  return {
    hold: holdOf(bound),
    priceVersion: version.id,
    rating: writeRating(context, settings.discount),
    unratable: bound.kind === 'unpriced' ? refusal('model_not_priced', 'metered', settings) : null,
    unpricedModel: bound.kind === 'unpriced' ? bound.model : null,
    metered: true,
    inputTokensMax: model === null ? null : (findModel(version, model)?.contextWindowTokens ?? null),
    modelDefault,
    withFees: (usage) => settleFees(usage, fees, context, version),
    rate: (usage) => rateFigures(usage, context, version, settings.discount),
  }
}

/** What upstream takes for a request that leaves its model out. A name that cannot be read is no such request. */
function defaultModel(call: PlannedCall, limits: RequestLimits, version: PriceVersion): string | null {
  if (call.modelAsked !== null || call.endpoint === null || limits.stored) return null
  if ((membersOf(call.facts).get('model') ?? null) !== null) return null
  return version.defaultModels.get(call.endpoint.template) ?? null
}

/** A request for `auto`, or for none, leaves the tier to the settings of the upstream project. */
function tierFor(
  surface: PlannedCall['surface'],
  { serviceTier }: RequestLimits,
  settings: PricerSettings,
): string | null {
  const left = serviceTier === null || serviceTier === 'auto'
  return left && surface === 'chat' ? settings.chatDefaultTier : serviceTier
}

function holdOf(bound: Bound): Hold {
  switch (bound.kind) {
    case 'bound':
      return { kind: 'bound', nanos: atMost(bound.costNanos), listNanos: atMost(bound.listNanos) }
    case 'unbounded':
      return { kind: 'unbounded' }
    case 'unpriced':
      return { kind: 'bound', nanos: 0n, listNanos: 0n }
  }
}

function atMost(nanos: bigint): bigint {
  return nanos < HOLD_NANOS_MAX ? nanos : HOLD_NANOS_MAX
}

function contextOf(call: PlannedCall, settings: PricerSettings): RatingContext {
  return {
    surface: call.surface,
    modelAsked: call.modelAsked,
    endpoint: call.endpoint?.template ?? call.path,
    regional: call.surface === 'chat' && settings.chatRegional,
    batch: false,
    imageToolModel: null,
  }
}
