import { parseUsd } from '../kernel/money.ts'
import { TIERS, type Tier } from '../kernel/usage.ts'
import { readJsonWithLines } from './json-with-lines.ts'
import { findModel, type PriceVersion, TEXT_MODES } from './price-book.ts'
import type {
  BookVersionEntry,
  ModelEntry,
  OverlayEntry,
  OverlayModelEntry,
  RateTableEntry,
  ToolsEntry,
} from './price-file.ts'
import { type Catalog, type CatalogModel, type CatalogRates, readCatalog } from './read-catalogs.ts'

interface ImportOptions {
  /** The list prices that the overlay will lie on. */
  readonly shipped: PriceVersion
  /** The prices in force, against which differences are stated. Prices that an overlay in use added are carried over. */
  readonly current: PriceVersion
  readonly nowMs: number
  /** Only these models; all, if empty. */
  readonly only: readonly string[]
}

export interface Difference {
  readonly model: string
  /** The member of the price file, such as `rates.standard.input`. */
  readonly member: string
  readonly from: string | null
  readonly to: string | null
}

export type Import =
  | {
      readonly kind: 'import'
      readonly source: Catalog['source']
      /** The overlay file as text. */
      readonly overlay: string
      readonly differences: readonly Difference[]
      readonly notes: readonly string[]
    }
  | { readonly kind: 'refused'; readonly problems: readonly string[] }

/** Turns a public price catalog into an overlay, and says what it would change. */
export function importPrices(text: string, options: ImportOptions): Import {
  const json = readJsonWithLines(text)
  if (json.kind === 'bad') return { kind: 'refused', problems: [`line ${json.line}: ${json.message}`] }
  const catalog = readCatalog(json.value, options.nowMs)
  if (catalog === null) {
    const known = 'the data file of genai-prices or model_prices_and_context_window.json of LiteLLM'
    return { kind: 'refused', problems: [`the file is neither ${known}`] }
  }
  const { shipped, current, only } = options
  const notes = [...catalog.notes]
  const wanted = catalog.models.filter(({ id }) => only.length === 0 || only.includes(id))
  const changed = new Map<string, ModelEntry>()
  for (const model of preferIds(wanted, current)) {
    const merged = mergeCatalogModel(current, model, notes)
    if (merged !== null) changed.set(merged.id, merged)
  }
  const differences = [...changed.values()].flatMap((model) =>
    differencesOf(current.names.get(model.id)?.entry, model),
  )
  const models = new Map([...current.models.map((model) => [model.id, model.entry] as const), ...changed])
  // A null in the overlay takes a default model away.
  const noDefaults = Object.fromEntries([...shipped.defaultModels.keys()].map((endpoint) => [endpoint, null]))
  const defaults = { ...noDefaults, ...Object.fromEntries(current.defaultModels) }
  const overlay: OverlayEntry = {
    tools: changesOf(shipped.entry.tools, current.entry.tools),
    default_models: changesOf(Object.fromEntries(shipped.defaultModels), defaults),
    models: [...models.values()].flatMap((model) => overlayModel(shipped.names.get(model.id)?.entry, model)),
  }
  return {
    kind: 'import',
    source: catalog.source,
    overlay: `${JSON.stringify(overlay, null, 2)}\n`,
    differences,
    notes,
  }
}

/** A catalog may list a model under its id and under aliases; the entry of the id counts. */
function preferIds(models: readonly CatalogModel[], current: PriceVersion): readonly CatalogModel[] {
  const chosen = new Map<string, CatalogModel>()
  for (const model of models) {
    const id = current.names.get(model.id)?.id ?? model.id
    if (!chosen.has(id) || model.id === id) chosen.set(id, model)
  }
  return [...chosen.values()]
}

function differencesOf(before: ModelEntry | undefined, after: ModelEntry): Difference[] {
  const from = flatten(before)
  const to = flatten(after)
  const members = [...new Set([...from.keys(), ...to.keys()])]
  return members.flatMap((member) => {
    const [old, now] = [from.get(member) ?? null, to.get(member) ?? null]
    return old === now ? [] : [{ model: after.id, member, from: old, to: now }]
  })
}

/** The scalars of an entry by their paths. */
function flatten(value: unknown, path = '', into = new Map<string, string>()): ReadonlyMap<string, string> {
  if (typeof value === 'object' && value !== null) {
    for (const [key, inner] of Object.entries(value))
      flatten(inner, path === '' ? key : `${path}.${key}`, into)
  } else if (value !== undefined && value !== null) into.set(path, String(value))
  return into
}

/** The members of a model that an overlay on the shipped prices has to have. */
function overlayModel(shipped: ModelEntry | undefined, model: ModelEntry): OverlayModelEntry[] {
  if (shipped === undefined) return [model]
  const changed = changesOf(shipped, model)
  return changed === undefined ? [] : [{ id: model.id, ...changed }]
}

/** The members whose values have changed, if there are any. */
function changesOf(before: object, now: object) {
  const was = new Map<string, unknown>(Object.entries(before))
  const changed = Object.entries(now).filter(
    ([key, value]) => JSON.stringify(value) !== JSON.stringify(was.get(key)),
  )
  return changed.length === 0 ? undefined : Object.fromEntries(changed)
}

/**
 * A model of the book with the prices that a catalog states, or a new model. Limits and aliases that the book has are
 * kept: catalogs disagree on them, and a smaller window would make holds too small.
 */
function mergeCatalogModel(current: PriceVersion, model: CatalogModel, notes: string[]): ModelEntry | null {
  const before = findModel(current, model.id)?.entry
  if (before === undefined && !canBeRated(model)) {
    notes.push(`${model.id}: no rates that can be used`)
    return null
  }
  const tools = toolsOf(before, model, current.entry.tools)
  // An alias that is the name of a model in the book stays with that model.
  const aliases = model.aliases?.filter((name) => !current.names.has(name))
  return {
    ...before,
    id: before?.id ?? model.id,
    provider: before?.provider ?? model.provider,
    rates: mergeTable(before?.rates, model, notes),
    aliases: before === undefined && aliases?.length ? aliases : before?.aliases,
    mode: before?.mode ?? model.mode,
    context_window_tokens: before?.context_window_tokens ?? model.contextWindowTokens,
    max_output_tokens: before?.max_output_tokens ?? model.maxOutputTokens,
    regional_uplift: model.regionalUplift ?? before?.regional_uplift,
    geography: model.geography ?? before?.geography,
    tools: Object.keys(tools).length > 0 ? tools : undefined,
  }
}

function canBeRated(model: CatalogModel): boolean {
  const standard = model.tiers.get('standard')?.short ?? {}
  const isText = TEXT_MODES.includes(model.mode ?? 'chat')
  return isText ? 'input' in standard && 'output' in standard : Object.keys(standard).length > 0
}

/** Tiers and rates that the catalog does not know stay as they were. Such tiers may no longer fit, so they are noted. */
function mergeTable(
  before: RateTableEntry | undefined,
  model: CatalogModel,
  notes: string[],
): RateTableEntry {
  const table: RateTableEntry = { ...before, standard: { ...before?.standard } }
  for (const [tier, rates] of model.tiers) table[tier] = replaceRates(table[tier], rates.short)
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

/** A tier that the book does not have yet needs the rates that the standard tier has, or missing rates would be guessed. */
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
  for (const tier of tiers) {
    const { input, output, long_context: before } = table[tier] ?? {}
    // A side that the file states for short prompts alone costs the same for long ones.
    table[tier] = { ...table[tier], long_context: replaceRates({ input, output, ...before }, stated(tier)) }
  }
}

/** Prices per call are the provider's; a model gets its own only where the catalog states another price. */
function toolsOf(
  before: ModelEntry | undefined,
  model: CatalogModel,
  providerTools: BookVersionEntry['tools'],
): ToolsEntry {
  const provider = before?.provider ?? model.provider
  const provided = Object.hasOwn(providerTools, provider) ? providerTools[provider] : undefined
  const known: Rates = { ...provided, ...before?.tools }
  const own = Object.entries(model.tools ?? {}).filter(([key, price]) => !isSamePrice(known[key], price))
  return { ...before?.tools, ...Object.fromEntries(own) }
}

type Rates = Readonly<Record<string, unknown>>

/** Replaces only rates that differ as a number: "5.0" in the book is the catalog's "5". */
function replaceRates<T extends object>(before: T | undefined, stated: Rates): T {
  const known: Rates = { ...before }
  const changes = Object.entries(stated).filter(([key, price]) => !isSamePrice(known[key], price))
  return { ...before, ...Object.fromEntries(changes) } as T
}

function isSamePrice(a: unknown, b: unknown): boolean {
  return typeof a === 'string' && typeof b === 'string' && parseUsd(a) === parseUsd(b)
}
