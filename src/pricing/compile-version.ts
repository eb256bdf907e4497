import { parseUsd } from '../kernel/money.ts'
import { TIERS, type Tier, UNITS, type Unit } from '../kernel/usage.ts'
import listPrices from './list-prices.json' with { type: 'json' }
import { factorsIn, MODIFIER_NAMES, type ModelFactors } from './modifiers.ts'
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

/** Makes maps of whole numbers from the words of a price file, once per version, so that rating a call only looks up. */
export function compileVersion(entry: BookVersionEntry, effectiveFromMs: number | null): PriceVersion {
  const ratios = entry.rules === 2 ? new TierRatios(entry.models) : null
  const models = entry.models.map((model) => compileModel(model, entry.tools, ratios))
  const names = new Map<string, ModelPrice>()
  for (const model of models)
    for (const name of [model.id, ...(model.entry.aliases ?? [])]) names.set(name, model)
  const defaultModels = new Map(Object.entries(entry.default_models ?? {}))
  return { id: entry.id, effectiveFromMs, rules: entry.rules ?? 1, defaultModels, models, names, entry }
}

/** Without `ratios`, no rate is derived that the entry does not list. */
function compileModel(
  entry: ModelEntry,
  tools: BookVersionEntry['tools'],
  ratios: TierRatios | null,
): ModelPrice {
  const provided = Object.hasOwn(tools, entry.provider) ? tools[entry.provider] : undefined
  return {
    id: entry.id,
    provider: entry.provider,
    mode: entry.mode ?? 'chat',
    contextWindowTokens: entry.context_window_tokens ?? null,
    maxOutputTokens: entry.max_output_tokens ?? null,
    rates: compileTable(entry.rates, entry, ratios),
    endpoints: new Map(
      Object.entries(entry.endpoints ?? {}).map(([endpoint, table]) => [
        endpoint,
        compileTable(table, entry, ratios),
      ]),
    ),
    tools: compileTariff({ ...provided, ...entry.tools }),
    factors: compileFactors(entry),
    searchesEachCall: entry.searches_each_call ?? false,
    entry,
  }
}

function compileFactors(entry: ModelEntry): ModelFactors {
  const factors = MODIFIER_NAMES.map((name) => {
    return [name, new Map(factorsIn(entry, name).map(([of, factor]) => [of, nanos(factor)]))]
  })
  return Object.fromEntries(factors) as ModelFactors
}

function compileTable(table: RateTableEntry, model: ModelEntry, ratios: TierRatios | null): RateTable {
  const seesImages = ratios !== null && TEXT_MODES.includes(model.mode ?? 'chat')
  const standard = compileTier(table.standard, seesImages)
  const others = new Map<Tier, TierRates>()
  for (const tier of TIERS) {
    const listed = table[tier]
    if (tier !== 'standard' && listed !== undefined) others.set(tier, compileTier(listed, seesImages))
  }
  const unlisted = ratios === null ? null : new DerivedTiers(model.id, standard, ratios)
  return { longContextAbove: table.long_context_above ?? null, standard, others, unlisted }
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

/** Image tokens that a model for text reads cost as much as its text tokens, unless the list has rates for images. */
function withImages(rates: Rates): Tariff {
  const tariff = compileTariff(rates)
  if (tariff.has('image_input_tokens')) return tariff
  const [plain, cached] = [tariff.get('input_tokens'), tariff.get('cache_read_tokens')]
  if (plain !== undefined) tariff.set('image_input_tokens', plain)
  if (cached !== undefined && !tariff.has('image_cache_read_tokens'))
    tariff.set('image_cache_read_tokens', cached)
  return tariff
}

/** The price file was checked before, so each decimal in it can be read. */
function nanos(text: string): bigint {
  const value = parseUsd(text)
  if (value === null) throw new TypeError(`not a decimal: ${text}`)
  return value
}

/** The rate of a tier as a fraction of the standard rate. */
type Ratio = readonly [over: bigint, under: bigint]

/** The ratios that most families list. */
const USUAL: Readonly<Record<Tier, Ratio>> = {
  standard: [1n, 1n],
  batch: [1n, 2n],
  flex: [1n, 2n],
  priority: [2n, 1n],
  fast: [2n, 1n],
  ultrafast: [6n, 1n],
}

/** `gpt-5.1` of `gpt-5.1-codex-max`, `o3` of `o3-mini`, `claude-opus` of `claude-opus-4-7`. */
const FAMILY = /^(?:ft:)?(gpt-\d+(?:\.\d+)?o?|o\d+|claude-[a-z]+)(?=-|$)/

function familyOf(id: string): string | null {
  return FAMILY.exec(id)?.[1] ?? null
}

/** The ratio of each tier in each family of a book: the dearest one that a model of the family lists. */
class TierRatios {
  readonly #models: readonly ModelEntry[]
  /** The models are looked through when a ratio is first asked for, not at every start: few calls need one. */
  #listed: Map<string, Ratio> | null = null

  constructor(models: readonly ModelEntry[]) {
    this.#models = models
  }

  ratioOf(id: string, tier: Tier): Ratio {
    this.#listed ??= listedRatios(this.#models)
    return this.#listed.get(`${familyOf(id)} ${tier}`) ?? USUAL[tier]
  }
}

function listedRatios(models: readonly ModelEntry[]): Map<string, Ratio> {
  const ratios = new Map<string, Ratio>()
  for (const { id, rates } of models) {
    const family = familyOf(id)
    const under = parseUsd(rates.standard.input ?? '') ?? 0n
    if (family === null || under === 0n) continue
    for (const tier of TIERS) {
      const over = parseUsd(rates[tier]?.input ?? '')
      const known = ratios.get(`${family} ${tier}`) ?? [0n, 1n]
      if (over !== null && over * known[1] > known[0] * under) ratios.set(`${family} ${tier}`, [over, under])
    }
  }
  return ratios
}

/** The rates of the tiers that the list does not name for a model. */
class DerivedTiers {
  readonly #id: string
  readonly #standard: TierRates
  readonly #ratios: TierRatios
  readonly #known = new Map<Tier, TierRates>()

  constructor(id: string, standard: TierRates, ratios: TierRatios) {
    this.#id = id
    this.#standard = standard
    this.#ratios = ratios
  }

  get(tier: Tier): TierRates {
    const known = this.#known.get(tier)
    if (known !== undefined) return known
    const { short, long } = this.#standard
    const ratio = this.#ratios.ratioOf(this.#id, tier)
    const rates = {
      listed: false,
      short: times(short, ratio),
      long: long === null ? null : times(long, ratio),
    }
    this.#known.set(tier, rates)
    return rates
  }
}

/** A rate that is not a whole number of nanodollars is rounded up. */
function times(tariff: Tariff, [over, under]: Ratio): Tariff {
  const rates = new Map<Unit, bigint>()
  for (const [unit, nanos] of tariff) rates.set(unit, (nanos * over + under - 1n) / under)
  return rates
}

/**
 * The list prices that come with the product, as they are. A test checks them, not every start: the check took a sixth of
 * the time until the gateway served, most of it to load the code that checks.
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
