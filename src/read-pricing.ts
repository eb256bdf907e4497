import { type Config, ConfigError } from './config.ts'
import { type Discount, readDiscount } from './pricing/amounts.ts'
import { shippedBook } from './pricing/compile-version.ts'
import type { PriceBook } from './pricing/price-book.ts'

/** Reads the configured prices and discounts. Throws a ConfigError that names each wrong member. */
export async function readPricing({
  prices,
  discount,
  discounts,
}: Config): Promise<{ readonly book: PriceBook; readonly discount: Discount }> {
  const loaded = prices === null ? { kind: 'book' as const, book: shippedBook() } : await load(prices.text)
  const read = readDiscount(discount, discounts)
  const problems = [
    ...(loaded.kind === 'refused' ? loaded.problems.map((problem) => `${prices?.file}: ${problem}`) : []),
    ...(read.kind === 'refused' ? read.problems : []),
  ]
  if (loaded.kind === 'refused' || read.kind === 'refused') throw new ConfigError(problems)
  return { book: loaded.book, discount: read.discount }
}

async function load(overlayText: string) {
  // Load the validation only for an overlay; most installations have none.
  const { loadPrices } = await import('./pricing/load-book.ts')
  return loadPrices(overlayText)
}
