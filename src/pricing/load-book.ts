import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { Usage } from '../kernel/usage.ts'
import { compileVersion, instantMs, LIST_PRICES } from './compile-version.ts'
import type { PriceBook, PriceVersion } from './price-book.ts'
import { type BookVersionEntry, type OverlayEntry, overlayFile, versionFile } from './price-file.ts'
import { type RatedLine, type Rating, rate, ratedLines } from './rate.ts'
import { readRating } from './rating-text.ts'
import type { RatingContext } from './request-profile.ts'

type LoadedBook =
  | { readonly kind: 'book'; readonly book: PriceBook }
  | { readonly kind: 'refused'; readonly problems: readonly string[] }

/** Each start date of the list or an overlay begins a version. A refusal reports all problems of the file. */
export function loadPrices(
  overlayText = '[]',
  versions: readonly BookVersionEntry[] = LIST_PRICES,
): LoadedBook {
  const read = parseText(overlayFile, overlayText)
  if (!read.success) return { kind: 'refused', problems: read.problems }
  const overlays = read.data.toSorted((a, b) => startOf(a) - startOf(b))
  const starts = versions.map((version, index) => (index === 0 ? -Infinity : startOf(version)))
  const instants = [...new Set([...starts, ...overlays.map(startOf)])].sort((a, b) => a - b)
  const compiled: PriceVersion[] = []
  const problems = new Set<string>()
  for (const fromMs of instants) {
    const base = versions[starts.findLastIndex((start) => start <= fromMs)]
    if (base === undefined) continue
    const applied = overlays.filter((overlay) => startOf(overlay) <= fromMs)
    const isDated = Number.isFinite(fromMs)
    const merged = parse(versionFile, {
      ...applied.reduce(applyOverlay, base),
      id: base.id + digestOf(applied),
      effective_from: isDated ? new Date(fromMs).toISOString() : base.effective_from,
    })
    if (merged.success) compiled.push(compileVersion(merged.data, isDated ? fromMs : null))
    else for (const problem of merged.problems) problems.add(problem)
  }
  const [first, ...later] = compiled
  if (problems.size > 0 || first === undefined) return { kind: 'refused', problems: [...problems] }
  return { kind: 'book', book: { versions: [first, ...later] } }
}

function startOf({ effective_from: from }: { readonly effective_from?: string | undefined }): number {
  return from === undefined ? -Infinity : instantMs(from)
}

/** A digest of the overlays' content, which does not depend on their layout: the same prices have the same id. */
function digestOf(applied: readonly OverlayEntry[]): string {
  if (applied.length === 0) return ''
  return `+${createHash('sha256').update(JSON.stringify(applied)).digest('hex').slice(0, 8)}`
}

/**
 * The prices with the overlay's changes and additions, which are checked afterwards. A model that exists retains the
 * members that the overlay does not mention, but its `rates` are replaced as a whole, because old and new rates do not
 * fit together. A name that the overlay gives to a model is removed from the model that had it.
 */
function applyOverlay(prices: BookVersionEntry, overlay: OverlayEntry): BookVersionEntry {
  const changes = new Map((overlay.models ?? []).map((model) => [model.id, model]))
  const names = new Set([...changes.values()].flatMap(({ id, aliases = [] }) => [id, ...aliases]))
  const models = prices.models.map((model) => {
    const change = changes.get(model.id)
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

type Parsed<T> =
  | { readonly success: true; readonly data: T }
  | { readonly success: false; readonly problems: readonly string[] }

function parseText<T>(schemaOf: (value: unknown) => z.ZodType<T>, text: string): Parsed<T> {
  try {
    const value: unknown = JSON.parse(text.replace(/^\u{feff}/u, ''))
    return parse(schemaOf(value), value)
  } catch (error) {
    return { success: false, problems: [`the file is not JSON: ${(error as Error).message}`] }
  }
}

const PROBLEMS_MAX = 50

function parse<T>(schema: z.ZodType<T>, value: unknown): Parsed<T> {
  const parsed = schema.safeParse(value, {
    error: (issue) => {
      if (issue.code === 'invalid_key') return issue.issues.map(({ message }) => message).join('; ')
      return issue.input === undefined ? 'is missing' : undefined
    },
  })
  if (parsed.success) return parsed
  const problems = parsed.error.issues.flatMap((issue) =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => problemAt([...issue.path, key], 'is not a member of price files', value))
      : [problemAt(issue.path, issue.message, value)],
  )
  const omitted = problems.length - PROBLEMS_MAX
  return {
    success: false,
    problems: omitted > 0 ? [...problems.slice(0, PROBLEMS_MAX), `and ${omitted} more`] : problems,
  }
}

/** Names a model by its id, because its index in the merged list is not its index in the file. */
function problemAt(path: readonly PropertyKey[], message: string, value: unknown): string {
  const [first, index] = path
  const file = value as { readonly models?: readonly { readonly id?: unknown }[] } | null
  const id = first === 'models' && typeof index === 'number' ? file?.models?.[index]?.id : undefined
  if (typeof id === 'string') return `model "${id}": ${z.core.toDotPath(path.slice(2))}: ${message}`
  return path.length === 0 ? message : `${z.core.toDotPath(path)}: ${message}`
}

/** Null if unreadable. */
export function readVersion(json: string): PriceVersion | null {
  const parsed = parseText(() => versionFile, json)
  return parsed.success ? compileVersion(parsed.data, null) : null
}

/** Rates a recorded call from its record: usage, rating inputs and price version. */
export function createRateAgain(): (
  call: Readonly<Record<'usage' | 'rating' | 'priceVersionJson', string>>,
) => (Rating & { readonly lines: readonly RatedLine[] }) | null {
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
  let context: RatingContext | null = null
  return ({ usage, rating, priceVersionJson }) => {
    const version = versionOf(priceVersionJson)
    if (rating !== lastRating) context = readRating(rating)
    lastRating = rating
    if (version === null) throw new Error('the price version of the call cannot be read')
    if (context === null) throw new Error('how the call was rated cannot be read')
    const used = JSON.parse(usage) as Usage
    const rated = rate(used, context, version)
    return rated.kind === 'unpriced' ? null : { ...rated, lines: ratedLines(used, context, version) }
  }
}
