import type { Tier } from '../kernel/usage.ts'
import {
  type Catalog,
  type CatalogModel,
  type CatalogRates,
  decimalOf,
  defined,
  isObject,
  PROVIDERS,
  tokensOf,
} from './catalog.ts'
import type { RateKey, ToolKey } from './rate-keys.ts'

/**
 * The data file of `@pydantic/genai-prices` (`prices/data.json` and `prices/new_data/v2/data.json` of its
 * repository): a list of providers, each with models; a price is a number or `{ base, tiers: [{ start, price }] }`,
 * where a tier counts above `start`; `prices` may be a list of alternatives that begin at dates.
 */
export function isGenaiPrices(json: unknown): json is readonly unknown[] {
  return (
    Array.isArray(json) && json.some((provider) => isObject(provider) && Array.isArray(provider['models']))
  )
}

/** `cache_write_mtok` is the shortest-lived write of the provider. */
const RATES: Readonly<Record<string, RateKey>> = {
  input_mtok: 'input',
  output_mtok: 'output',
  cache_read_mtok: 'cache_read',
  cache_write_1h_mtok: 'cache_write_1h',
  input_audio_mtok: 'audio_input',
  cache_audio_read_mtok: 'audio_cache_read',
  output_audio_mtok: 'audio_output',
  input_image_mtok: 'image_input',
  cache_image_read_mtok: 'image_cache_read',
  output_image_mtok: 'image_output',
  input_audio_hours: 'audio_input_per_hour',
}
const WRITES: Readonly<Record<string, RateKey>> = { anthropic: 'cache_write_5m', openai: 'cache_write_30m' }
const TOOLS: Readonly<Record<string, ToolKey>> = {
  web_searches_kcount: 'web_search_per_1000',
  storage_searches_kcount: 'file_search_per_1000',
}

export function readGenaiPrices(json: readonly unknown[], nowMs: number): Catalog {
  const models: CatalogModel[] = []
  const notes: string[] = []
  for (const provider of json) {
    if (!isObject(provider) || typeof provider['id'] !== 'string' || !PROVIDERS.includes(provider['id']))
      continue
    const list = Array.isArray(provider['models']) ? provider['models'] : []
    for (const model of list) {
      if (!isObject(model) || typeof model['id'] !== 'string') continue
      const read = readModel(model, model['id'], provider['id'], nowMs, notes)
      if (read !== null) models.push(read)
    }
  }
  return { source: 'genai-prices', models, notes }
}

function readModel(
  model: Readonly<Record<string, unknown>>,
  id: string,
  provider: string,
  nowMs: number,
  notes: string[],
): CatalogModel | null {
  const prices = pricesInForce(model['prices'], id, nowMs, notes)
  if (prices === null) return null
  const short: Partial<Record<RateKey, string>> = {}
  const long: Partial<Record<RateKey, string>> = {}
  const tools: Partial<Record<ToolKey, string>> = {}
  const starts = new Set<number>()
  for (const [member, price] of Object.entries(prices)) {
    const tool = TOOLS[member]
    const key = member === 'cache_write_mtok' ? WRITES[provider] : RATES[member]
    if (tool !== undefined) {
      const amount = decimalOf(price)
      if (amount !== null) tools[tool] = amount
    } else if (key === undefined) notes.push(`${id}: "${member}" has no counterpart here`)
    else readPrice(price, key, short, long, starts, `${id}: "${member}"`, notes)
  }
  const [start, ...more] = starts
  if (more.length > 0) notes.push(`${id}: its rates change at several lengths, only short prompts are taken`)
  const single = start !== undefined && more.length === 0
  const rates: CatalogRates = { short, long: single ? long : {} }
  return {
    id,
    provider,
    tiers: new Map<Tier, CatalogRates>([['standard', rates]]),
    tools,
    aliases: exactNames(model['match']).filter((name) => name !== id),
    ...defined({
      contextWindowTokens: tokensOf(model['context_window']),
      longContextAbove: single ? start : undefined,
    }),
  }
}

function readPrice(
  price: unknown,
  key: RateKey,
  short: Partial<Record<RateKey, string>>,
  long: Partial<Record<RateKey, string>>,
  starts: Set<number>,
  where: string,
  notes: string[],
): void {
  const base = decimalOf(isObject(price) ? price['base'] : price)
  if (base === null) {
    notes.push(`${where} is not a price`)
    return
  }
  short[key] = base
  if (!isObject(price) || !Array.isArray(price['tiers'])) return
  for (const tier of price['tiers'] as readonly unknown[]) {
    if (!isObject(tier)) continue
    const amount = decimalOf(tier['price'])
    const start = tokensOf(tier['start'])
    if (amount === null || start === undefined) continue
    long[key] = amount
    starts.add(start)
  }
}

/** The last alternative whose date has come; those by the hour of the day are for providers we do not have. */
function pricesInForce(
  prices: unknown,
  id: string,
  nowMs: number,
  notes: string[],
): Readonly<Record<string, unknown>> | null {
  if (isObject(prices)) return prices
  let inForce: Readonly<Record<string, unknown>> | null = null
  for (const alternative of Array.isArray(prices) ? prices : []) {
    if (!isObject(alternative) || !isObject(alternative['prices'])) continue
    const constraint = alternative['constraint']
    const from = isObject(constraint) ? constraint['start_date'] : undefined
    if (constraint === undefined || constraint === null) inForce = alternative['prices']
    else if (typeof from !== 'string') notes.push(`${id}: prices by the hour of the day are left out`)
    else if (Date.parse(from) <= nowMs) inForce = alternative['prices']
    else notes.push(`${id}: other prices from ${from} on are left out`)
  }
  return inForce
}

/** Only `equals` names a model; the other ways of matching are guesses. */
function exactNames(match: unknown): string[] {
  if (!isObject(match)) return []
  if (typeof match['equals'] === 'string') return [match['equals']]
  return Array.isArray(match['or']) ? match['or'].flatMap(exactNames) : []
}
