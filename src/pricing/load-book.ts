import { createHash } from 'node:crypto'
import type { z } from 'zod'
import type { Usage } from '../kernel/usage.ts'
import { compileVersion } from './compile-version.ts'
import listPrices from './list-prices.json' with { type: 'json' }
import { type PriceBook, type PriceVersion, TEXT_MODES, tariffsOf } from './price-book.ts'
import {
  type BookVersionEntry,
  bookFile,
  type JsonPath,
  type ModelEntry,
  type OverlayEntry,
  type OverlayModelEntry,
  overlayFile,
  overlayListFile,
  PriceProblems,
  type RateTableEntry,
} from './price-file.ts'
import { type Rating, rate, readRating, type StoredRating } from './rate.ts'
import { instantMs } from './rate-keys.ts'

type LoadedBook =
  | { readonly kind: 'book'; readonly book: PriceBook }
  | { readonly kind: 'refused'; readonly problems: readonly string[] }

/** A price book with an overlay on top. A problem in either rejects both. */
export function loadBook(text: string, overlayText?: string): LoadedBook {
  return assemble(readJson(text), overlayText)
}

/** The built-in list prices, with the operator's overlay if there is one. */
export function loadListPrices(overlayText?: string): LoadedBook {
  return assemble({ kind: 'json', value: listPrices }, overlayText)
}

type JsonRead =
  | { readonly kind: 'json'; readonly value: unknown }
  | { readonly kind: 'bad'; readonly message: string }

function readJson(text: string): JsonRead {
  try {
    return { kind: 'json', value: JSON.parse(text.replace(/^\u{feff}/u, '')) }
  } catch (error) {
    return { kind: 'bad', message: `the file is not JSON: ${(error as Error).message}` }
  }
}

function assemble(book: JsonRead, overlayText: string | undefined): LoadedBook {
  const versions = parse(book, () => bookFile)
  if (versions.kind === 'refused') return versions
  checkVersions(versions.data.versions, versions.problems)
  if (versions.problems.hasSome) return { kind: 'refused', problems: versions.problems.list }

  const json = readJson(overlayText ?? '[]')
  const overlays = parse<OverlayEntry | OverlayEntry[]>(json, (value) =>
    Array.isArray(value) ? overlayListFile : overlayFile,
  )
  if (overlays.kind === 'refused') return overlays
  const { data, problems } = overlays
  const dated = Array.isArray(data)
    ? data.map((entry, index) => dateOverlay(entry, [index]))
    : [dateOverlay(data, [])]
  for (const { entry, path } of dated) checkNames(entry.models ?? [], [...path, 'models'], problems)
  if (problems.hasSome) return { kind: 'refused', problems: problems.list }
  return combine(
    versions.data.versions,
    dated.sort((a, b) => a.fromMs - b.fromMs),
    problems,
  )
}

/** Parses a file by the schema that `formOf` chooses from its JSON. */
function parse<T>(
  json: JsonRead,
  formOf: (value: unknown) => z.ZodType<T>,
):
  | { readonly kind: 'read'; readonly data: T; readonly problems: PriceProblems }
  | { readonly kind: 'refused'; readonly problems: readonly string[] } {
  if (json.kind === 'bad') return { kind: 'refused', problems: [json.message] }
  const problems = new PriceProblems()
  const parsed = formOf(json.value).safeParse(json.value, { reportInput: true })
  if (parsed.success) return { kind: 'read', data: parsed.data, problems }
  problems.addIssues(parsed.error)
  return { kind: 'refused', problems: problems.list }
}

function checkVersions(versions: readonly BookVersionEntry[], problems: PriceProblems): void {
  for (const [index, version] of versions.entries()) {
    const path = ['versions', index]
    const before = versions[index - 1]
    if (before !== undefined && instantMs(before.effective_from) >= instantMs(version.effective_from))
      problems.add([...path, 'effective_from'], 'must be later than that of the version before')
    if (versions.findIndex(({ id }) => id === version.id) !== index)
      problems.add([...path, 'id'], `"${version.id}" is the id of another version too`)
    checkNames(version.models, [...path, 'models'], problems)
    for (const [at, model] of version.models.entries()) checkModel(model, [...path, 'models', at], problems)
    checkDefaults(version.default_models ?? {}, version.models, [...path, 'default_models'], problems)
  }
}

/** An overlay file is one overlay, or a list of them for changes at several dates. */
interface DatedOverlay {
  readonly entry: OverlayEntry
  readonly path: readonly number[]
  readonly fromMs: number
}

function dateOverlay(entry: OverlayEntry, path: readonly number[]): DatedOverlay {
  return {
    entry,
    path,
    fromMs: entry.effective_from === undefined ? -Infinity : instantMs(entry.effective_from),
  }
}

type Prices = Pick<BookVersionEntry, 'models' | 'tools' | 'default_models'>

/** A new version begins whenever the book or the overlay changes something. */
function combine(
  versions: readonly BookVersionEntry[],
  overlays: readonly DatedOverlay[],
  problems: PriceProblems,
): LoadedBook {
  const starts = versions.map((version, index) =>
    index === 0 ? -Infinity : instantMs(version.effective_from),
  )
  const instants = [...new Set([...starts, ...overlays.map(({ fromMs }) => fromMs)])].sort((a, b) => a - b)
  const compiled: PriceVersion[] = []
  for (const fromMs of instants) {
    const base = versions[starts.findLastIndex((start) => start <= fromMs)]
    if (base === undefined) continue
    const applied = overlays.filter((overlay) => overlay.fromMs <= fromMs)
    let prices: Prices = base
    for (const { entry, path } of applied) prices = applyOverlay(prices, entry, path, problems)
    const entry = {
      ...base,
      ...prices,
      id: base.id + mark(applied),
      effective_from: Number.isFinite(fromMs) ? new Date(fromMs).toISOString() : base.effective_from,
    }
    compiled.push(compileVersion(entry, Number.isFinite(fromMs) ? fromMs : null))
  }
  if (problems.hasSome) return { kind: 'refused', problems: [...new Set(problems.list)] }
  const [first, ...later] = compiled
  if (first === undefined) return { kind: 'refused', problems: ['the book holds no version'] }
  return { kind: 'book', book: { versions: [first, ...later] } }
}

/** A digest of the overlays' content, not layout: the same prices have the same id. */
function mark(applied: readonly DatedOverlay[]): string {
  if (applied.length === 0) return ''
  const content = JSON.stringify(applied.map(({ entry }) => entry))
  return `+${createHash('sha256').update(content).digest('hex').slice(0, 8)}`
}

/**
 * Applies the overlay. An existing model retains members that the overlay omits (aliases, limits, multipliers), but its
 * `rates` are replaced as a whole: a mix of old and new rates would be no price list.
 */
function applyOverlay(
  prices: Prices,
  overlay: OverlayEntry,
  path: JsonPath,
  problems: PriceProblems,
): Prices {
  const models = new Map(prices.models.map((model) => [model.id, model]))
  for (const [index, change] of (overlay.models ?? []).entries()) {
    const at = [...path, 'models', index]
    const merged = mergeModel(models.get(change.id), change, at, problems)
    if (merged === null) continue
    checkModel(merged, at, problems)
    checkSides(merged, at, problems)
    for (const [aliasAt, alias] of (change.aliases ?? []).entries()) {
      if (alias !== merged.id && models.has(alias))
        problems.add([...at, 'aliases', aliasAt], `"${alias}" is the id of a model of its own`)
    }
    models.set(merged.id, merged)
  }
  const claimed = new Map((overlay.models ?? []).flatMap(namesOf))
  const named = [...models.values()].map((model) => withoutNames(model, claimed))
  const { default_models: defaults = {} } = overlay
  checkDefaults(defaults, named, [...path, 'default_models'], problems)
  return {
    models: named,
    tools: mergeTools(prices.tools, overlay.tools ?? {}),
    default_models: mergeDefaults(prices.default_models, defaults),
  }
}

function mergeModel(
  existing: ModelEntry | undefined,
  change: OverlayModelEntry,
  path: JsonPath,
  problems: PriceProblems,
): ModelEntry | null {
  const provider = change.provider ?? existing?.provider
  const rates = change.rates ?? existing?.rates
  if (provider === undefined || rates === undefined) {
    const missing = provider === undefined ? '"provider"' : '"rates"'
    problems.add(path, `"${change.id}" is not in the book, so it needs ${missing}`)
    return null
  }
  return { ...existing, ...change, provider, rates }
}

function namesOf(model: OverlayModelEntry): [name: string, owner: string][] {
  return [model.id, ...(model.aliases ?? [])].map((name) => [name, model.id])
}

/** Removes names that the overlay gives to another model. */
function withoutNames(model: ModelEntry, claimed: ReadonlyMap<string, string>): ModelEntry {
  const aliases = model.aliases?.filter((alias) => (claimed.get(alias) ?? model.id) === model.id)
  return aliases === undefined || aliases.length === model.aliases?.length ? model : { ...model, aliases }
}

function mergeDefaults(
  defaults: Prices['default_models'],
  changes: Readonly<Record<string, string | null>>,
): Record<string, string> {
  const merged: Record<string, string> = {}
  for (const [endpoint, model] of Object.entries({ ...defaults, ...changes }))
    if (model !== null) merged[endpoint] = model
  return merged
}

function mergeTools(tools: Prices['tools'], changes: Prices['tools']): Prices['tools'] {
  const merged = { ...tools }
  for (const [provider, prices] of Object.entries(changes))
    merged[provider] = { ...(Object.hasOwn(tools, provider) ? tools[provider] : {}), ...prices }
  return merged
}

/** Checks that a schema cannot express: unique names, and tables complete enough for rating. */

interface NamedEntry {
  readonly id: string
  readonly aliases?: readonly string[] | undefined
}

function checkNames(models: readonly NamedEntry[], path: JsonPath, problems: PriceProblems): void {
  const owners = new Map<string, string>()
  const claim = (name: string, owner: string, at: JsonPath): void => {
    const other = owners.get(name)
    if (other === undefined) owners.set(name, owner)
    else problems.add(at, `"${name}" is given twice, here and for "${other}"`)
  }
  for (const [index, model] of models.entries()) {
    claim(model.id, model.id, [...path, index, 'id'])
    for (const [at, alias] of (model.aliases ?? []).entries())
      claim(alias, model.id, [...path, index, 'aliases', at])
  }
}

function checkDefaults(
  defaults: Readonly<Record<string, string | null>>,
  models: readonly NamedEntry[],
  path: JsonPath,
  problems: PriceProblems,
): void {
  const names = new Set(models.flatMap(({ id, aliases }) => [id, ...(aliases ?? [])]))
  for (const [endpoint, model] of Object.entries(defaults)) {
    if (model !== null && !names.has(model))
      problems.add([...path, endpoint], `"${model}" is no model of the book`)
  }
}

function checkModel(model: ModelEntry, path: JsonPath, problems: PriceProblems): void {
  checkTable(model.rates, [...path, 'rates'], problems)
  for (const [endpoint, table] of Object.entries(model.endpoints ?? {}))
    checkTable(table, [...path, 'endpoints', endpoint], problems)
  if (!TEXT_MODES.includes(model.mode ?? 'chat')) return
  for (const key of ['input', 'output'] as const) {
    if (typeof model.rates.standard[key] === 'string') continue
    problems.add([...path, 'rates', 'standard'], `a ${model.mode ?? 'chat'} model needs a rate for "${key}"`)
  }
}

/**
 * If a tier, or its long prompts, has no rate at all for one side, nothing can substitute it, and that side would be
 * free. Versions stored with calls are not checked.
 */
function checkSides(model: ModelEntry, path: JsonPath, problems: PriceProblems): void {
  if (!TEXT_MODES.includes(model.mode ?? 'chat')) return
  for (const [tier, tariff] of tariffsOf(model.rates)) {
    const { long_context: long } = tariff
    for (const key of ['input', 'output'] as const) {
      const needs = `a ${model.mode ?? 'chat'} model needs a rate for "${key}"`
      if (tier !== 'standard' && typeof tariff[key] !== 'string')
        problems.add([...path, 'rates', tier], needs)
      if (long !== undefined && typeof long[key] !== 'string')
        problems.add([...path, 'rates', tier, 'long_context'], needs)
    }
  }
}

/** A tier without long-prompt rates would rate long prompts as short. */
function checkTable(table: RateTableEntry, path: JsonPath, problems: PriceProblems): void {
  for (const [tier, tariff] of tariffsOf(table)) {
    const at = [...path, tier]
    if (table.long_context_above === undefined && tariff.long_context !== undefined)
      problems.add([...at, 'long_context'], 'needs "long_context_above" beside the tiers')
    if (table.long_context_above !== undefined && tariff.long_context === undefined)
      problems.add(at, 'needs "long_context", because the model has "long_context_above"')
  }
}

/** The stored record from which a bill is recomputed. */
export interface RecordedCall {
  readonly usage: string
  readonly rating: string
  readonly priceVersionJson: string
}

/** A stored price version; null if unreadable. */
export function readVersion(json: string): PriceVersion | null {
  const loaded = loadBook(`{"versions":[${json}]}`)
  return loaded.kind === 'book' ? loaded.book.versions[0] : null
}

/** Rates a recorded call from its record: usage, rating inputs and price version. */
export function createRateAgain(): (call: RecordedCall) => Rating | null {
  const versions = new Map<string, PriceVersion | null>()
  const versionOf = (json: string): PriceVersion | null => {
    const known = versions.get(json)
    if (known !== undefined) return known
    const version = readVersion(json)
    versions.set(json, version)
    return version
  }
  // Cached: similar calls have the same rating text, and parsing it took a tenth of an audit's time.
  let lastRating = ''
  let stored: StoredRating | null = null
  return ({ usage, rating, priceVersionJson }) => {
    const version = versionOf(priceVersionJson)
    if (rating !== lastRating) stored = readRating(rating)
    lastRating = rating
    if (version === null) throw new Error('the price version of the call cannot be read')
    if (stored === null) throw new Error('how the call was rated cannot be read')
    const rated = rate(JSON.parse(usage) as Usage, stored.context, version, stored.discount)
    return rated.kind === 'unpriced' ? null : rated
  }
}
