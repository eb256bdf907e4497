import { parseUsd } from '../kernel/money.ts'
import { TIERS, type Tier, UNITS, type Unit } from '../kernel/usage.ts'
import listPrices from './list-prices.json' with { type: 'json' }
import { ONE } from './modifiers.ts'
import {
  type ModelPrice,
  type PriceBook,
  type PriceVersion,
  type RateTable,
  type Tariff,
  TEXT_MODES,
  type TierRates,
} from './price-book.ts'
import type { BookVersionEntry, ModelEntry, RateTableEntry, TariffEntry } from './price-file.ts'
import { instantMs, UNIT_PRICES } from './rate-keys.ts'

/** Compiles a price file to maps of integers, once per version, so that rating only looks up. */
export function compileVersion(entry: BookVersionEntry, effectiveFromMs: number | null): PriceVersion {
  const ratioOf = tierRatios(entry.models)
  const models = entry.models.map((model) => compileModel(model, entry.tools, ratioOf))
  const names = new Map<string, ModelPrice>()
  for (const model of models)
    for (const name of [model.id, ...(model.entry.aliases ?? [])]) names.set(name, model)
  const defaultModels = new Map(Object.entries(entry.default_models ?? {}))
  return { id: entry.id, effectiveFromMs, defaultModels, models, names, entry }
}

function compileModel(entry: ModelEntry, tools: BookVersionEntry['tools'], ratioOf: RatioOf): ModelPrice {
  const provided = Object.hasOwn(tools, entry.provider) ? tools[entry.provider] : undefined
  return {
    id: entry.id,
    provider: entry.provider,
    mode: entry.mode ?? 'chat',
    contextWindowTokens: entry.context_window_tokens ?? null,
    maxOutputTokens: entry.max_output_tokens ?? null,
    rates: compileTable(entry.rates, entry, ratioOf),
    endpoints: new Map(
      Object.entries(entry.endpoints ?? {}).map(([endpoint, table]) => [
        endpoint,
        compileTable(table, entry, ratioOf),
      ]),
    ),
    tools: compileTariff({ ...provided, ...entry.tools }),
    factors: {
      geography: new Map(
        Object.entries(entry.geography ?? {}).map(([name, factor]) => [name, nanos(factor)]),
      ),
      regional: entry.regional_uplift == null ? ONE : nanos(entry.regional_uplift),
    },
    searchesEachCall: entry.searches_each_call ?? false,
    entry,
  }
}

function compileTable(table: RateTableEntry, model: ModelEntry, ratioOf: RatioOf): RateTable {
  const seesImages = TEXT_MODES.includes(model.mode ?? 'chat')
  const standard = compileTier(table.standard, seesImages)
  const others = new Map<Tier, TierRates>()
  for (const tier of TIERS) {
    if (tier === 'standard') continue
    const own = table[tier]
    const rates = own === undefined ? NOT_LISTED : compileTier(own, seesImages)
    others.set(tier, completed(rates, standard, ratioOf(model.provider, tier)))
  }
  return { longContextAbove: table.long_context_above ?? null, standard, others }
}

const NOT_LISTED: TierRates = { listed: false, short: new Map(), long: null }

/** A rate that a tier does not list is the standard rate of the unit × the ratio of the tier's listed rates. */
function completed(own: TierRates, standard: TierRates, usual: Ratio): TierRates {
  const ratio = listedRatio(own.short, standard.short) ?? usual
  const long =
    standard.long === null ? own.long : new Map([...times(standard.long, ratio), ...(own.long ?? [])])
  return { listed: own.listed, short: new Map([...times(standard.short, ratio), ...own.short]), long }
}

function listedRatio(own: Tariff, standard: Tariff): Ratio | null {
  for (const unit of UNITS) {
    const [over, under] = [own.get(unit), standard.get(unit)]
    if (over !== undefined && under !== undefined && under > 0n) return [over, under]
  }
  return null
}

function compileTier({ long_context: long, ...short }: TariffEntry, seesImages: boolean): TierRates {
  const compile = seesImages ? withImages : compileTariff
  return { listed: true, short: compile(short), long: long === undefined ? null : compile(long) }
}

type Rates = Readonly<Record<string, string | null | undefined>>

function compileTariff(rates: Rates): Map<Unit, bigint> {
  const tariff = new Map<Unit, bigint>()
  for (const unit of UNITS) {
    const { key } = UNIT_PRICES[unit]
    const text = key === null ? null : rates[key]
    if (typeof text === 'string') tariff.set(unit, nanos(text))
  }
  return tariff
}

/** Image input costs as much as text input, unless the list has image rates. */
function withImages(rates: Rates): Tariff {
  const tariff = compileTariff(rates)
  if (tariff.has('image_input_tokens')) return tariff
  const [plain, cached] = [tariff.get('input_tokens'), tariff.get('cache_read_tokens')]
  if (plain !== undefined) tariff.set('image_input_tokens', plain)
  if (cached !== undefined && !tariff.has('image_cache_read_tokens'))
    tariff.set('image_cache_read_tokens', cached)
  return tariff
}

/** The file was validated, so every decimal parses. */
function nanos(text: string): bigint {
  const value = parseUsd(text)
  if (value === null) throw new TypeError(`not a decimal: ${text}`)
  return value
}

type Ratio = readonly [over: bigint, under: bigint]

const HALF: Ratio = [1n, 2n]

type RatioOf = (provider: string, tier: Tier) => Ratio

/** The ratio of a tier for models that do not list it: 0.5 for batch and flex, else that of the newest model that lists it. */
function tierRatios(models: readonly ModelEntry[]): RatioOf {
  const newest = new Map<string, { readonly version: number; readonly ratio: Ratio }>()
  for (const { id, provider, rates } of models) {
    const under = parseUsd(rates.standard.input ?? '') ?? 0n
    const version = versionIn(id)
    for (const tier of TIERS) {
      const over = parseUsd(rates[tier]?.input ?? '')
      const name = `${provider} ${tier}`
      if (over === null || under === 0n || version < (newest.get(name)?.version ?? 0)) continue
      newest.set(name, { version, ratio: [over, under] })
    }
  }
  return (provider, tier) => {
    if (tier === 'batch' || tier === 'flex') return HALF
    return newest.get(`${provider} ${tier}`)?.ratio ?? [1n, 1n]
  }
}

/** 6.1 of `gpt-6.1-sol`, 5.5 of `claude-opus-5-5`, 4 of `o4-mini`. */
function versionIn(id: string): number {
  const [, major = '0', minor = '0'] = /(\d+)(?:[.-](\d)(?!\d))?/.exec(id) ?? []
  return Number(`${major}.${minor}`)
}

/** A rate that is not a whole number of nanodollars is rounded up. */
function times(tariff: Tariff, [over, under]: Ratio): Tariff {
  const rates = new Map<Unit, bigint>()
  for (const [unit, nanos] of tariff) rates.set(unit, (nanos * over + under - 1n) / under)
  return rates
}

/**
 * The built-in list prices. A test validates them, not every start: that took a sixth of the startup time, mostly to
 * load the validation code.
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
