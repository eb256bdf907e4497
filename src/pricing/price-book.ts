import { matchesPattern } from '../kernel/model-names.ts'
import { nearestName } from '../kernel/nearest-name.ts'
import { type Side, type Tier, UNIT_PRICES, UNITS_OF, type Unit } from '../kernel/usage.ts'
import { type ModelFactors, maxRate } from './modifiers.ts'
import type { BookVersionEntry, Mode, ModelEntry } from './price-file.ts'

/** Nanodollars per the number of units in UNIT_PRICES. A missing unit has no price. */
export type Tariff = ReadonlyMap<Unit, bigint>

/** The rates of a tier, for prompts up to the threshold and for longer ones. */
export interface TierRates {
  /** Whether the list has rates for the tier. If not, they are derived from `standard`. */
  readonly listed: boolean
  readonly short: Tariff
  readonly long: Tariff | null
}

export interface RateTable {
  /** Prompts with more tokens than this are long. Null: no prompt is long. */
  readonly longContextAbove: number | null
  readonly tiers: Readonly<Record<Tier, TierRates>>
}

export interface ModelPrice {
  readonly id: string
  readonly provider: string
  readonly mode: Mode
  readonly contextWindowTokens: number | null
  readonly maxOutputTokens: number | null
  readonly rates: RateTable
  /** Rate tables that replace `rates` on some endpoints, by path template. */
  readonly endpoints: ReadonlyMap<string, RateTable>
  readonly tools: Tariff
  readonly factors: ModelFactors
  /** Whether each Chat Completions answer includes a paid web search. */
  readonly searchesEachCall: boolean
  /** The entry of the price file, for display and comparison. */
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
  /** Names and patterns of models without a price, each with the model whose price applies; the longest pattern first. */
  readonly fallbacks: readonly (readonly [pattern: string, model: string])[]
  /** The version in the form of a price file, in which it is also stored. */
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

/** `ft:<base>:<organisation>:…` has the price of `ft:<base>`. Other names must match exactly, because prices differ. */
export function findModel(version: PriceVersion, name: string | null): ModelPrice | null {
  if (name === null) return null
  const own = version.names.get(name)
  if (own !== undefined) return own
  const fineTuned = /^(ft:[^:]+):/.exec(name)?.[1]
  return fineTuned === undefined ? null : (version.names.get(fineTuned) ?? null)
}

/** The price for a requested model: its own, or that of its fallback. */
export function findPriceFor(version: PriceVersion, name: string | null): ModelPrice | null {
  const own = findModel(version, name)
  if (own !== null || name === null) return own
  const found = version.fallbacks.find(([pattern]) => matchesPattern(pattern, name))
  return found === undefined ? null : findModel(version, found[1])
}

/** The model, or the pattern ending in `*`, that an unknown name probably means; null if none is similar. */
export function suggestModel(names: Iterable<string>, name: string): string | null {
  const isPattern = name.endsWith('*')
  const text = isPattern ? name.slice(0, -1) : name
  const all = [...names]
  const longer = isPattern ? [] : all.filter((each) => each.startsWith(`${name}-`))
  if (longer.length > 0) return longer.sort().at(-1) ?? null
  // Compare a pattern with the beginning of each name, in the same length. Of equally near names, the newest is the last.
  const known = new Set(all.map((each) => (isPattern ? each.slice(0, text.length) : each)))
  const nearest = nearestName(text, [...known].sort().reverse(), Math.min(3, Math.floor(text.length / 3)))
  if (nearest !== null) return isPattern ? `${nearest}*` : nearest
  return isPattern ? null : nearestRelative(all, name)
}

/** Each refused call without a price compares its name: without a limit, this took 3 ms in which no other call goes on. */
const END_CHANGES_MAX = 4

/** The nearest of the names that share the most leading parts, as `gpt-6.1` does with `gpt-6.1-terra`; else the last. */
function nearestRelative(names: readonly string[], name: string): string | null {
  for (let end = name.lastIndexOf('-'); end > 0; end = name.lastIndexOf('-', end - 1)) {
    const start = name.slice(0, end)
    if (names.includes(start)) return start
    const relatives = names.filter((each) => each.startsWith(`${start}-`)).sort()
    if (relatives.length === 0) continue
    const ends = relatives.map((each) => each.slice(end)).reverse()
    const nearest = nearestName(name.slice(end), ends, END_CHANGES_MAX)
    return nearest === null ? (relatives.at(-1) ?? null) : start + nearest
  }
  return null
}

export function tableFor(model: ModelPrice, endpoint: string): RateTable {
  return model.endpoints.get(endpoint) ?? model.rates
}

/** Whether the model lists a rate per this unit on the endpoint: most price tokens, some characters or audio time. */
export function isPricedPer(unit: Unit, model: ModelPrice | null, endpoint: string): boolean {
  return model !== null && tableFor(model, endpoint).tiers.standard.short.has(unit)
}

/**
 * - `listed`: the price list names the rate, or the rate follows from those that it names.
 * - `sibling`: the list has no rate for this unit, so the highest rate of the same side applies.
 * - `none`: no rate can replace the missing one.
 */
export interface FoundRate {
  readonly nanos: bigint
  readonly how: 'listed' | 'sibling' | 'none'
}

const NONE: FoundRate = { nanos: 0n, how: 'none' }

export function findRate(tariff: Tariff, unit: Unit): FoundRate {
  const listed = tariff.get(unit)
  if (listed !== undefined) return { nanos: listed, how: 'listed' }
  const others = unit === 'web_searches' ? SEARCHES : REPLACEMENTS[UNIT_PRICES[unit].side]
  const siblings = others.flatMap((other) => tariff.get(other) ?? [])
  return siblings.length === 0 ? NONE : { nanos: siblings.reduce(maxRate), how: 'sibling' }
}

/** The units whose rates can replace a missing rate of the same side. */
const REPLACEMENTS: Readonly<Record<Side, readonly Unit[]>> = { ...UNITS_OF, duration: [], tool: [] }

const SEARCHES = UNITS_OF.tool.filter((unit) => unit.startsWith('web_searches'))

export function highestSearchRate(tools: Tariff): bigint {
  return SEARCHES.map((unit) => tools.get(unit) ?? 0n).reduce(maxRate)
}
