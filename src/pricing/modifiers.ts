import { NANOS_PER_USD } from '../kernel/money.ts'
import type { Tier, Usage } from '../kernel/usage.ts'
import type { Surface } from '../kernel/vocabulary.ts'
import type { RequestLimits } from '../providers/request-limits.ts'
import { SURFACES } from '../providers/surfaces.ts'

/** The facts of a call that rating needs beside the usage: how the call was made. */
export interface RatingContext {
  readonly surface: Surface
  readonly modelAsked: string | null
  /** The template of the endpoint, such as `/v1/chat/completions`. */
  readonly endpoint: string
  /** The upstream host processes in one region only. */
  readonly regional: boolean
  readonly batch: boolean
  /** The model that the image tool of the request names. Upstream does not repeat that name. */
  readonly imageToolModel?: string | null
  /**
   * The service tier that the request asked for, else the one that the upstream project gives to requests that ask for
   * none: the tier of a call whose reply states none. Null where neither is known.
   */
  readonly tierAsked?: string | null
}

/** The limits that a request sets for its cost, and what it is for. */
export interface BoundRequest
  extends Omit<RequestLimits, 'speed' | 'background' | 'stored' | 'refersElsewhere'> {
  readonly surface: Surface
  /** The template of the endpoint, such as `/v1/messages`. */
  readonly endpoint: string
  /** Null where the request names no model: it may come from a stored prompt or conversation. */
  readonly model: string | null
  readonly bodyBytes: number
}

export interface BoundSettings {
  /** The tier that `auto` and no service tier at all mean where the upstream project has a tier for them. */
  readonly defaultTier: string | null
  readonly regional: boolean
  /** A default of the upstream workspace may choose where inference runs. */
  readonly geographyPossible: boolean
  readonly batch?: boolean
}

export interface ReportedTier {
  readonly tier: Tier
  /** False for tiers that are not in the surface's tables: such calls are rated as standard, and flagged. */
  readonly known: boolean
}

const STANDARD: ReportedTier = { tier: 'standard', known: true }
const BATCH: ReportedTier = { tier: 'batch', known: true }
const NOT_KNOWN: ReportedTier = { tier: 'standard', known: false }

/** The tier whose rates a call is rated with, by upstream's names for its tier and its speed. */
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
  // The word is upstream's or the client's: it may be the name of a member that every object has.
  const tier = Object.hasOwn(words, word) ? words[word] : undefined
  return tier === undefined ? NOT_KNOWN : { tier, known: true }
}

/** Factors and discounts are decimals with at most nine places, stored as whole billionths. */
export const ONE = NANOS_PER_USD

/** Factors on every token of a model, in billionths. Fees, which are priced by the call, are left alone. */
export interface ModelFactors {
  /** By the geography where upstream says that inference ran. */
  readonly geography: ReadonlyMap<string, bigint>
  /** Where the upstream host processes in one region only. */
  readonly regional: bigint
}

/** The one geography that is not dearer than others; another name may be another spelling of a dearer geography. */
const ANYWHERE = 'global'

/** The product of both factors where each of them is 1. */
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

/** Nearly all factors are 1, and a multiplication of bigints allocates a new one. */
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
