import type { Surface } from '../kernel/surface.ts'
import type { Tier } from '../kernel/usage.ts'
import type { VideoAsked } from '../providers/chat/videos.ts'
import type { RequestLimits } from '../providers/request-limits.ts'
import { SURFACES } from '../providers/surfaces.ts'

/** What rating must know beside the usage: how the call was made. */
export interface RatingContext {
  readonly surface: Surface
  readonly modelAsked: string | null
  /** The template of the endpoint, such as `/v1/chat/completions`. */
  readonly endpoint: string
  /** The upstream host processes in one region only. */
  readonly regional: boolean
  /** The usage is that of an entry of a batch. */
  readonly batch: boolean
  /** The model that the image tool of the request names. Upstream does not repeat it. */
  readonly imageToolModel?: string | null
  /**
   * The service tier that the request asked for, else the one that the upstream project gives those that ask for
   * none: what goes where a reply states no tier. Null where neither is known.
   */
  readonly tierAsked?: string | null
  /** Of a call that makes a video. */
  readonly video?: VideoAsked
}

/** What a request says that limits what it can cost. */
export interface BoundRequest extends Omit<RequestLimits, 'speed' | 'background' | 'stored' | 'unlimited'> {
  readonly surface: Surface
  /** The template of the endpoint, such as `/v1/messages`. */
  readonly endpoint: string
  /** Null where the request names none: it may come from a stored prompt or conversation. */
  readonly model: string | null
  /** Of the decoded body. */
  readonly bodyBytes: number
}

export interface BoundSettings {
  /** What `auto` and no service tier at all mean where the upstream project has a tier for them. */
  readonly defaultTier: string | null
  readonly regional: boolean
  /** A default of the upstream workspace may choose where inference runs. */
  readonly geographyPossible: boolean
  /** The request is one of a batch. */
  readonly batch?: boolean
}

export interface ReportedTier {
  readonly tier: Tier
  /** False for words that are not in the surface's tables: rated as standard, and flagged. */
  readonly known: boolean
}

const STANDARD: ReportedTier = { tier: 'standard', known: true }
const BATCH: ReportedTier = { tier: 'batch', known: true }
const NOT_KNOWN: ReportedTier = { tier: 'standard', known: false }

/** The rates that a call is rated with, by what upstream calls its tier and its speed. */
export function tierOf(
  surface: Surface,
  said: { readonly serviceTier: string | null; readonly speed: string | null; readonly batch: boolean },
): ReportedTier {
  if (said.batch) return BATCH
  const { tiers, speeds } = SURFACES[surface].pricing
  const tier = lookUp(tiers, said.serviceTier)
  // Batches know no speed.
  if (speeds === null || tier.tier === 'batch') return tier
  const speed = lookUp(speeds, said.speed)
  return tier.known ? speed : { tier: speed.tier, known: false }
}

function lookUp(words: Readonly<Record<string, Tier>>, word: string | null): ReportedTier {
  if (word === null) return STANDARD
  // The word is upstream's or the client's: it may be that of a member of every object.
  const tier = Object.hasOwn(words, word) ? words[word] : undefined
  return tier === undefined ? NOT_KNOWN : { tier, known: true }
}
