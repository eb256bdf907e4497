import { parseUsd } from '../kernel/money.ts'
import { UNITS, type Unit } from '../kernel/usage.ts'
import type { ModelPrice, PriceVersion, RateTable, Tariff, TierRates } from './price-book.ts'
import type { BookVersionEntry, ModelEntry, RateTableEntry, TariffEntry } from './price-file.ts'
import { UNIT_PRICES } from './rate-keys.ts'
import { tariffsOf } from './tariffs-of.ts'

/** From the words of a file to maps of whole numbers, once per version, so that rating a call only looks up. */
export function compileVersion(entry: BookVersionEntry, effectiveFromMs: number | null): PriceVersion {
  const models = entry.models.map((model) => compileModel(model, entry.tools))
  const names = new Map<string, ModelPrice>()
  for (const model of models)
    for (const name of [model.id, ...(model.entry.aliases ?? [])]) names.set(name, model)
  return { id: entry.id, effectiveFromMs, models, names, entry }
}

function compileModel(entry: ModelEntry, tools: BookVersionEntry['tools']): ModelPrice {
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
    rates: compileTable(entry.rates),
    endpoints: new Map(
      Object.entries(entry.endpoints ?? {}).map(([endpoint, table]) => [endpoint, compileTable(table)]),
    ),
    tools: compileTariff({ ...provided, ...entry.tools }),
    regionalUplift: typeof entry.regional_uplift === 'string' ? nanos(entry.regional_uplift) : null,
    geography: new Map(geography),
    entry,
  }
}

function compileTable(entry: RateTableEntry): RateTable {
  const others = tariffsOf(entry).filter(([tier]) => tier !== 'standard')
  return {
    longContextAbove: entry.long_context_above ?? null,
    standard: compileTier(entry.standard),
    others: new Map(others.map(([tier, tariff]) => [tier, compileTier(tariff)])),
  }
}

function compileTier(entry: TariffEntry): TierRates {
  const { long_context: long, ...short } = entry
  return { short: compileTariff(short), long: long === undefined ? null : compileTariff(long) }
}

function compileTariff(rates: Readonly<Record<string, string | null | undefined>>): Tariff {
  const tariff = new Map<Unit, bigint>()
  for (const unit of UNITS) {
    const text = rates[UNIT_PRICES[unit].key]
    if (typeof text === 'string') tariff.set(unit, nanos(text))
  }
  return tariff
}

/** The file was checked before: whatever it holds as a decimal can be read as one. */
function nanos(text: string): bigint {
  const value = parseUsd(text)
  if (value === null) throw new TypeError(`not a decimal: ${text}`)
  return value
}
