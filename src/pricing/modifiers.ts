import { NANOS_PER_USD } from '../kernel/money.ts'
import type { Tier, Usage } from '../kernel/usage.ts'
import type { Surface } from '../kernel/vocabulary.ts'
import type { RequestLimits } from '../providers/request-limits.ts'
import { SURFACES } from '../providers/surfaces.ts'

/** The inputs of rating other than usage. */
export interface RatingContext {
  readonly surface: Surface
  readonly modelAsked: string | null
  /** The template of the endpoint, such as `/v1/chat/completions`. */
  readonly endpoint: string
  /** The upstream host processes in one region only. */
  readonly regional: boolean
  readonly batch: boolean
  /** The model that the request's image tool names, which upstream does not repeat. */
  readonly imageToolModel?: string | null
  /**
   * The requested service tier, else the upstream project's default; applies if the reply states no tier. Null if
   * neither is known.
   */
  readonly tierAsked?: string | null
}

/** What bounds a request's cost. */
export interface BoundRequest
  extends Omit<RequestLimits, 'speed' | 'background' | 'stored' | 'refersElsewhere'> {
  readonly surface: Surface
  /** The template of the endpoint, such as `/v1/messages`. */
  readonly endpoint: string
  /** Null if the request names no model, for example with a stored prompt. */
  readonly model: string | null
  readonly bodyBytes: number
}

export interface BoundSettings {
  /** The upstream project's tier for `auto` and for requests without a tier. */
  readonly defaultTier: string | null
  readonly regional: boolean
  /** The upstream workspace's default may decide where inference runs. */
  readonly geographyPossible: boolean
  readonly batch?: boolean
}

export interface ReportedTier {
  readonly tier: Tier
  /** False for an unknown tier: such calls are rated as standard and flagged. */
  readonly known: boolean
}

const STANDARD: ReportedTier = { tier: 'standard', known: true }
const BATCH: ReportedTier = { tier: 'batch', known: true }
const NOT_KNOWN: ReportedTier = { tier: 'standard', known: false }

/** The tier that decides the rates, from upstream's names for tier and speed. */
export function tierOf(
  surface: Surface,
  said: { readonly serviceTier: string | null; readonly speed: string | null; readonly batch: boolean },
): ReportedTier {
  if (said.batch) return BATCH
  const { tiers, speeds } = SURFACES[surface].pricing
  const tier = lookUp(tiers, said.serviceTier)
  // Batches have no speed.
  if (speeds === null || tier.tier === 'batch') return tier
  const speed = lookUp(speeds, said.speed)
  return tier.known ? speed : { tier: speed.tier, known: false }
}

function lookUp(words: Readonly<Record<string, Tier>>, word: string | null): ReportedTier {
  if (word === null) return STANDARD
  // The word is untrusted and may be the name of an inherited member.
  const tier = Object.hasOwn(words, word) ? words[word] : undefined
  return tier === undefined ? NOT_KNOWN : { tier, known: true }
}

/** Factors and discounts are decimals with at most nine places, stored as whole billionths. */
export const ONE = NANOS_PER_USD

/** Factors for all tokens of a model, in billionths. They do not apply to fees. */
export interface ModelFactors {
  /** By the geography in which inference ran, as upstream reports it. */
  readonly geography: ReadonlyMap<string, bigint>
  /** For upstream hosts that process in one region only. */
  readonly regional: bigint
}

/** The only geography without a surcharge. Any other name may be an alias of an expensive one. */
const ANYWHERE = 'global'

/** The product of both factors if each is 1. */
export const MULTIPLIER_ONE = ONE * ONE

/** The factors that apply to a call, multiplied: over `MULTIPLIER_ONE`. */
export function multiplierOf(factors: ModelFactors, usage: Usage, context: RatingContext): bigint {
  return product(geographyOf(factors, usage), context.regional ? factors.regional : ONE)
}

/** The largest factors that may apply to a call, multiplied: over `MULTIPLIER_ONE`. */
export function multiplierMax(
  { geography, regional }: ModelFactors,
  request: BoundRequest,
  settings: BoundSettings,
): bigint {
  const isPossible = request.geography === null ? settings.geographyPossible : request.geography !== ANYWHERE
  const most = isPossible ? [...geography.values()].reduce(maxRate, ONE) : ONE
  return product(most, settings.regional ? regional : ONE)
}

/** Nearly all factors are 1, and multiplying bigints allocates. */
function product(a: bigint, b: bigint): bigint {
  return a === ONE && b === ONE ? MULTIPLIER_ONE : a * b
}

function geographyOf({ geography }: ModelFactors, usage: Usage): bigint {
  return (usage.geography === null ? undefined : geography.get(usage.geography)) ?? ONE
}

/** The factors of a call that are not 1, in words. */
export function describeModifiers(
  factors: ModelFactors,
  usage: Usage,
  context: RatingContext,
  format: (factor: bigint) => string,
): string[] {
  const byPlace = geographyOf(factors, usage)
  const said = byPlace === ONE ? [] : [`geography ${usage.geography} × ${format(byPlace)}`]
  if (context.regional && factors.regional !== ONE) said.push(`regional × ${format(factors.regional)}`)
  return said
}

export function maxRate(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}
