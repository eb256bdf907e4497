import { createHash } from 'node:crypto'
import { BoundedMap } from './bounded-map.ts'
import { promptCacheEntriesMax, promptCacheStepsMax } from './limits.ts'

const fiveMinutesMs = 5 * 60_000
const oneHourMs = 60 * 60_000
const automaticTokensMin = 1_024
const automaticStepTokens = 128
const bytesPerToken = 4

export type CacheLifetime = '5m' | '1h'

/** A piece of a prompt, in order. `breakpoint` marks where a prefix may be written to the cache. */
export interface PromptBlock {
  /** Called only if the prompt is cached at all: most prompts are not, and some are megabytes long. */
  readonly text: () => string
  readonly tokens: number
  readonly breakpoint: CacheLifetime | null
}

export interface CacheCounts {
  readonly read: number
  readonly written5m: number
  readonly written1h: number
  readonly uncached: number
}

/**
 * Remembers which prompt prefixes were seen. The first request with a prefix writes the prefix, the next request
 * reads it; unlike upstream there is no minimum length, so that a small test can see both.
 */
export class PromptCache {
  readonly #expiries = new BoundedMap<number>(promptCacheEntriesMax)

  /** Caching at marked places, as the Messages surface does it. */
  useMarked(model: string, blocks: readonly PromptBlock[], nowMs: number): CacheCounts {
    const total = blocks.reduce((sum, block) => sum + block.tokens, 0)
    const lastMarked = blocks.findLastIndex((block) => block.breakpoint !== null)
    if (lastMarked === -1) return { read: 0, written5m: 0, written1h: 0, uncached: total }

    const hash = createHash('sha256').update(model)
    let tokens = 0
    let read = 0
    const written: { key: string; end: number; lifetime: CacheLifetime }[] = []
    for (const block of blocks.slice(0, lastMarked + 1)) {
      hash.update(block.text()).update('\0')
      tokens += block.tokens
      const key = hash.copy().digest('base64')
      // A conversation that grows moves its mark: the earlier mark is inside the prefix now.
      if (this.#isFresh(key, nowMs)) read = tokens
      if (block.breakpoint !== null) written.push({ key, end: tokens, lifetime: block.breakpoint })
    }
    const end1h = Math.max(read, ...written.filter((mark) => mark.lifetime === '1h').map((mark) => mark.end))
    for (const mark of written) {
      this.#expiries.set(mark.key, nowMs + (mark.lifetime === '1h' ? oneHourMs : fiveMinutesMs))
    }
    return { read, written1h: end1h - read, written5m: Math.max(0, tokens - end1h), uncached: total - tokens }
  }

  /** Automatic caching of long prompts, as the Chat surface does it: from 1,024 tokens on, in steps of 128. */
  useAutomatic(model: string, prompt: string, nowMs: number): { read: number; written: number } {
    const bytes = Buffer.from(prompt)
    const hash = createHash('sha256').update(model)
    const keys: { key: string; tokens: number }[] = []
    let from = 0
    for (let tokens = automaticTokensMin; keys.length < promptCacheStepsMax; tokens += automaticStepTokens) {
      const to = tokens * bytesPerToken
      if (to > bytes.length) break
      hash.update(bytes.subarray(from, to))
      keys.push({ key: hash.copy().digest('base64'), tokens })
      from = to
    }
    const read = keys.findLast(({ key }) => this.#isFresh(key, nowMs))?.tokens ?? 0
    for (const { key } of keys) this.#expiries.set(key, nowMs + oneHourMs)
    return { read, written: (keys.at(-1)?.tokens ?? read) - read }
  }

  #isFresh(key: string, nowMs: number): boolean {
    return (this.#expiries.get(key) ?? 0) > nowMs
  }
}
