import type { Usage } from '../kernel/usage.ts'
import { loadBook } from './load-book.ts'
import type { PriceVersion } from './price-book.ts'
import { type Rating, rate, readRating, type StoredRating } from './rate.ts'

/** The stored record of a call from which its bill is derived again. */
export interface RecordedCall {
  readonly usage: string
  readonly rating: string
  readonly priceVersionJson: string
}

/** Prices as they were stored; null if they cannot be read. */
export function readVersion(json: string): PriceVersion | null {
  const loaded = loadBook(`{"versions":[${json}]}`)
  return loaded.kind === 'book' ? loaded.book.versions[0] : null
}

/** Rates a recorded call from its own record: its usage, the way it was rated, and the prices it was rated with. */
export function createRateAgain(): (call: RecordedCall) => Rating | null {
  const versions = new Map<string, PriceVersion | null>()
  const versionOf = (json: string): PriceVersion | null => {
    const known = versions.get(json)
    if (known !== undefined) return known
    const version = readVersion(json)
    versions.set(json, version)
    return version
  }
  // Calls of one kind have the same rating text: reading it each time took a tenth of an audit's time.
  let lastRating = ''
  let stored: StoredRating | null = null
  return ({ usage, rating, priceVersionJson }) => {
    const version = versionOf(priceVersionJson)
    if (rating !== lastRating) stored = readRating(rating)
    lastRating = rating
    if (version === null) throw new Error('the price version of the call cannot be read')
    if (stored === null) throw new Error('how the call was rated cannot be read')
    const rated = rate(JSON.parse(usage) as Usage, stored.context, version, stored.discount)
    return rated.kind === 'unpriced' ? null : rated
  }
}
