import { type Config, ConfigError } from '../config.ts'
import { findModel, type PriceVersion, versionAt } from '../pricing/price-book.ts'
import { readPricing } from '../read-pricing.ts'
import { counted } from './amounts.ts'
import { type Check, ok, problem, warning } from './check.ts'

const NAMES_SHOWN_MAX = 20

/** The prices in force, or what keeps the gateway from starting with them. */
export async function readPrices(config: Config, nowMs: number): Promise<PriceVersion | readonly Check[]> {
  try {
    return versionAt((await readPricing(config)).book, nowMs)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.problems.map((text) =>
      problem('prices', text, 'Mend it; `tollgate prices check <file>` looks at an overlay alone.'),
    )
  }
}

/** `listed` is what upstream says it has. Null: it was not asked, or gave no list. */
export function checkPrices(
  version: PriceVersion,
  listed: readonly string[] | null,
  { prices, unpriced }: Pick<Config, 'prices' | 'unpriced'>,
): Check {
  const overlay = prices === null ? '' : `, with ${prices.file}`
  const book = `${counted(version.models.length, 'model')} in ${version.id}${overlay}`
  if (listed === null) return ok('prices', `${book}; not compared with upstream's models`)
  const missing = listed.filter((name) => findModel(version, name) === null)
  if (missing.length === 0) {
    return ok('prices', `${book}; all ${counted(listed.length, 'model')} that upstream lists have a price`)
  }
  const shown = missing.slice(0, NAMES_SHOWN_MAX).join(', ')
  const more = missing.length > NAMES_SHOWN_MAX ? ` and ${missing.length - NAMES_SHOWN_MAX} more` : ''
  return warning(
    'prices',
    `no price for ${missing.length} of ${counted(listed.length, 'model')} that upstream lists: ${shown}${more}`,
    `${CONSEQUENCE[unpriced]} Make an overlay with \`tollgate prices import\` or by hand, as docs/BILLING.md ` +
      'shows, and set TOLLGATE_PRICES to it.',
  )
}

const CONSEQUENCE: Readonly<Record<Config['unpriced'], string>> = {
  auto: 'Keys with a limit are refused these models, others call them at cost 0, flagged as unpriced.',
  refuse: 'Calls of these models are refused.',
  pass: 'Calls of these models cost 0, flagged as unpriced, and pass every cap.',
}
