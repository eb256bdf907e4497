import { parseUsd } from '../kernel/money.ts'
import { TEXT_MODES, TIERS, type Tier, UNIT_PRICES, UNITS, UNITS_OF, type Unit } from '../kernel/usage.ts'
import { FACTOR_ONE } from './amounts.ts'
import type { ModelPrice, PriceVersion, RateTable, Tariff, TierRates } from './price-book.ts'
import type { BookVersionEntry, ModelEntry, RateTableEntry } from './price-file.ts'

/** The time from which prices apply. A date means its first instant in UTC. */
export function instantMs(text: string): number {
  return Date.parse(text.includes('T') ? text : `${text}T00:00:00Z`)
}

/** Converts the decimals of a price file to maps of whole numbers, once per version, so that rating only looks up. */
export function compileVersion(entry: BookVersionEntry, effectiveFromMs: number | null): PriceVersion {
  const usualRatio = tierRatios(entry)
  const models = entry.models.map((model) => compiledOnce(model, entry.tools, usualRatio))
  const names = new Map<string, ModelPrice>()
  for (const model of models)
    for (const name of [model.id, ...(model.entry.aliases ?? [])]) names.set(name, model)
  const defaultModels = new Map(Object.entries(entry.default_models ?? {}))
  const fallbacks = Object.entries(entry.fallbacks ?? {}).sort(([a], [b]) => b.length - a.length)
  return { id: entry.id, effectiveFromMs, defaultModels, models, names, fallbacks, entry }
}

interface Compiled {
  readonly circumstances: string
  readonly model: ModelPrice
}

/** Versions share the entries of models that did not change between them. */
const compiledModels = new WeakMap<ModelEntry, Compiled>()

function compiledOnce(
  entry: ModelEntry,
  tools: BookVersionEntry['tools'],
  usualRatio: UsualRatio,
): ModelPrice {
  const ratios = TIERS.map((tier) => usualRatio(entry.provider, tier).join('/'))
  const circumstances = `${ratios.join(' ')} ${JSON.stringify(tools[entry.provider])}`
  const known = compiledModels.get(entry)
  if (known?.circumstances === circumstances) return known.model
  const model = compileModel(entry, tools, usualRatio)
  compiledModels.set(entry, { circumstances, model })
  return model
}

function compileModel(
  entry: ModelEntry,
  tools: BookVersionEntry['tools'],
  usualRatio: UsualRatio,
): ModelPrice {
  const mode = entry.mode ?? 'chat'
  const compile = (table: RateTableEntry) =>
    compileTable(table, IS_TEXT.has(mode), (tier) => usualRatio(entry.provider, tier))
  // Most models of a version are never called. Compiling the rates of 500 takes 30 ms, in which no call would be answered.
  let rates: RateTable | null = null
  return {
    id: entry.id,
    provider: entry.provider,
    mode,
    contextWindowTokens: entry.context_window_tokens ?? null,
    maxOutputTokens: entry.max_output_tokens ?? null,
    get rates() {
      rates ??= compile(entry.rates)
      return rates
    },
    endpoints: new Map(
      Object.entries(entry.endpoints ?? {}).map(([endpoint, table]) => [endpoint, compile(table)]),
    ),
    tools: compileTariff({ ...tools[entry.provider], ...entry.tools }),
    factors: {
      geography: new Map(
        Object.entries(entry.geography ?? {}).map(([name, factor]) => [name, nanos(factor)]),
      ),
      regional: entry.regional_uplift == null ? FACTOR_ONE : nanos(entry.regional_uplift),
    },
    searchesEachCall: entry.searches_each_call ?? false,
    entry,
  }
}

const IS_TEXT: ReadonlySet<string> = new Set(TEXT_MODES)

type Ratio = readonly [numerator: bigint, denominator: bigint]
type UsualRatio = (provider: string, tier: Tier) => Ratio

/** The ratio for a tier that a model does not list: 0.5 for batch and flex, else that of the newest model that lists it. */
function tierRatios({ models }: BookVersionEntry): UsualRatio {
  const newest = new Map<string, { readonly version: number; readonly ratio: Ratio }>()
  for (const { id, provider, rates } of models) {
    const version = versionIn(id)
    const denominator = nanos(rates.standard.input ?? '0')
    for (const tier of TIERS) {
      const numerator = rates[tier]?.input
      const key = `${provider} ${tier}`
      if (numerator == null || denominator === 0n || version < (newest.get(key)?.version ?? 0)) continue
      newest.set(key, { version, ratio: [nanos(numerator), denominator] })
    }
  }
  return (provider, tier) => {
    if (tier === 'batch' || tier === 'flex') return [1n, 2n]
    return newest.get(`${provider} ${tier}`)?.ratio ?? [1n, 1n]
  }
}

/** The version number in a model id: 6.1 in `gpt-6.1-sol`, 5.5 in `claude-opus-5-5`, 4 in `o4-mini`. */
function versionIn(id: string): number {
  const [, major = '0', minor = '0'] = /(\d+)(?:[.-](\d)(?!\d))?/.exec(id) ?? []
  return Number(`${major}.${minor}`)
}

function compileTable(table: RateTableEntry, isText: boolean, usualRatio: (tier: Tier) => Ratio): RateTable {
  const { long_context: long, ...short } = table.standard
  const standard = compileTariff(short)
  const standardLong = long === undefined ? null : compileTariff(long)
  const chargesCacheWrites = CHAT_CACHE_WRITES.some((unit) => standard.has(unit))
  // Embeddings, and models with a price per hour of audio, have no output rates.
  const chargesOutput = isText || UNITS_OF.output.some((unit) => standard.has(unit))
  const complete = (tariff: Map<Unit, bigint>) =>
    addImplied(tariff, { isText, chargesCacheWrites, chargesOutput })
  const tierOf = (tier: Tier): TierRates => {
    const { long_context: ownLong = {}, ...own } = table[tier] ?? {}
    const listed = compileTariff(own)
    const ratio = ratioOf(listed, standard) ?? usualRatio(tier)
    return {
      listed: table[tier] !== undefined,
      short: complete(new Map([...scaled(standard, ratio), ...listed])),
      long: standardLong && complete(new Map([...scaled(standardLong, ratio), ...compileTariff(ownLong)])),
    }
  }
  const tiers = Object.fromEntries(TIERS.map((tier) => [tier, tierOf(tier)]))
  return { longContextAbove: table.long_context_above ?? null, tiers: tiers as RateTable['tiers'] }
}

/** The factor between the rates that a tier lists and the standard rates. */
function ratioOf(own: Tariff, standard: Tariff): Ratio | null {
  for (const [unit, numerator] of own) {
    const denominator = standard.get(unit) ?? 0n
    if (denominator > 0n) return [numerator, denominator]
  }
  return null
}

/** The rates multiplied by the factor. A rate that is not a whole number of nanodollars is rounded up. */
function scaled(tariff: Tariff, [numerator, denominator]: Ratio): Tariff {
  return new Map(
    Array.from(tariff, ([unit, nanos]) => [unit, (nanos * numerator + denominator - 1n) / denominator]),
  )
}

/** The units of OpenAI's cache writes. Its models before gpt-5.6 report writes, but charge nothing extra for them. */
const CHAT_CACHE_WRITES: readonly Unit[] = ['cache_write_30m_tokens', 'cache_write_12h_tokens']

const CACHE_UNITS: readonly Unit[] = ['cache_read_tokens', ...CHAT_CACHE_WRITES]

/** Adds the rates that a list leaves out because they follow from the others. */
function addImplied(
  tariff: Map<Unit, bigint>,
  model: { readonly isText: boolean; readonly chargesCacheWrites: boolean; readonly chargesOutput: boolean },
): Tariff {
  const imply = (unit: Unit, rate: bigint | undefined) => {
    if (rate !== undefined && !tariff.has(unit)) tariff.set(unit, rate)
  }
  const [input, cached] = [tariff.get('input_tokens'), tariff.get('cache_read_tokens')]
  // Image input costs as much as text input, unless the list has image rates.
  if (model.isText && !tariff.has('image_input_tokens')) {
    imply('image_input_tokens', input)
    imply('image_cache_read_tokens', cached)
  }
  if (!model.chargesCacheWrites) for (const unit of CHAT_CACHE_WRITES) imply(unit, input)
  // Where output is free, upstream charges the input alone, and nothing for its cache.
  if (tariff.get('output_tokens') === 0n) for (const unit of CACHE_UNITS) imply(unit, input)
  if (!model.chargesOutput && tariff.size > 0) for (const unit of UNITS_OF.output) imply(unit, 0n)
  return tariff
}

function compileTariff(rates: Readonly<Record<string, string | null | undefined>>): Map<Unit, bigint> {
  const tariff = new Map<Unit, bigint>()
  for (const unit of UNITS) {
    const { key } = UNIT_PRICES[unit]
    const text = key === null ? null : rates[key]
    if (typeof text === 'string') tariff.set(unit, nanos(text))
  }
  return tariff
}

/** The file was validated, so every decimal parses. */
function nanos(text: string): bigint {
  const value = parseUsd(text)
  if (value === null) throw new TypeError(`not a decimal: ${text}`)
  return value
}
