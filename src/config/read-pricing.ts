import { type Discount, readDiscount } from '../pricing/amounts.ts'
import { buildBook, type PriceLayers, storedLayers } from '../pricing/build-book.ts'
import type { PriceBook } from '../pricing/price-book.ts'
import type { OverlayEntry } from '../pricing/price-file.ts'
import { BUILT_IN_LIST } from '../pricing/price-list.ts'
import { type Config, ConfigError } from './read-config.ts'

/** Reads the overlay file and the discounts. Throws a ConfigError that names each wrong member of the file. */
export async function readPricing({ prices, priceFallbacks, discount, discounts }: Config): Promise<{
  readonly own: Pick<PriceLayers, 'overlays' | 'fallbacks'>
  readonly discount: Discount
}> {
  const overlays = prices === null ? [] : await readOverlayText(prices.text, `${prices.file}: `)
  return { own: { overlays, fallbacks: priceFallbacks }, discount: readDiscount(discount, discounts) }
}

type StoredLayers = Parameters<typeof storedLayers>[0]

/** The prices that a gateway with this configuration would use: those of the database, and its overlay file. */
export async function readBook(config: Config, stored: StoredLayers): Promise<PriceBook> {
  const { own } = await readPricing(config)
  return buildBook(storedLayers(stored, BUILT_IN_LIST, own))
}

/** The overlay is checked on top of the list of this release: a member that does not fit is refused with its name. `prefix`: of each problem. */
export async function readOverlayText(text: string, prefix = ''): Promise<readonly OverlayEntry[]> {
  // Load the validation only for an overlay; most installations have none.
  const { loadPrices } = await import('../pricing/load-book.ts')
  const read = loadPrices(text)
  if (read.kind === 'refused') throw new ConfigError(read.problems.map((problem) => prefix + problem))
  return read.value.overlays
}
