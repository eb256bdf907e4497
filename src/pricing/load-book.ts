import { setImmediate } from 'node:timers/promises'
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
import { readRating } from './rating-text.ts'
import type { RatingContext } from './request-profile.ts'

type Loaded<T> = T | { readonly kind: 'refused'; readonly problems: readonly string[] }

type LoadedBook = Loaded<{ readonly kind: 'book'; readonly book: PriceBook }>

/** Reads an overlay file on top of the other layers. A refusal reports all problems of the file. */
export function loadPrices(overlayText = '[]', layers: PriceLayers = BUILT_IN_LAYERS) {
  const read = readOverlays(overlayText)
  if (read.kind === 'refused') return read
  const { overlays } = read
  const loaded = loadLayers({ ...layers, overlays })
  return loaded.kind === 'refused' ? loaded : { ...loaded, overlays }
}

export function readOverlays(
  text: string,
): Loaded<{ readonly kind: 'overlays'; readonly overlays: readonly OverlayEntry[] }> {
  const read = parseText(overlayFile, text)
  return read.success
    ? { kind: 'overlays', overlays: read.data }
    : { kind: 'refused', problems: read.problems }
}

/** Checks each version from an instant on. Layers that fit one by one may not fit together. */
export function loadLayers(layers: PriceLayers, fromMs = -Infinity): LoadedBook {
  const book = buildBook(layers)
  return judge(
    book,
    versionsFrom(book, fromMs).flatMap((version) => problemsOf(version)),
  )
}

/** The same, but other work runs between the versions: each takes some milliseconds. */
export async function loadLayersGently(layers: PriceLayers, fromMs: number): Promise<LoadedBook> {
  const book = buildBook(layers)
  const problems: string[] = []
  for (const version of versionsFrom(book, fromMs)) {
    await setImmediate()
    problems.push(...problemsOf(version))
  }
  return judge(book, problems)
}

function versionsFrom({ versions }: PriceBook, fromMs: number): readonly PriceVersion[] {
  return versions.filter(({ effectiveFromMs }) => (effectiveFromMs ?? -Infinity) >= fromMs)
}

function problemsOf({ entry }: PriceVersion): readonly string[] {
  const read = parse(versionFile, entry)
  return read.success ? [] : read.problems
}

function judge(book: PriceBook, problems: readonly string[]): LoadedBook {
  return problems.length > 0 ? { kind: 'refused', problems: [...new Set(problems)] } : { kind: 'book', book }
}

/** Reads a list of prices from a file or a request. */
export function readPriceList(value: unknown): Loaded<{ readonly kind: 'list'; readonly list: PriceList }> {
  const read = parse(listFile, value)
  return read.success ? { kind: 'list', list: read.data } : { kind: 'refused', problems: read.problems }
}

export function readSetPrice(
  value: unknown,
): Loaded<{ readonly kind: 'price'; readonly entry: SetPriceEntry }> {
  const read = parse(setPriceFile, value)
  return read.success ? { kind: 'price', entry: read.data } : { kind: 'refused', problems: read.problems }
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
export function parseVersion(json: string): PriceVersion | null {
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
