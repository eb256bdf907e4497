import { NANOS_PER_USD } from '../kernel/money.ts'
import type { Tier } from '../kernel/usage.ts'
import type { Surface } from '../kernel/vocabulary.ts'
import type { RequestLimits } from '../providers/request-limits.ts'
import { SURFACES } from '../providers/surfaces.ts'

export interface RatingContext {
  readonly surface: Surface
  readonly modelAsked: string | null
  readonly endpoint: string
  /** Whether the upstream host processes in one region only. */
  readonly regional: boolean
  readonly batch: boolean
  /** The model that the request's image tool names, which upstream does not repeat. */
  readonly imageToolModel?: string | null
  /** The requested tier, else the upstream project's default; null if unknown. Applies if the reply states none. */
  readonly tierAsked?: string | null
  /** The call has no maximum cost. Rating ignores this: the bill says so. */
  readonly isUnbounded?: true
}

export interface BoundRequest
  extends Pick<RatingContext, 'surface' | 'endpoint' | 'regional' | 'batch'>,
    Omit<RequestLimits, 'speed' | 'background' | 'stored' | 'refersElsewhere'> {
  /** Null if the request names no model, for example with a stored prompt. */
  readonly model: string | null
  readonly bodyBytes: number
}

interface ReportedTier {
  readonly tier: Tier
  /** False for an unknown tier. Calls with such a tier are rated as standard and flagged. */
  readonly known: boolean
}

/** The tier that decides the rates, from upstream's names for tier and speed. */
export function tierOf(
  surface: Surface,
  reported: { readonly serviceTier: string | null; readonly speed: string | null; readonly batch: boolean },
): ReportedTier {
  if (reported.batch) return { tier: 'batch', known: true }
  const { tiers, speeds } = SURFACES[surface].pricing
  const tier = lookUp(tiers, reported.serviceTier)
  // Batches have no speed.
  if (speeds === null || tier.tier === 'batch') return tier
  const speed = lookUp(speeds, reported.speed)
  return tier.known ? speed : { tier: speed.tier, known: false }
}

function lookUp(words: Readonly<Record<string, Tier>>, word: string | null): ReportedTier {
  if (word === null) return { tier: 'standard', known: true }
  // The word comes from a client, and may be the name of an inherited member.
  const tier = Object.hasOwn(words, word) ? words[word] : undefined
  return { tier: tier ?? 'standard', known: tier !== undefined }
}

/** Factors and discounts are decimals with at most nine places, stored as whole billionths. */
export const FACTOR_ONE = NANOS_PER_USD

export const MULTIPLIER_ONE = FACTOR_ONE * FACTOR_ONE

/** Factors for all tokens of a model, in billionths. They do not apply to fees. */
export interface ModelFactors {
  /** Factors by the geography in which inference ran, as upstream reports it. */
  readonly geography: ReadonlyMap<string, bigint>
  readonly regional: bigint
}

/** The only geography without a surcharge. An unknown name may be another spelling of one with a surcharge. */
const ANYWHERE = 'global'

/** The product of the largest factors that may apply to a call, relative to `MULTIPLIER_ONE`. */
export function multiplierMax({ geography, regional }: ModelFactors, request: BoundRequest): bigint {
  const largest =
    request.geography === ANYWHERE ? FACTOR_ONE : [...geography.values()].reduce(maxRate, FACTOR_ONE)
  return largest * (request.regional ? regional : FACTOR_ONE)
}

export function maxRate(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}
