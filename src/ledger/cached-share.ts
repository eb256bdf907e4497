import type { Usage } from '../kernel/usage.ts'

/** How many of the key's latest calls are searched for complete calls of the model, and how many of these are compared. */
export const LATEST_CALLS = 20
export const COMPARED_CALLS = 3

/** The smallest cached share of these calls. Fewer prove nothing, so nothing counts as cached. */
export function cachedShareOf(usages: readonly string[]): number {
  return usages.length < COMPARED_CALLS ? 0 : Math.min(...usages.map(shareIn))
}

function shareIn(usage: string): number {
  const part = (JSON.parse(usage) as Usage).parts.find(({ model }) => model === null)
  if (part === undefined || part.promptTokens === 0) return 0
  const { cache_read_tokens: text = 0, audio_cache_read_tokens: audio = 0 } = part.quantities
  return Math.min(1, (text + audio) / part.promptTokens)
}
