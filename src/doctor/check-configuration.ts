import { type Config, ConfigError, type UpstreamConfig } from '../config.ts'
import { findModel, type PriceVersion, versionAt } from '../pricing/price-book.ts'
import { readPricing } from '../read-pricing.ts'
import { type Check, counted, verdicts } from './check.ts'
import type { Settings } from './settings.ts'

export function checkConfiguration({ problems }: Settings): Check[] {
  const { ok, problem } = verdicts('configuration')
  if (problems.length === 0) return [ok('all variables and settings are good')]
  return problems.map((text) => problem(text, 'Mend it and start again: the gateway does not start with it.'))
}

export function checkSurfaces({ config, doubtful }: Settings): Check {
  const { ok, skipped, warning } = verdicts('surfaces')
  if (config === null || doubtful.size > 0) return skipped('not looked at before the configuration is good')
  const { messages, chat } = config
  if (messages === null && chat === null)
    return warning(
      'the built-in simulator only: every answer is made up, and its prices are charged',
      'For real use set ANTHROPIC_API_KEY and/or OPENAI_API_KEY, or the URL of a server of your own.',
    )
  const found = `${describe('Messages', messages)}, ${describe('Chat', chat)}`
  const inClear = [messages, chat].find((upstream) => upstream !== null && sendsKeyInClear(upstream))
  if (inClear)
    return warning(
      `${found}; the key goes to ${inClear.url.host} unencrypted`,
      'Use https:// if that host is beyond a network that you trust.',
    )
  return ok(found)
}

function describe(label: string, upstream: Config['messages']): string {
  if (upstream === null) return `${label} not configured (answers 503)`
  return `${label} at ${upstream.url.href}${upstream.key === null ? ' without a key' : ''}`
}

function sendsKeyInClear({ url, key }: UpstreamConfig): boolean {
  const isLoopback = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(url.hostname)
  return key !== null && url.protocol === 'http:' && !isLoopback
}

const NAMES_SHOWN_MAX = 20

/** The prices in force, or what keeps the gateway from starting with them. */
export async function readPrices(config: Config, nowMs: number): Promise<PriceVersion | readonly Check[]> {
  try {
    return versionAt((await readPricing(config)).book, nowMs)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.problems.map((text) =>
      verdicts('prices').problem(text, 'Mend it; `tollgate prices check <file>` looks at an overlay alone.'),
    )
  }
}

/** `listed` is what upstream says it has. Null: it was not asked, or gave no list. */
export function checkPrices(
  version: PriceVersion,
  listed: readonly string[] | null,
  { prices, unpriced }: Pick<Config, 'prices' | 'unpriced'>,
): Check {
  const { ok, warning } = verdicts('prices')
  const overlay = prices === null ? '' : `, with ${prices.file}`
  const book = `${counted(version.models.length, 'model')} in ${version.id}${overlay}`
  if (listed === null) return ok(`${book}; not compared with upstream's models`)
  const missing = listed.filter((name) => findModel(version, name) === null)
  if (missing.length === 0)
    return ok(`${book}; all ${counted(listed.length, 'model')} that upstream lists have a price`)
  const shown = missing.slice(0, NAMES_SHOWN_MAX).join(', ')
  const more = missing.length > NAMES_SHOWN_MAX ? ` and ${missing.length - NAMES_SHOWN_MAX} more` : ''
  return warning(
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
