import type { Catalog, CatalogModel } from './catalog.ts'
import { readJsonWithLines } from './json-with-lines.ts'
import { mergeCatalogModel } from './merge-catalog.ts'
import type { PriceVersion } from './price-book.ts'
import type { ModelEntry, OverlayEntry, OverlayModelEntry } from './price-file.ts'
import { isGenaiPrices, readGenaiPrices } from './read-genai-prices.ts'
import { isLitellm, readLitellm } from './read-litellm.ts'

export interface ImportOptions {
  /** The list prices that the overlay will lie on. */
  readonly shipped: PriceVersion
  /** The prices in force, which the differences are against. What an overlay in use added is carried over. */
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
  const overlay: OverlayEntry = {
    ...toolChanges(shipped, current),
    ...defaultChanges(shipped, current),
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

function readCatalog(json: unknown, nowMs: number): Catalog | null {
  if (isGenaiPrices(json)) return readGenaiPrices(json, nowMs)
  return isLitellm(json) ? readLitellm(json) : null
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

/** An entry as its scalars by path. */
function flatten(value: unknown, path = '', into = new Map<string, string>()): ReadonlyMap<string, string> {
  if (typeof value === 'object' && value !== null) {
    for (const [key, inner] of Object.entries(value))
      flatten(inner, path === '' ? key : `${path}.${key}`, into)
  } else if (value !== undefined && value !== null) into.set(path, String(value))
  return into
}

/** What of a model has to stand in an overlay on the shipped prices. */
function overlayModel(shipped: ModelEntry | undefined, model: ModelEntry): OverlayModelEntry[] {
  if (shipped === undefined) return [model]
  const was = new Map<string, unknown>(Object.entries(shipped))
  const changed = Object.entries(model).filter(
    ([key, value]) => JSON.stringify(value) !== JSON.stringify(was.get(key)),
  )
  return changed.length === 0 ? [] : [{ id: model.id, ...Object.fromEntries(changed) }]
}

function defaultChanges(
  { defaultModels: before }: PriceVersion,
  { defaultModels: now }: PriceVersion,
): Pick<OverlayEntry, 'default_models'> {
  const changed = [...new Set([...before.keys(), ...now.keys()])]
    .filter((endpoint) => before.get(endpoint) !== now.get(endpoint))
    .map((endpoint) => [endpoint, now.get(endpoint) ?? null])
  return changed.length === 0 ? {} : { default_models: Object.fromEntries(changed) }
}

function toolChanges(shipped: PriceVersion, current: PriceVersion): Pick<OverlayEntry, 'tools'> {
  const changed = Object.entries(current.entry.tools).filter(
    ([provider, prices]) => JSON.stringify(prices) !== JSON.stringify(shipped.entry.tools[provider]),
  )
  return changed.length === 0 ? {} : { tools: Object.fromEntries(changed) }
}
