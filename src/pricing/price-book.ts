import { TIERS, type Tier, type Unit } from '../kernel/usage.ts'
import { type ModelFactors, maxRate } from './modifiers.ts'
import type { BookVersionEntry, Mode, ModelEntry, RateTableEntry, TariffEntry } from './price-file.ts'
import { UNIT_PRICES, UNITS_OF } from './rate-keys.ts'

/** Models of these modes read and write text, so a price for only one side must be a mistake. */
export const TEXT_MODES: readonly string[] = ['chat', 'responses', 'completion', 'realtime']

/** Nanodollars per the number of units in UNIT_PRICES. A missing unit has no price. */
export type Tariff = ReadonlyMap<Unit, bigint>

/** The rates of a tier, for prompts up to the threshold and for longer ones. */
export interface TierRates {
  /** False: derived from the rates of `standard`. */
  readonly listed: boolean
  readonly short: Tariff
  readonly long: Tariff | null
}

export interface RateTable {
  /** Prompts with more tokens are long. Null: all are short. */
  readonly longContextAbove: number | null
  readonly standard: TierRates
  readonly others: ReadonlyMap<Tier, TierRates>
}

export interface ModelPrice {
  readonly id: string
  readonly provider: string
  readonly mode: Mode
  readonly contextWindowTokens: number | null
  readonly maxOutputTokens: number | null
  readonly rates: RateTable
  /** Tables that replace `rates` on an endpoint, by path template. */
  readonly endpoints: ReadonlyMap<string, RateTable>
  readonly tools: Tariff
  readonly factors: ModelFactors
  /** Each Chat Completions answer includes a paid web search. */
  readonly searchesEachCall: boolean
  /** The file's entry, for display and comparison. */
  readonly entry: ModelEntry
}

/** All prices of one period. A version is immutable; a new price is a new version. */
export interface PriceVersion {
  readonly id: string
  /** Null for the first version, which applies from the beginning. */
  readonly effectiveFromMs: number | null
  readonly models: readonly ModelPrice[]
  /** The model of requests that name none, by the path template of the endpoint. */
  readonly defaultModels: ReadonlyMap<string, string>
  readonly names: ReadonlyMap<string, ModelPrice>
  /** The version as a file entry, from which the same prices can be loaded again. */
  readonly entry: BookVersionEntry
}

/** Versions in order of time, never empty. */
export interface PriceBook {
  readonly versions: readonly [PriceVersion, ...PriceVersion[]]
}

export function versionAt(book: PriceBook, instantMs: number): PriceVersion {
  const past = (version: PriceVersion): boolean => (version.effectiveFromMs ?? -Infinity) <= instantMs
  return book.versions.findLast(past) ?? book.versions[0]
}

/**
 * Finds a model by exact id or alias. A fine-tuned model is `ft:<base>:<organisation>:…` and costs as much as
 * `ft:<base>`. There is no other guessing, because similar names differ in price.
 */
export function findModel(version: PriceVersion, name: string | null): ModelPrice | null {
  if (name === null) return null
  const own = version.names.get(name)
  if (own !== undefined) return own
  const fineTuned = /^(ft:[^:]+):/.exec(name)?.[1]
  return fineTuned === undefined ? null : (version.names.get(fineTuned) ?? null)
}

export function ratesOf({ standard, others }: RateTable, tier: Tier): TierRates {
  return others.get(tier) ?? standard
}

export function tableFor(model: ModelPrice, endpoint: string): RateTable {
  return model.endpoints.get(endpoint) ?? model.rates
}

/** All tariffs of a table, with their names. */
export function tariffsOf(table: RateTableEntry): readonly (readonly [tier: Tier, TariffEntry])[] {
  return TIERS.flatMap((tier) => {
    const entry = table[tier]
    return entry === undefined ? [] : [[tier, entry] as const]
  })
}

export interface Tariffs {
  readonly tier: Tier
  /** False: the list has no rates for the tier, so they are derived from `standard`. */
  readonly listed: boolean
  readonly long: boolean
  readonly tariff: Tariff
  readonly table: RateTable
}

export function tariffsFor(table: RateTable, tier: Tier, promptTokens: number): Tariffs {
  const rates = ratesOf(table, tier)
  const long = table.longContextAbove !== null && promptTokens > table.longContextAbove && rates.long !== null
  return {
    tier,
    listed: rates.listed,
    long,
    tariff: long && rates.long !== null ? rates.long : rates.short,
    table,
  }
}

/** OpenAI's cache writes. Models before gpt-5.6 report them without charging extra. */
const CHAT_CACHE_WRITES: readonly Unit[] = ['cache_write_30m_tokens', 'cache_write_12h_tokens']

/**
 * - `listed`: the price list names the rate.
 * - `no_fee`: writing to the cache costs no more than reading the prompt.
 * - `free`: the model has no output price, for example embeddings or audio priced per hour.
 * - `sibling`: no rate for this unit, so the highest rate of the same side applies.
 * - `none`: no substitute on the list.
 */
export interface FoundRate {
  readonly nanos: bigint
  readonly how: 'listed' | 'no_fee' | 'free' | 'sibling' | 'none'
}

const NONE: FoundRate = { nanos: 0n, how: 'none' }
const FREE: FoundRate = { nanos: 0n, how: 'free' }

function writesCost({ standard }: RateTable): boolean {
  return CHAT_CACHE_WRITES.some((unit) => standard.short.has(unit))
}

export function findRate({ tariff, table }: Tariffs, unit: Unit): FoundRate {
  const listed = tariff.get(unit)
  if (listed !== undefined) return { nanos: listed, how: 'listed' }
  const plain = tariff.get('input_tokens')
  if (plain !== undefined && CHAT_CACHE_WRITES.includes(unit) && !writesCost(table))
    return { nanos: plain, how: 'no_fee' }
  const { side } = UNIT_PRICES[unit]
  if (side !== 'input' && side !== 'output') return NONE
  const siblings = UNITS_OF[side].flatMap((other) => tariff.get(other) ?? [])
  if (siblings.length === 0) return side === 'output' && tariff.size > 0 ? FREE : NONE
  return { nanos: siblings.reduce(maxRate), how: 'sibling' }
}

const SEARCHES = ['web_searches', 'web_searches_low', 'web_searches_medium', 'web_searches_high'] as const

/** The highest price of a web search of any context size. */
export function highestSearchRate(tools: Tariff): bigint {
  return SEARCHES.map((unit) => tools.get(unit) ?? 0n).reduce(maxRate)
}
