import { createHash } from 'node:crypto'
import { applyOverlay } from './apply-overlay.ts'
import { checkDefaults, checkModel, checkNames } from './check-models.ts'
import { compileVersion } from './compile-version.ts'
import { instantMs } from './instant-ms.ts'
import { type JsonRead, readJsonWithLines } from './json-with-lines.ts'
import listPrices from './list-prices.json' with { type: 'json' }
import type { PriceBook, PriceVersion } from './price-book.ts'
import {
  type BookVersionEntry,
  bookFile,
  type OverlayEntry,
  overlayFile,
  overlayListFile,
} from './price-file.ts'
import { PriceProblems } from './price-problems.ts'

export type LoadedBook =
  | { readonly kind: 'book'; readonly book: PriceBook }
  | { readonly kind: 'refused'; readonly problems: readonly string[] }

/** A book from its text and, on top of it, an overlay. Either all of it is good or nothing is taken. */
export function loadBook(text: string, overlayText?: string): LoadedBook {
  return assemble(readJsonWithLines(text), overlayText)
}

/** The list prices that come with the product, with the operator's overlay if there is one. */
export function loadListPrices(overlayText?: string): LoadedBook {
  return assemble({ kind: 'json', value: listPrices, lineOf: () => 0 }, overlayText)
}

function assemble(book: JsonRead, overlayText: string | undefined): LoadedBook {
  const versions = readBook(book)
  if (versions.kind === 'refused') return versions
  const overlays = readOverlays(overlayText)
  if (overlays.kind === 'refused') return overlays
  return combine(versions.read, overlays.read, overlays.problems)
}

type Read<T> =
  | { readonly kind: 'read'; readonly read: readonly T[]; readonly problems: PriceProblems }
  | { readonly kind: 'refused'; readonly problems: readonly string[] }

function readBook(json: JsonRead): Read<BookVersionEntry> {
  if (json.kind === 'bad') return notJson(json)
  const problems = new PriceProblems(json.lineOf)
  const parsed = bookFile.safeParse(json.value, { reportInput: true })
  if (!parsed.success) {
    problems.addIssues(parsed.error)
    return { kind: 'refused', problems: problems.list }
  }
  const { versions } = parsed.data
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
  if (problems.any) return { kind: 'refused', problems: problems.list }
  return { kind: 'read', read: versions, problems }
}

/** An overlay file is one overlay, or a list of them for changes at several dates. */
interface DatedOverlay {
  readonly entry: OverlayEntry
  readonly path: readonly number[]
  readonly fromMs: number
}

function readOverlays(text: string | undefined): Read<DatedOverlay> {
  if (text === undefined) return { kind: 'read', read: [], problems: new PriceProblems(() => 0) }
  const json = readJsonWithLines(text)
  if (json.kind === 'bad') return notJson(json)
  const problems = new PriceProblems(json.lineOf)
  const listed = Array.isArray(json.value)
  const parsed = listed
    ? overlayListFile.safeParse(json.value, { reportInput: true })
    : overlayFile.safeParse(json.value, { reportInput: true })
  if (!parsed.success) {
    problems.addIssues(parsed.error)
    return { kind: 'refused', problems: problems.list }
  }
  const entries = Array.isArray(parsed.data) ? parsed.data : [parsed.data]
  const overlays = entries.map((entry, index) => ({
    entry,
    path: listed ? [index] : [],
    fromMs: entry.effective_from === undefined ? -Infinity : instantMs(entry.effective_from),
  }))
  for (const { entry, path } of overlays) checkNames(entry.models ?? [], [...path, 'models'], problems)
  if (problems.any) return { kind: 'refused', problems: problems.list }
  return { kind: 'read', read: overlays.sort((a, b) => a.fromMs - b.fromMs), problems }
}

/** A new version begins wherever the book or the overlay changes something. */
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
    let prices: Pick<BookVersionEntry, 'models' | 'tools' | 'default_models'> = base
    for (const { entry, path } of applied) prices = applyOverlay(prices, entry, path, problems)
    const entry = {
      ...base,
      ...prices,
      id: base.id + mark(applied),
      effective_from: Number.isFinite(fromMs) ? new Date(fromMs).toISOString() : base.effective_from,
    }
    compiled.push(compileVersion(entry, Number.isFinite(fromMs) ? fromMs : null))
  }
  if (problems.any) return { kind: 'refused', problems: [...new Set(problems.list)] }
  const [first, ...later] = compiled
  if (first === undefined) return { kind: 'refused', problems: ['the book holds no version'] }
  return { kind: 'book', book: { versions: [first, ...later] } }
}

/** Of what the overlays say, not of how they are laid out: the same prices keep their id. */
function mark(applied: readonly DatedOverlay[]): string {
  if (applied.length === 0) return ''
  const content = JSON.stringify(applied.map(({ entry }) => entry))
  return `+${createHash('sha256').update(content).digest('hex').slice(0, 8)}`
}

function notJson(bad: Extract<JsonRead, { kind: 'bad' }>): { kind: 'refused'; problems: readonly string[] } {
  return { kind: 'refused', problems: [`line ${bad.line}: ${bad.message}`] }
}
