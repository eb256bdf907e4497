import type { Config } from '../config.ts'
import { type KeptRating, readRating } from '../gateway/rating-text.ts'
import type { Usage } from '../kernel/usage.ts'
import type { RateAgain } from '../ledger/audited.ts'
import type { CurrentPrices } from '../ledger/rerate.ts'
import { loadBook } from '../pricing/load-book.ts'
import { type PriceVersion, versionAt } from '../pricing/price-book.ts'
import { rate } from '../pricing/rate.ts'
import { readPricing } from '../read-pricing.ts'

/** Rates a recorded call from its own record: its usage, the way it was rated, and the prices it was rated with. */
export function createRateAgain(): RateAgain {
  const versions = new Map<string, PriceVersion | null>()
  const versionOf = (json: string): PriceVersion | null => {
    const known = versions.get(json)
    if (known !== undefined) return known
    const loaded = loadBook(`{"versions":[${json}]}`)
    const version = loaded.kind === 'book' ? loaded.book.versions[0] : null
    versions.set(json, version)
    return version
  }
  // Calls of one kind are rated alike: reading how took a tenth of an audit's time.
  let lastRating = ''
  let kept: KeptRating | null = null
  return ({ usage, rating, priceVersionJson }) => {
    const version = versionOf(priceVersionJson)
    if (rating !== lastRating) kept = readRating(rating)
    lastRating = rating
    if (version === null) throw new Error('the price version of the call cannot be read')
    if (kept === null) throw new Error('how the call was rated cannot be read')
    const rated = rate(JSON.parse(usage) as Usage, kept.context, version, kept.discount)
    return rated.kind === 'unpriced' ? null : rated
  }
}

/** The price book that the configuration names now. */
export async function currentPrices(config: Config): Promise<CurrentPrices> {
  const { book } = await readPricing(config)
  const texts = new Map(book.versions.map((version) => [version.id, JSON.stringify(version.entry)]))
  return {
    versionAt(atMs) {
      const { id } = versionAt(book, atMs)
      return { id, json: texts.get(id) ?? '' }
    },
    rateAgain: createRateAgain(),
  }
}
