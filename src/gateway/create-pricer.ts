import type { Hold, Unratable } from '../ledger/call.ts'
import { HOLD_NANOS_MAX } from '../ledger/decide-admission.ts'
import { type Bound, boundOf, inputTokensMax, outputTokensMax } from '../pricing/bound.ts'
import type { Discount } from '../pricing/discount.ts'
import { findModel, type PriceBook, type PriceVersion, versionAt } from '../pricing/price-book.ts'
import { rateFigures } from '../pricing/rate.ts'
import type { RatingContext } from '../pricing/rating-context.ts'
import { findMeant } from '../providers/find-endpoint.ts'
import { type RequestLimits, readLimits } from '../providers/request-limits.ts'
import { NOTHING_UNSEEN, unseenWork } from '../providers/unseen-work.ts'
import type { BillPlan, PlannedCall, Pricer, TokensHeld } from './pricer.ts'
import { writeRating } from './rating-text.ts'

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
      if (kind !== 'metered' || call.endpoint === null)
        return unmetered(version, context, settings, refusal('endpoint_not_metered', kind, settings))
      const limits = readLimits(call.endpoint, call.facts)
      if (limits.background) {
        return unmetered(version, context, settings, refusal('endpoint_not_metered', 'deferred', settings))
      }
      return metered(call, limits, { ...context, imageToolModel: limits.tools.imageModel }, version, settings)
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
    unseen: () => NOTHING_UNSEEN,
    tokensHeld: () => ({ input: null, output: null, contextWindow: null }),
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
  const reader = call.endpoint?.billing === 'metered' ? call.endpoint.usage : null
  const limited = boundOf(
    {
      ...limits,
      surface: call.surface,
      endpoint: context.endpoint,
      model: call.modelAsked,
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
    unseen: () => unseenWork(reader, call.facts, limits, call.modelAsked),
    tokensHeld: (served) => tokensHeld(served ?? call.modelAsked, call, limits, version),
    rate: (usage) => rateFigures(usage, context, version, settings.discount),
  }
}

function tokensHeld(
  name: string | null,
  { endpoint, bodyBytes }: PlannedCall,
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
