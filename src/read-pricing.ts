import { type Config, ConfigError } from './config.ts'
import { type Discount, readDiscount } from './pricing/discount.ts'
import { loadListPrices } from './pricing/load-book.ts'
import type { PriceBook } from './pricing/price-book.ts'

/** The prices and discounts that the configuration asks for. A bad file stops the start, with the line at fault. */
export function readPricing(config: Config): { readonly book: PriceBook; readonly discount: Discount } {
  const loaded = loadListPrices(config.prices?.text)
  const read = readDiscount(config.discount, config.discounts)
  const problems = [
    ...(loaded.kind === 'refused'
      ? loaded.problems.map((problem) => `${config.prices?.file}: ${problem}`)
      : []),
    ...(read.kind === 'refused' ? read.problems : []),
  ]
  if (loaded.kind === 'refused' || read.kind === 'refused') throw new ConfigError(problems)
  return { book: loaded.book, discount: read.discount }
}
