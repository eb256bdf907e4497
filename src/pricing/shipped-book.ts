import { compileVersion } from './compile-version.ts'
import { instantMs } from './instant-ms.ts'
import listPrices from './list-prices.json' with { type: 'json' }
import type { PriceBook } from './price-book.ts'
import type { BookVersionEntry } from './price-file.ts'

/**
 * The list prices that come with the product, as they are. They are checked by a test, not at every start: that took
 * a sixth of the time until the gateway served, most of it to load what checks.
 */
export function shippedBook(): PriceBook {
  const [first, ...later] = listPrices.versions as readonly BookVersionEntry[]
  if (first === undefined) throw new TypeError('the shipped book holds no version')
  return {
    versions: [
      compileVersion(first, null),
      ...later.map((entry) => compileVersion(entry, instantMs(entry.effective_from))),
    ],
  }
}
