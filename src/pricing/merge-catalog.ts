import { parseUsd } from '../kernel/money.ts'
import { TIERS, type Tier } from '../kernel/usage.ts'
import { type CatalogModel, type CatalogRates, defined } from './catalog.ts'
import { TEXT_MODES } from './check-models.ts'
import { findModel, type PriceVersion } from './price-book.ts'
import type { BookVersionEntry, ModelEntry, RateTableEntry, ToolsEntry } from './price-file.ts'

/**
 * A model of the book with what a catalog states about it, or a new model. Limits and aliases that the book has are
 * kept: catalogs disagree on them, and a smaller window would make holds too small.
 */
export function mergeCatalogModel(
  current: PriceVersion,
  model: CatalogModel,
  notes: string[],
): ModelEntry | null {
  const before = findModel(current, model.id)?.entry
  if (before === undefined && !canBeRated(model)) {
    notes.push(`${model.id}: no rates that can be used`)
    return null
  }
  const tools = toolsOf(before, model, current.entry.tools)
  // Names that mean another model here are left to it.
  const aliases = model.aliases?.filter((name) => !current.names.has(name))
  return {
    ...before,
    id: before?.id ?? model.id,
    provider: before?.provider ?? model.provider,
    rates: mergeTable(before?.rates, model, notes),
    ...defined({
      aliases: before === undefined && aliases?.length ? aliases : before?.aliases,
      mode: before?.mode ?? model.mode,
      context_window_tokens: before?.context_window_tokens ?? model.contextWindowTokens,
      max_output_tokens: before?.max_output_tokens ?? model.maxOutputTokens,
      regional_uplift: model.regionalUplift ?? before?.regional_uplift,
      geography: model.geography ?? before?.geography,
      tools: Object.keys(tools).length > 0 ? tools : undefined,
    }),
  }
}

function canBeRated(model: CatalogModel): boolean {
  const standard = model.tiers.get('standard')?.short ?? {}
  const isText = TEXT_MODES.includes(model.mode ?? 'chat')
  return isText ? 'input' in standard && 'output' in standard : Object.keys(standard).length > 0
}

/** Tiers and rates that the catalog does not know stay as they were, which may no longer fit: that is noted. */
function mergeTable(
  before: RateTableEntry | undefined,
  model: CatalogModel,
  notes: string[],
): RateTableEntry {
  const table: RateTableEntry = { ...before, standard: { ...before?.standard } }
  for (const [tier, rates] of model.tiers) table[tier] = replace(table[tier], rates.short)
  for (const tier of TIERS) {
    if (before?.[tier] !== undefined || table[tier] === undefined || isWhole(tier, model, before)) continue
    if (tier === 'standard') continue
    delete table[tier]
    notes.push(`${model.id}: ${tier} left out, because the file has only some of its rates`)
  }
  mergeLongContext(table, model, notes)
  const kept = TIERS.filter((tier) => before?.[tier] !== undefined && !model.tiers.has(tier))
  const changed = JSON.stringify(table.standard) !== JSON.stringify(before?.standard)
  if (changed && kept.length > 0)
    notes.push(`${model.id}: ${kept.join(', ')} not in the file, kept as they were`)
  return table
}

/** A tier that the book does not have yet needs what the standard one has, or it would rate the rest by guessing. */
function isWhole(tier: Tier, model: CatalogModel, before: RateTableEntry | undefined): boolean {
  const { short = {}, long = {} } = model.tiers.get(tier) ?? {}
  const isLong = before?.long_context_above !== undefined || model.longContextAbove !== undefined
  if (isLong && Object.keys(long).length === 0) return false
  return !TEXT_MODES.includes(model.mode ?? 'chat') || ('input' in short && 'output' in short)
}

function mergeLongContext(table: RateTableEntry, model: CatalogModel, notes: string[]): void {
  if (model.longContextAbove === undefined) return
  const stated = (tier: Tier): CatalogRates['long'] => model.tiers.get(tier)?.long ?? {}
  const tiers = TIERS.filter((tier) => table[tier] !== undefined)
  const lacking = tiers.filter(
    (tier) => table[tier]?.long_context === undefined && Object.keys(stated(tier)).length === 0,
  )
  if (lacking.length > 0) {
    notes.push(
      `${model.id}: long context left out, because the file does not have it for ${lacking.join(', ')}`,
    )
    return
  }
  table.long_context_above = model.longContextAbove
  for (const tier of tiers)
    table[tier] = { ...table[tier], long_context: replace(table[tier]?.long_context, stated(tier)) }
}

/** Prices per call are the provider's; a model gets its own only where the catalog says something else. */
function toolsOf(
  before: ModelEntry | undefined,
  model: CatalogModel,
  providerTools: BookVersionEntry['tools'],
): ToolsEntry {
  const provider = before?.provider ?? model.provider
  const provided = Object.hasOwn(providerTools, provider) ? providerTools[provider] : undefined
  const known: Rates = { ...provided, ...before?.tools }
  const own = Object.entries(model.tools ?? {}).filter(([key, price]) => !same(known[key], price))
  return { ...before?.tools, ...Object.fromEntries(own) }
}

type Rates = Readonly<Record<string, unknown>>

/** Replaces only what differs as a number: "5.0" in the book is the catalog's "5". */
function replace<T extends object>(before: T | undefined, stated: Rates): T {
  const known: Rates = { ...before }
  const changes = Object.entries(stated).filter(([key, price]) => !same(known[key], price))
  return { ...before, ...Object.fromEntries(changes) } as T
}

function same(a: unknown, b: unknown): boolean {
  return typeof a === 'string' && typeof b === 'string' && parseUsd(a) === parseUsd(b)
}
