import type { Config } from '../config.ts'
import type { CurrentPrices } from '../ledger/rerate.ts'
import { versionAt } from '../pricing/price-book.ts'
import { createRateAgain } from '../pricing/rate-again.ts'
import { readPricing } from '../read-pricing.ts'

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
