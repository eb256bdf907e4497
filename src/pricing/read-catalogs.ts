import { SURFACE_NAMES } from '../kernel/surface.ts'
import type { Tier } from '../kernel/usage.ts'
import { SURFACES } from '../providers/surfaces.ts'
import { isObject, listAt, objectAt, type WireObject } from '../providers/usage/reading.ts'
import { MODES, type Mode } from './price-file.ts'
import type { RateKey, ToolKey } from './rate-keys.ts'

/** A model of a public price catalog, in our words. A price or limit that the catalog does not state is undefined, never zero. */
export interface CatalogModel {
  readonly id: string
  readonly provider: string
  readonly tiers: ReadonlyMap<Tier, CatalogRates>
  readonly longContextAbove: number | undefined
  readonly contextWindowTokens: number | undefined
  readonly maxOutputTokens?: number | undefined
  readonly mode?: Mode | undefined
  readonly aliases?: readonly string[]
  readonly regionalUplift?: string | undefined
  readonly geography?: Record<string, string> | undefined
  readonly tools?: Readonly<Record<string, string>>
}

export interface CatalogRates {
  readonly short: Partial<Record<RateKey, string>>
  readonly long: Partial<Record<RateKey, string>>
}

export interface Catalog {
  readonly source: 'genai-prices' | 'litellm'
  readonly models: readonly CatalogModel[]
  /** The models and members that were left out, and why. */
  readonly notes: readonly string[]
}

/** A catalog of either kind, or null if the JSON is neither. */
export function readCatalog(json: unknown, nowMs: number): Catalog | null {
  if (listAt(json).some((provider) => Array.isArray(objectAt(provider)['models'])))
    return readGenaiPrices(listAt(json), nowMs)
  const models = Object.values(objectAt(json))
  return models.some((model) => 'litellm_provider' in objectAt(model)) ? readLitellm(objectAt(json)) : null
}

/** The providers whose surfaces the gateway has; the catalogs list some hundred more. */
const PROVIDERS: readonly unknown[] = SURFACE_NAMES.map((surface) => SURFACES[surface].pricing.provider)

/** Both catalogs mean the shortest-lived cache write of the provider where they state a price for cache writes. */
const WRITES: Readonly<Record<string, RateKey>> = { anthropic: 'cache_write_5m', openai: 'cache_write_30m' }

/**
 * A JSON number times a factor, as a plain decimal, or null if it is no price. Errors of float arithmetic behind the
 * ninth place are rounded off.
 */
export function decimalOf(given: unknown, factor = 1): string | null {
  if (typeof given !== 'number' || !(given >= 0 && given * factor < 1e9)) return null
  return (given * factor).toFixed(9).replace(/\.?0+$/, '')
}

/** A limit as a whole number of tokens; undefined if the value is none. */
function tokensOf(value: unknown): number | undefined {
  const isLimit = typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= 2 ** 31
  return isLimit ? value : undefined
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

/**
 * The data file of `@pydantic/genai-prices` (`prices/data.json` and `prices/new_data/v2/data.json` of its
 * repository): a list of providers, each with models; a price is a number or `{ base, tiers: [{ start, price }] }`,
 * where a tier counts above `start`; `prices` may be a list of alternatives that begin at dates.
 */
function readGenaiPrices(json: readonly unknown[], nowMs: number): Catalog {
  const notes: string[] = []
  const models = json
    .map(objectAt)
    .flatMap(({ id: provider, models }) =>
      PROVIDERS.includes(provider)
        ? listAt(models).flatMap((model) => readGenaiModel(objectAt(model), String(provider), nowMs, notes))
        : [],
    )
  return { source: 'genai-prices', models, notes }
}

function readGenaiModel(model: WireObject, provider: string, nowMs: number, notes: string[]): CatalogModel[] {
  const { id } = model
  const prices = typeof id === 'string' ? pricesInForce(model['prices'], id, nowMs, notes) : null
  if (typeof id !== 'string' || prices === null) return []
  const rates: CatalogRates = { short: {}, long: {} }
  const tools: Record<string, string> = {}
  const starts = new Set<number>()
  for (const [member, price] of Object.entries(prices)) {
    const tool = GENAI_TOOLS[member]
    const key = member === 'cache_write_mtok' ? WRITES[provider] : GENAI_RATES[member]
    const base = decimalOf(isObject(price) ? price['base'] : price)
    if (tool === undefined && key === undefined) notes.push(`${id}: "${member}" has no counterpart here`)
    else if (base === null) notes.push(`${id}: "${member}" is not a price`)
    else if (tool !== undefined) tools[tool] = base
    else if (key !== undefined) {
      rates.short[key] = base
      for (const tier of listAt(objectAt(price)['tiers']).map(objectAt)) {
        const [amount, start] = [decimalOf(tier['price']), tokensOf(tier['start'])]
        if (amount === null || start === undefined) continue
        rates.long[key] = amount
        starts.add(start)
      }
    }
  }
  if (starts.size > 1) notes.push(`${id}: its rates change at several lengths, only short prompts are taken`)
  // A rate without tiers is the same for prompts of every length.
  const long = starts.size === 1 ? { ...rates.short, ...rates.long } : {}
  return [
    {
      id,
      provider,
      tiers: new Map([['standard', { short: rates.short, long }]]),
      tools,
      aliases: exactNames(model['match']).filter((name) => name !== id),
      contextWindowTokens: tokensOf(model['context_window']),
      longContextAbove: starts.size === 1 ? [...starts][0] : undefined,
    },
  ]
}

/** The last alternative whose date has come; prices by the hour of the day are for providers we do not have. */
function pricesInForce(prices: unknown, id: string, nowMs: number, notes: string[]): WireObject | null {
  if (isObject(prices)) return prices
  let inForce: WireObject | null = null
  for (const { prices: alternative, constraint } of listAt(prices).map(objectAt)) {
    if (!isObject(alternative)) continue
    const from = objectAt(constraint)['start_date']
    if (constraint === undefined || constraint === null) inForce = alternative
    else if (typeof from !== 'string') notes.push(`${id}: prices by the hour of the day are left out`)
    else if (Date.parse(from) <= nowMs) inForce = alternative
    else notes.push(`${id}: other prices from ${from} on are left out`)
  }
  return inForce
}

/** Only `equals` names a model; the other ways of matching are guesses. */
function exactNames(match: unknown): string[] {
  const { equals, or } = objectAt(match)
  return typeof equals === 'string' ? [equals] : listAt(or).flatMap(exactNames)
}

const MILLION = 1_000_000
const SECONDS_PER_HOUR = 3_600

const LITELLM_RATES: Readonly<Record<string, RateKey>> = {
  input_cost_per_token: 'input',
  output_cost_per_token: 'output',
  cache_read_input_token_cost: 'cache_read',
  cache_creation_input_token_cost_above_1hr: 'cache_write_1h',
  input_cost_per_audio_token: 'audio_input',
  output_cost_per_audio_token: 'audio_output',
  cache_read_input_audio_token_cost: 'audio_cache_read',
  input_cost_per_image_token: 'image_input',
  output_cost_per_image_token: 'image_output',
  input_cost_per_character: 'input_per_million_characters',
  input_cost_per_second: 'audio_input_per_hour',
}
const LITELLM_SUFFIXES: Readonly<Record<string, Tier>> = {
  _batches: 'batch',
  _flex: 'flex',
  _priority: 'priority',
}
const LITELLM_MODES: Readonly<Record<string, Mode>> = { image_generation: 'image', video_generation: 'video' }

/**
 * LiteLLM's `model_prices_and_context_window.json`: an object by model name, prices in USD per token, per second or
 * per character, with `_batches`, `_flex`, `_priority` and `_above_272k_tokens` at the end of their names.
 */
function readLitellm(json: WireObject): Catalog {
  const models: CatalogModel[] = []
  const unknown = new Map<string, number>()
  for (const [name, model] of Object.entries(json)) {
    // Names with a slash are the same models by size and quality of an image, or under another provider.
    if (!isObject(model) || name.includes('/') || name === 'sample_spec') continue
    const { litellm_provider: stated } = model
    const provider = stated === 'text-completion-openai' ? 'openai' : stated
    if (PROVIDERS.includes(provider)) models.push(readLitellmModel(name, String(provider), model, unknown))
  }
  const notes = [...unknown].map(([member, count]) => `"${member}" has no counterpart here (${count} models)`)
  return { source: 'litellm', models, notes }
}

function readLitellmModel(
  id: string,
  provider: string,
  model: WireObject,
  unknown: Map<string, number>,
): CatalogModel {
  const tiers = new Map<Tier, CatalogRates>()
  let above: number | undefined
  for (const [member, value] of Object.entries(model)) {
    if (!member.includes('cost')) continue
    const { base, tier, thousands } = takeApart(member)
    const key = base === 'cache_creation_input_token_cost' ? WRITES[provider] : LITELLM_RATES[base]
    const amount = decimalOf(value, key === 'audio_input_per_hour' ? SECONDS_PER_HOUR : MILLION)
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
  const { mode } = model
  // LiteLLM also has a factor for fast mode there, which the provider's own price list contradicts for some models.
  const us = decimalOf(objectAt(model['provider_specific_entry'])['us'])
  return {
    id,
    provider,
    tiers,
    mode: LITELLM_MODES[String(mode)] ?? MODES.find((known) => known === mode),
    contextWindowTokens: tokensOf(model['max_input_tokens']),
    maxOutputTokens: tokensOf(model['max_output_tokens']),
    longContextAbove: above,
    regionalUplift: decimalOf(model['regional_processing_uplift_multiplier_us']) ?? undefined,
    geography: us === null ? undefined : { us },
  }
}

function takeApart(member: string): { base: string; tier: Tier; thousands: number | null } {
  const suffix = Object.keys(LITELLM_SUFFIXES).find((ending) => member.endsWith(ending)) ?? ''
  const rest = member.slice(0, member.length - suffix.length)
  const match = /^(.+)_above_(\d{1,5})k_tokens$/.exec(rest)
  return {
    base: match?.[1] ?? rest,
    tier: LITELLM_SUFFIXES[suffix] ?? 'standard',
    thousands: match === null ? null : Number(match[2]),
  }
}
