import { column } from '../columns.ts'
import { table } from '../table.ts'

/** Prices that change without a release. */

const { integer, text } = column

export const PRICES_TABLES = {
  /** Lists of prices, of releases and pushed. The one with the highest revision applies. */
  priceList: table('price_list', {
    columns: {
      revision: integer,
      json: text,
      atMs: integer,
    },
    key: ['revision'],
    isWide: true,
  }),

  /** Prices that operators set. Without an entry, the set price of the model ends. */
  setPrice: table('set_price', {
    columns: {
      model: text,
      effectiveFromMs: integer,
      // JSON, as a member of `models` of a price file without its id.
      entry: text.orNull(),
    },
    key: ['model', 'effectiveFromMs'],
  }),
}
