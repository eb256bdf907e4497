import { type Discount, readDiscount } from '../pricing/amounts.ts'
import type { PriceBook } from '../pricing/price-book.ts'
import { shippedBook } from '../pricing/price-list.ts'
import { type Config, ConfigError } from './read-config.ts'

/** Reads the configured prices and discounts. Throws a ConfigError that names each wrong member of the price file. */
export async function readPricing({
  prices,
  discount,
  discounts,
}: Config): Promise<{ readonly book: PriceBook; readonly discount: Discount }> {
  const loaded = prices === null ? { kind: 'book' as const, book: shippedBook() } : await load(prices.text)
  if (loaded.kind === 'refused')
    throw new ConfigError(loaded.problems.map((problem) => `${prices?.file}: ${problem}`))
  return { book: loaded.book, discount: readDiscount(discount, discounts) }
}

async function load(overlayText: string) {
  // Load the validation only for an overlay; most installations have none.
  const { loadPrices } = await import('../pricing/load-book.ts')
  return loadPrices(overlayText)
}
