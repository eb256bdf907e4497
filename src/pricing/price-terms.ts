import type { Tier } from '../kernel/usage.ts'
import type { Surface } from '../kernel/vocabulary.ts'

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
