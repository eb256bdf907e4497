import { parseUsd } from '../kernel/money.ts'
import { TIERS, type Tier, UNITS, type Unit } from '../kernel/usage.ts'
import { TEXT_MODES } from './check-models.ts'
import { DerivedTiers, TierRatios } from './derive-tiers.ts'
import type { ModelPrice, PriceVersion, RateTable, Tariff, TierRates } from './price-book.ts'
import type { BookVersionEntry, ModelEntry, RateTableEntry, TariffEntry } from './price-file.ts'
import { UNIT_PRICES } from './rate-keys.ts'

/** From the words of a file to maps of whole numbers, once per version, so that rating a call only looks up. */
export function compileVersion(entry: BookVersionEntry, effectiveFromMs: number | null): PriceVersion {
  const ratios = entry.rules === 2 ? new TierRatios(entry.models) : null
  const models = entry.models.map((model) => compileModel(model, entry.tools, ratios))
  const names = new Map<string, ModelPrice>()
  for (const model of models)
    for (const name of [model.id, ...(model.entry.aliases ?? [])]) names.set(name, model)
  const defaultModels = new Map(Object.entries(entry.default_models ?? {}))
  return { id: entry.id, effectiveFromMs, rules: entry.rules ?? 1, defaultModels, models, names, entry }
}

/** Without `ratios`, nothing is derived that the entry does not list. */
function compileModel(
  entry: ModelEntry,
  tools: BookVersionEntry['tools'],
  ratios: TierRatios | null,
): ModelPrice {
  const provided = Object.hasOwn(tools, entry.provider) ? tools[entry.provider] : undefined
  const geography = Object.entries(entry.geography ?? {}).map(
    ([place, factor]) => [place, nanos(factor)] as const,
  )
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
    regionalUplift: typeof entry.regional_uplift === 'string' ? nanos(entry.regional_uplift) : null,
    geography: new Map(geography),
    searchesEachCall: entry.searches_each_call ?? false,
    entry,
  }
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

/** What a model for text reads of an image is tokens like any other, unless the list has rates for images. */
function withImages(rates: Rates): Tariff {
  const tariff = compileTariff(rates)
  if (tariff.has('image_input_tokens')) return tariff
  const [plain, cached] = [tariff.get('input_tokens'), tariff.get('cache_read_tokens')]
  if (plain !== undefined) tariff.set('image_input_tokens', plain)
  if (cached !== undefined && !tariff.has('image_cache_read_tokens'))
    tariff.set('image_cache_read_tokens', cached)
  return tariff
}

/** The file was checked before: whatever it holds as a decimal can be read as one. */
function nanos(text: string): bigint {
  const value = parseUsd(text)
  if (value === null) throw new TypeError(`not a decimal: ${text}`)
  return value
}
