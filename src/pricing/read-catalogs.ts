import { SURFACE_NAMES } from '../kernel/surface.ts'
import type { Tier } from '../kernel/usage.ts'
import { SURFACES } from '../providers/surfaces.ts'
import { MODES, type Mode } from './price-file.ts'
import type { RateKey, ToolKey } from './rate-keys.ts'

/** What a public price catalog says about a model, in our words. What it does not say is absent, never zero. */
export interface CatalogModel {
  readonly id: string
  readonly provider: string
  readonly mode?: Mode
  readonly aliases?: readonly string[]
  readonly contextWindowTokens?: number
  readonly maxOutputTokens?: number
  readonly tiers: ReadonlyMap<Tier, CatalogRates>
  readonly longContextAbove?: number
  readonly regionalUplift?: string
  readonly geography?: Readonly<Record<string, string>>
  readonly tools?: Readonly<Partial<Record<ToolKey, string>>>
}

export interface CatalogRates {
  readonly short: Readonly<Partial<Record<RateKey, string>>>
  readonly long: Readonly<Partial<Record<RateKey, string>>>
}

export interface Catalog {
  readonly source: 'genai-prices' | 'litellm'
  readonly models: readonly CatalogModel[]
  /** What was left out, and why. */
  readonly notes: readonly string[]
}

/** The providers whose surfaces the gateway has; the catalogs list some hundred more. */
const PROVIDERS: readonly string[] = SURFACE_NAMES.map((surface) => SURFACES[surface].pricing.provider)

const PLACES = 9n

/**
 * A JSON number times a factor, as a plain decimal, or null if it is no price. The shortest text that gives the
 * number again is what the catalog's author wrote; what float arithmetic left behind the ninth place is rounded off.
 */
export function decimalOf(given: unknown, factor = 1n): string | null {
  if (typeof given !== 'number' || !Number.isFinite(given) || given < 0) return null
  const match = /^(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(given))
  if (match === null) return null
  const [, whole = '', fraction = '', exponent = '0'] = match
  const shift = BigInt(exponent) - BigInt(fraction.length) + PLACES
  if (shift > 60n || shift < -400n) return null
  const digits = BigInt(whole + fraction) * factor
  const scaled = shift >= 0n ? digits * 10n ** shift : roundedQuotient(digits, 10n ** -shift)
  const unit = 10n ** PLACES
  if (scaled >= unit * 1_000_000_000n) return null
  const places = (scaled % unit).toString().padStart(Number(PLACES), '0').replace(/0+$/, '')
  return (scaled / unit).toString() + (places === '' ? '' : `.${places}`)
}

function roundedQuotient(dividend: bigint, divisor: bigint): bigint {
  return (2n * dividend + divisor) / (2n * divisor)
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A limit as a whole number of tokens, if it is one. */
function tokensOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= 2 ** 31
    ? value
    : undefined
}

/** Members without a value are left out, so that they do not hide what the book knows. */
export function defined<T extends object>(
  members: T,
): { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
} {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as never
}

/** What both catalogs call a write to the cache is the shortest-lived one of the provider. */
const WRITES: Readonly<Record<string, RateKey>> = { anthropic: 'cache_write_5m', openai: 'cache_write_30m' }

/** A catalog of either kind, or null if it is none. */
export function readCatalog(json: unknown, nowMs: number): Catalog | null {
  if (isGenaiPrices(json)) return readGenaiPrices(json, nowMs)
  return isLitellm(json) ? readLitellm(json) : null
}

/**
 * The data file of `@pydantic/genai-prices` (`prices/data.json` and `prices/new_data/v2/data.json` of its
 * repository): a list of providers, each with models; a price is a number or `{ base, tiers: [{ start, price }] }`,
 * where a tier counts above `start`; `prices` may be a list of alternatives that begin at dates.
 */
function isGenaiPrices(json: unknown): json is readonly unknown[] {
  return (
    Array.isArray(json) && json.some((provider) => isObject(provider) && Array.isArray(provider['models']))
  )
}

const GENAI_RATES: Readonly<Record<string, RateKey>> = {
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
const GENAI_TOOLS: Readonly<Record<string, ToolKey>> = {
  web_searches_kcount: 'web_search_per_1000',
  storage_searches_kcount: 'file_search_per_1000',
}

function readGenaiPrices(json: readonly unknown[], nowMs: number): Catalog {
  const models: CatalogModel[] = []
  const notes: string[] = []
  for (const provider of json) {
    if (!isObject(provider) || typeof provider['id'] !== 'string' || !PROVIDERS.includes(provider['id']))
      continue
    const list = Array.isArray(provider['models']) ? provider['models'] : []
    for (const model of list) {
      if (!isObject(model) || typeof model['id'] !== 'string') continue
      const read = readGenaiModel(model, model['id'], provider['id'], nowMs, notes)
      if (read !== null) models.push(read)
    }
  }
  return { source: 'genai-prices', models, notes }
}

function readGenaiModel(
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
    const tool = GENAI_TOOLS[member]
    const key = member === 'cache_write_mtok' ? WRITES[provider] : GENAI_RATES[member]
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

/**
 * LiteLLM's `model_prices_and_context_window.json`: an object by model name, prices in USD per token, per second or
 * per character, with `_batches`, `_flex`, `_priority` and `_above_272k_tokens` at the end of their names.
 */
function isLitellm(json: unknown): json is Readonly<Record<string, unknown>> {
  return isObject(json) && Object.values(json).some((model) => isObject(model) && 'litellm_provider' in model)
}

const MILLION = 1_000_000n
const SECONDS_PER_HOUR = 3_600n

interface Meaning {
  readonly key: RateKey | null
  readonly factor: bigint
}

const per = (key: RateKey | null, factor = MILLION): Meaning => ({ key, factor })

/** Null stands for the write of the provider's shortest life. */
const LITELLM_PRICES: Readonly<Record<string, Meaning>> = {
  input_cost_per_token: per('input'),
  output_cost_per_token: per('output'),
  cache_read_input_token_cost: per('cache_read'),
  cache_creation_input_token_cost: per(null),
  cache_creation_input_token_cost_above_1hr: per('cache_write_1h'),
  input_cost_per_audio_token: per('audio_input'),
  output_cost_per_audio_token: per('audio_output'),
  cache_read_input_audio_token_cost: per('audio_cache_read'),
  input_cost_per_image_token: per('image_input'),
  output_cost_per_image_token: per('image_output'),
  input_cost_per_character: per('input_per_million_characters'),
  input_cost_per_second: per('audio_input_per_hour', SECONDS_PER_HOUR),
}

const SUFFIXES: Readonly<Record<string, Tier>> = { _batches: 'batch', _flex: 'flex', _priority: 'priority' }
const MODE_NAMES: Readonly<Record<string, Mode>> = { image_generation: 'image', video_generation: 'video' }

function readLitellm(json: Readonly<Record<string, unknown>>): Catalog {
  const models: CatalogModel[] = []
  const unknown = new Map<string, number>()
  for (const [name, model] of Object.entries(json)) {
    // Names with a slash are the same models by size and quality of an image, or under another provider.
    if (!isObject(model) || name.includes('/') || name === 'sample_spec') continue
    const provider =
      model['litellm_provider'] === 'text-completion-openai' ? 'openai' : model['litellm_provider']
    if (typeof provider !== 'string' || !PROVIDERS.includes(provider)) continue
    models.push(readLitellmModel(name, provider, model, unknown))
  }
  const notes = [...unknown].map(([member, count]) => `"${member}" has no counterpart here (${count} models)`)
  return { source: 'litellm', models, notes }
}

type WritableRates = { short: Partial<Record<RateKey, string>>; long: Partial<Record<RateKey, string>> }

function readLitellmModel(
  id: string,
  provider: string,
  model: Readonly<Record<string, unknown>>,
  unknown: Map<string, number>,
): CatalogModel {
  const tiers = new Map<Tier, WritableRates>()
  let above: number | undefined
  for (const [member, value] of Object.entries(model)) {
    if (!member.includes('cost')) continue
    const { base, tier, thousands } = takeApart(member)
    const meaning = LITELLM_PRICES[base]
    const key = meaning === undefined ? undefined : (meaning.key ?? WRITES[provider])
    const amount = decimalOf(value, meaning?.factor)
    if (key === undefined || amount === null) {
      unknown.set(member, (unknown.get(member) ?? 0) + 1)
      continue
    }
    const rates = tiers.get(tier) ?? { short: {}, long: {} }
    tiers.set(tier, rates)
    if (thousands === null) rates.short[key] = amount
    else {
      above = thousands * 1_000
      rates.long[key] = amount
    }
  }
  return {
    id,
    provider,
    tiers: tiers as ReadonlyMap<Tier, CatalogRates>,
    ...defined({
      mode: modeOf(model['mode']),
      contextWindowTokens: tokensOf(model['max_input_tokens']),
      maxOutputTokens: tokensOf(model['max_output_tokens']),
      longContextAbove: above,
      regionalUplift: decimalOf(model['regional_processing_uplift_multiplier_us']) ?? undefined,
      geography: geographyOf(model['provider_specific_entry']),
    }),
  }
}

function takeApart(member: string): { base: string; tier: Tier; thousands: number | null } {
  const suffix = Object.keys(SUFFIXES).find((ending) => member.endsWith(ending))
  const tier = suffix === undefined ? 'standard' : (SUFFIXES[suffix] ?? 'standard')
  const rest = suffix === undefined ? member : member.slice(0, -suffix.length)
  const match = /^(.+)_above_(\d{1,5})k_tokens$/.exec(rest)
  return { base: match?.[1] ?? rest, tier, thousands: match === null ? null : Number(match[2]) }
}

function modeOf(mode: unknown): Mode | undefined {
  if (typeof mode !== 'string') return undefined
  return MODE_NAMES[mode] ?? MODES.find((known) => known === mode)
}

/** It also has a factor for fast mode, which the provider's own price list contradicts for some models. */
function geographyOf(entry: unknown): Record<string, string> | undefined {
  const us = isObject(entry) ? decimalOf(entry['us']) : null
  return us === null ? undefined : { us }
}
