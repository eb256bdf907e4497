import type { Tier } from '../kernel/usage.ts'

export type Surface = 'messages' | 'chat'

export interface ReportedTier {
  readonly tier: Tier
  /** False for words that nobody has explained to us: rated as standard, and flagged. */
  readonly known: boolean
}

/**
 * What upstream calls a tier, and which rates it means. Two of them are prepaid capacity without a price per token,
 * `priority` on Messages and `scale` on Chat: their list cost is the standard one. `fast` is how a request asks
 * Chat for `priority`.
 */
const MESSAGES_TIERS = reportedAs({
  standard: 'standard',
  standard_only: 'standard',
  auto: 'standard',
  priority: 'standard',
  batch: 'batch',
})

const CHAT_TIERS = reportedAs({
  default: 'standard',
  standard: 'standard',
  auto: 'standard',
  scale: 'standard',
  batch: 'batch',
  flex: 'flex',
  priority: 'priority',
  fast: 'priority',
  ultrafast: 'ultrafast',
})

const SPEEDS = reportedAs({ standard: 'standard', fast: 'fast' })

const STANDARD: ReportedTier = { tier: 'standard', known: true }
const BATCH: ReportedTier = { tier: 'batch', known: true }
const NOT_KNOWN: ReportedTier = { tier: 'standard', known: false }

export function tierOf(
  surface: Surface,
  said: { readonly serviceTier: string | null; readonly speed: string | null; readonly batch: boolean },
): ReportedTier {
  if (said.batch) return BATCH
  const tier = lookUp(surface === 'messages' ? MESSAGES_TIERS : CHAT_TIERS, said.serviceTier)
  // Batches know no speed; it is only of Messages, where every other tier costs the standard rates.
  if (surface === 'chat' || tier.tier === 'batch') return tier
  const speed = lookUp(SPEEDS, said.speed)
  return tier.known ? speed : { tier: speed.tier, known: false }
}

function lookUp(words: ReadonlyMap<string, ReportedTier>, word: string | null): ReportedTier {
  return word === null ? STANDARD : (words.get(word) ?? NOT_KNOWN)
}

function reportedAs(words: Readonly<Record<string, Tier>>): ReadonlyMap<string, ReportedTier> {
  return new Map(Object.entries(words).map(([word, tier]) => [word, { tier, known: true }]))
}
