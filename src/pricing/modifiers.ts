import type { Tier } from '../kernel/usage.ts'
import type { Surface } from '../kernel/vocabulary.ts'
import { FACTOR_ONE } from './amounts.ts'
import type { RequestProfile } from './request-profile.ts'

interface PriceTerms {
  readonly provider: string
  /** The tiers by their names in requests and replies. */
  readonly tiers: Readonly<Record<string, Tier>>
  /** The names of speeds, on surfaces that have them. There every tier except `batch` has standard rates. */
  readonly speeds: Readonly<Record<string, Tier>> | null
  /** The model of image tools that name none. A second model in a reply's usage then generates images; null: text. */
  readonly imageModel: string | null
}

/** The words in which each surface states what decides its prices. */
export const PRICE_TERMS: Readonly<Record<Surface, PriceTerms>> = {
  messages: {
    provider: 'anthropic',
    // `priority` is prepaid capacity without a price per token, so it counts as standard.
    tiers: {
      standard: 'standard',
      standard_only: 'standard',
      auto: 'standard',
      priority: 'standard',
      batch: 'batch',
    },
    speeds: { standard: 'standard', fast: 'fast' },
    imageModel: null,
  },
  chat: {
    provider: 'openai',
    // `scale` is prepaid capacity, so it counts as standard. Requests write `priority` as `fast`.
    tiers: {
      default: 'standard',
      standard: 'standard',
      auto: 'standard',
      scale: 'standard',
      batch: 'batch',
      flex: 'flex',
      priority: 'priority',
      fast: 'priority',
      ultrafast: 'ultrafast',
    },
    speeds: null,
    imageModel: 'gpt-image-2',
  },
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
  const { tiers, speeds } = PRICE_TERMS[surface]
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

/** Factors for all tokens of a model, in billionths. They do not apply to fees. */
export interface ModelFactors {
  /** Factors by the geography in which inference ran, as upstream reports it. */
  readonly geography: ReadonlyMap<string, bigint>
  readonly regional: bigint
}

/** The only geography without a surcharge. An unknown name may be another spelling of one with a surcharge. */
const ANYWHERE = 'global'

/** The product of the largest factors that may apply to a call, relative to `MULTIPLIER_ONE`. */
export function multiplierMax({ geography, regional }: ModelFactors, request: RequestProfile): bigint {
  const largest =
    request.geography === ANYWHERE ? FACTOR_ONE : [...geography.values()].reduce(maxRate, FACTOR_ONE)
  return largest * (request.regional ? regional : FACTOR_ONE)
}

export function maxRate(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}
