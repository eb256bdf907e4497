import { createHash } from 'node:crypto'
import { assumptionsFor, withAssumptions } from './assumptions.ts'
import { compileVersion, instantMs } from './compile-version.ts'
import type { PriceBook, PriceVersion } from './price-book.ts'
import type { BookVersionEntry, ListChange, OverlayEntry, PriceList, SetPriceEntry } from './price-file.ts'

/**
 * The price book is built from three layers. The first that names a model at an instant decides: the overlay file of the
 * node, prices that operators set, the list. Each start date in a layer begins a version.
 */
export interface PriceLayers {
  readonly list: PriceList
  readonly sets: readonly SetPrice[]
  readonly overlays: readonly OverlayEntry[]
  /** For models without a price: the model whose price applies, by name or pattern. */
  readonly fallbacks?: Fallbacks
}

export type Fallbacks = Readonly<Record<string, string>>

/** The price of one model from an instant on. Null: the set price ends, and the list applies again. */
export interface SetPrice {
  readonly model: string
  readonly effectiveFromMs: number
  readonly entry: SetPriceEntry | null
}

/** The layers of a database's prices. `listJson` null: no gateway has started with the database. */
export function storedLayers(
  stored: {
    readonly listJson: string | null
    readonly sets: readonly (Omit<SetPrice, 'entry'> & { readonly entry: string | null })[]
  },
  builtIn: PriceList,
  { overlays, fallbacks }: Pick<PriceLayers, 'overlays' | 'fallbacks'>,
): PriceLayers {
  const list = stored.listJson === null ? builtIn : (JSON.parse(stored.listJson) as PriceList)
  const sets = stored.sets.map(({ entry, ...set }) => ({
    ...set,
    entry: entry === null ? null : (JSON.parse(entry) as SetPriceEntry),
  }))
  return { list, sets, overlays, ...(fallbacks === undefined ? {} : { fallbacks }) }
}

export function buildBook(layers: PriceLayers): PriceBook {
  const [first = -Infinity, ...later] = startsOf(layers)
  return {
    versions: [new LazyVersion(layers, first), ...later.map((fromMs) => new LazyVersion(layers, fromMs))],
  }
}

/** The instants at which prices change, from -Infinity on. */
function startsOf({ list, sets, overlays }: PriceLayers): readonly number[] {
  const dated = [...list.changes, ...overlays].map(startOf)
  const starts = new Set([-Infinity, ...dated, ...sets.map(({ effectiveFromMs }) => effectiveFromMs)])
  return [...starts].sort((a, b) => a - b)
}

function startOf({ effective_from: from }: { readonly effective_from?: string | undefined }): number {
  return from === undefined ? -Infinity : instantMs(from)
}

/** Compiled when it is first used: a long history costs nothing until somebody rerates it. */
class LazyVersion implements PriceVersion {
  readonly id: string
  readonly effectiveFromMs: number | null
  readonly #applied: AppliedLayers
  #entry: BookVersionEntry | null = null
  #compiled: PriceVersion | null = null

  constructor(layers: PriceLayers, fromMs: number) {
    this.#applied = appliedAt(layers, fromMs)
    this.id = idOf(this.#applied)
    this.effectiveFromMs = Number.isFinite(fromMs) ? fromMs : null
  }

  get entry(): BookVersionEntry {
    this.#entry ??= mergeLayers(this.#applied, this.id, this.effectiveFromMs)
    return this.#entry
  }

  get models(): PriceVersion['models'] {
    return this.#version.models
  }

  get names(): PriceVersion['names'] {
    return this.#version.names
  }

  get fallbacks(): PriceVersion['fallbacks'] {
    return this.#version.fallbacks
  }

  get defaultModels(): PriceVersion['defaultModels'] {
    return this.#version.defaultModels
  }

  get #version(): PriceVersion {
    this.#compiled ??= compileVersion(this.entry, this.effectiveFromMs)
    return this.#compiled
  }
}

/** What of each layer applies at an instant, in the order of their dates. */
export interface AppliedLayers {
  readonly base: PriceList['base']
  readonly changes: readonly ListChange[]
  /** Whether the list gave no change a date before that of an earlier one. Then the last change names its prices. */
  readonly isInOrder: boolean
  readonly sets: readonly SetPrice[]
  readonly overlays: readonly OverlayEntry[]
  readonly fallbacks: Fallbacks
}

export function appliedAt(
  { list, sets, overlays, fallbacks = {} }: PriceLayers,
  atMs: number,
): AppliedLayers {
  const begun = <T extends { readonly effective_from?: string | undefined }>(
    all: readonly T[],
  ): readonly T[] => all.filter((each) => startOf(each) <= atMs).toSorted((a, b) => startOf(a) - startOf(b))
  const latest = new Map<string, SetPrice>()
  for (const set of sets) {
    const known = latest.get(set.model)
    if (set.effectiveFromMs <= atMs && set.effectiveFromMs >= (known?.effectiveFromMs ?? -Infinity))
      latest.set(set.model, set)
  }
  const current = [...latest.values()].filter(({ entry }) => entry !== null)
  const changes = begun(list.changes)
  const asListed = list.changes.filter((change) => changes.includes(change))
  return {
    base: list.base,
    changes,
    isInOrder: asListed.every((change, at) => change === changes[at]),
    sets: current.sort((a, b) => (a.model < b.model ? -1 : 1)),
    overlays: begun(overlays),
    fallbacks,
  }
}

/**
 * The last change of the list and, if there is more, a digest of it: on all nodes, the same prices have the same id, and
 * other prices another one. Calls keep the id of their prices.
 */
function idOf({ base, changes, isInOrder, sets, overlays, fallbacks }: AppliedLayers): string {
  const listed = changes.at(-1)?.id ?? base.id
  const isPlainList = isInOrder && !base.id.includes(ADDED)
  const more: unknown[] = []
  if (Object.keys(fallbacks).length > 0) more.push(fallbacks)
  if (!isPlainList) more.push([base.id, changes.map(({ id }) => id)])
  if (sets.length + overlays.length + more.length === 0) return listed
  const content = [sets.map(({ model, entry }) => [model, entry]), overlays, ...more]
  return listed + ADDED + digestOf(content)
}

/** Stands before the digest of what is not in the part of an id before it. */
export const ADDED = '+'

export const digestOf = (content: unknown): string =>
  createHash('sha256').update(JSON.stringify(content)).digest('hex').slice(0, 8)

/** The prices of a version, as one file. */
export function mergeLayers(
  { base, changes, sets, overlays, fallbacks }: AppliedLayers,
  id: string,
  fromMs: number | null,
): BookVersionEntry {
  const set: OverlayEntry = { models: sets.map(({ model, entry }) => ({ ...entry, id: model })) }
  const listed = changes.map(pricesOf).reduce(applyOverlay, {
    ...base,
    id,
    effective_from: fromMs === null ? base.effective_from : new Date(fromMs).toISOString(),
    ...(Object.keys(fallbacks).length === 0 ? {} : { fallbacks }),
  })
  const merged = [set, ...overlays].reduce(applyOverlay, listed)
  if (merged === listed) return listed
  const models = merged.models.map((model, at) =>
    at < listed.models.length ? model : withAssumptions(model, assumptionsFor(model, listed.models)),
  )
  return { ...merged, models }
}

function pricesOf({ id: _, ...change }: ListChange): OverlayEntry {
  return change
}

/**
 * The prices with the overlay's changes and additions. A model that exists retains the members that the overlay does not
 * mention, but its `rates` are replaced as a whole, because old and new rates do not fit together. A name that the
 * overlay gives to a model is removed from the model that had it. Entries that do not change stay the same objects.
 */
function applyOverlay(prices: BookVersionEntry, overlay: OverlayEntry): BookVersionEntry {
  const changes = new Map((overlay.models ?? []).map((model) => [model.id, model]))
  if (changes.size === 0 && overlay.tools === undefined && overlay.default_models === undefined) return prices
  const names = new Set([...changes.values()].flatMap(({ id, aliases = [] }) => [id, ...aliases]))
  const models = prices.models.map((model) => {
    const change = changes.get(model.id)
    const losesName = change === undefined && model.aliases?.some((alias) => names.has(alias)) === true
    if (change === undefined && !losesName) return model
    const aliases = change?.aliases ?? model.aliases?.filter((alias) => !names.has(alias))
    return { ...model, ...change, ...(aliases && { aliases }) }
  })
  const known = new Set(prices.models.map(({ id }) => id))
  const added = [...changes.values()].filter(({ id }) => !known.has(id))
  const defaults = Object.entries({ ...prices.default_models, ...overlay.default_models })
  const tools = { ...prices.tools }
  for (const [provider, fees] of Object.entries(overlay.tools ?? {}))
    tools[provider] = { ...tools[provider], ...fees }
  return {
    ...prices,
    models: [...models, ...added] as BookVersionEntry['models'],
    tools,
    default_models: Object.fromEntries(defaults.filter((each): each is [string, string] => each[1] !== null)),
  }
}
