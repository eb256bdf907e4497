import { z } from 'zod'
import type { Usage } from '../kernel/usage.ts'
import { buildBook, type PriceLayers } from './build-book.ts'
import { compileVersion } from './compile-version.ts'
import type { PriceBook, PriceVersion } from './price-book.ts'
import {
  listFile,
  type OverlayEntry,
  overlayFile,
  type PriceList,
  type SetPriceEntry,
  setPriceFile,
  versionFile,
} from './price-file.ts'
import { BUILT_IN_LAYERS } from './price-list.ts'
import { type RatedLine, type Rating, rate, ratedLines } from './rate.ts'
import { type RatingContext, readRating } from './rating-context.ts'

/** What was read, or all problems of it. */
type Read<T> =
  | { readonly kind: 'read'; readonly value: T }
  | { readonly kind: 'refused'; readonly problems: readonly string[] }

interface LoadedPrices {
  readonly overlays: readonly OverlayEntry[]
  readonly book: PriceBook
}

/** Reads an overlay file on top of the other layers. */
export function loadPrices(overlayText = '[]', layers: PriceLayers = BUILT_IN_LAYERS): Read<LoadedPrices> {
  const read = parseText(overlayFile, overlayText)
  if (read.kind === 'refused') return read
  const overlays = read.value
  const loaded = loadLayers({ ...layers, overlays })
  return loaded.kind === 'refused' ? loaded : { kind: 'read', value: { overlays, book: loaded.value } }
}

/** Checks each version from an instant on. Layers that fit one by one may not fit together. */
export function loadLayers(layers: PriceLayers, fromMs = -Infinity): Read<PriceBook> {
  const book = buildBook(layers)
  const problems = book.versions
    .filter(({ effectiveFromMs }) => (effectiveFromMs ?? -Infinity) >= fromMs)
    .flatMap(({ entry }) => {
      const read = parse(versionFile, entry)
      return read.kind === 'read' ? [] : read.problems
    })
  return problems.length > 0
    ? { kind: 'refused', problems: [...new Set(problems)] }
    : { kind: 'read', value: book }
}

/** Reads a list of prices from a file or a request. */
export function readPriceList(value: unknown): Read<PriceList> {
  return parse(listFile, value)
}

export function readSetPrice(value: unknown): Read<SetPriceEntry> {
  return parse(setPriceFile, value)
}

function parseText<T>(schemaOf: (value: unknown) => z.ZodType<T>, text: string): Read<T> {
  try {
    const value: unknown = JSON.parse(text.replace(/^\u{feff}/u, ''))
    return parse(schemaOf(value), value)
  } catch (error) {
    return { kind: 'refused', problems: [`the file is not JSON: ${(error as Error).message}`] }
  }
}

const PROBLEMS_MAX = 50

function parse<T>(schema: z.ZodType<T>, value: unknown): Read<T> {
  const parsed = schema.safeParse(value, {
    error: (issue) => {
      if (issue.code === 'invalid_key') return issue.issues.map(({ message }) => message).join('; ')
      return issue.input === undefined ? 'is missing' : undefined
    },
  })
  if (parsed.success) return { kind: 'read', value: parsed.data }
  const problems = parsed.error.issues.flatMap((issue) =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => problemAt([...issue.path, key], 'is not a member of price files', value))
      : [problemAt(issue.path, issue.message, value)],
  )
  const omitted = problems.length - PROBLEMS_MAX
  return {
    kind: 'refused',
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
export function parseVersion(json: string): PriceVersion | null {
  const parsed = parseText(() => versionFile, json)
  return parsed.kind === 'read' ? compileVersion(parsed.value, null) : null
}

/** Rates a recorded call from its record: usage, rating inputs and price version. */
export function createRateAgain(): (
  call: Readonly<Record<'usage' | 'rating' | 'priceVersionJson', string>>,
) => (Rating & { readonly lines: readonly RatedLine[] }) | null {
  const versions = new Map<string, PriceVersion | null>()
  const versionOf = (json: string): PriceVersion | null => {
    const known = versions.get(json)
    if (known !== undefined) return known
    const version = parseVersion(json)
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
