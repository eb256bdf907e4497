import { ERRORS, type ErrorCode } from '../kernel/errors.ts'
import { Histogram } from '../kernel/histogram.ts'
import { SURFACE_NAMES, type Surface } from '../kernel/vocabulary.ts'
import type { CallClosing } from '../ledger/call.ts'
import { findModel, type PriceBook, type PriceVersion, versionAt } from '../pricing/price-book.ts'
import type { Store } from '../store/store.ts'

/** The label of models outside the price book. Names from clients are never labels: their number is unbounded. */
const OTHER_MODEL = 'other'

/** The class of upstream's status. `none`: no answer. */
export const STATUS_CLASSES = ['none', '1xx', '2xx', '3xx', '4xx', '5xx'] as const

/** The sums are whole numbers, because sums of floating-point numbers drift. */
export class ModelCounts {
  readonly model: string
  /** In the order of STATUS_CLASSES. */
  readonly calls: number[] = STATUS_CLASSES.map(() => 0)
  unpriced = 0
  input = 0
  output = 0
  cacheRead = 0
  cacheWrite = 0
  costNanos = 0n
  listNanos = 0n

  constructor(model: string) {
    this.model = model
  }
}

/** Buckets of overhead, from 50 µs (less than any call takes) to one second (the call has waited for a budget). */
const OVERHEAD_SECONDS = [
  ...[0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05],
  ...[0.1, 0.25, 0.5, 1],
]

/** The buckets of upstream's time: from a cached answer to the longest work that SDKs wait for. */
const UPSTREAM_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600]

class SurfaceCounts {
  readonly models = new Map<string, ModelCounts>()
  /** The same counts under every name of a model, so that a call needs one lookup. */
  readonly named = new Map<string, ModelCounts>()
  readonly overheadSeconds = new Histogram(OVERHEAD_SECONDS)
  readonly upstreamSeconds = new Histogram(UPSTREAM_SECONDS)
  /** The models that upstream lists. Null: not known. */
  offered: ReadonlySet<string> | null = null

  ofModel(model: string): ModelCounts {
    const counts = this.models.get(model) ?? new ModelCounts(model)
    this.models.set(model, counts)
    return counts
  }
}

/** Counts calls when their settlement is stored, and refusals when they are answered. Labels are built by a scrape. */
export class CallCounts {
  readonly surfaces = Object.fromEntries(
    SURFACE_NAMES.map((surface) => [surface, new SurfaceCounts()]),
  ) as Readonly<Record<Surface, SurfaceCounts>>
  readonly refusals = new Map((Object.keys(ERRORS) as ErrorCode[]).map((code) => [code, 0]))
  #book: PriceBook

  constructor(book: PriceBook) {
    this.#book = book
  }

  /** Counts further calls under the models of this price book. Earlier counts do not change. */
  useBook(book: PriceBook): void {
    this.#book = book
    for (const surface of SURFACE_NAMES) this.surfaces[surface].named.clear()
  }

  priceVersionAt(atMs: number): PriceVersion {
    return versionAt(this.#book, atMs)
  }

  /** Counts a call under the served model, else under the requested one. `times` is null for a batch's child record. */
  countSettlement(
    surface: Surface,
    modelAsked: string | null,
    { modelServed, status, unpriced, tokens, costNanos, listNanos }: CallClosing,
    times: { readonly overheadMs: number; readonly upstreamMs: number } | null,
  ): void {
    const onSurface = this.surfaces[surface]
    const name = modelServed ?? modelAsked ?? ''
    const counts = onSurface.named.get(name) ?? this.#findCounts(onSurface, name)
    if (times !== null) {
      onSurface.overheadSeconds.observe(times.overheadMs / 1_000)
      onSurface.upstreamSeconds.observe(times.upstreamMs / 1_000)
      const statusClass = status === null || status > 599 ? 0 : Math.trunc(status / 100)
      counts.calls[statusClass] = (counts.calls[statusClass] ?? 0) + 1
    }
    if (unpriced) counts.unpriced += 1
    counts.input += tokens.input
    counts.output += tokens.output
    counts.cacheRead += tokens.cacheRead
    counts.cacheWrite += tokens.cacheWrite
    counts.costNanos += costNanos
    counts.listNanos += listNanos
  }

  /** Counts a call of the previous run. Its record is read, because a closing has no surface or requested model. */
  async countReplay(closing: CallClosing, store: Pick<Store, 'getCall'>): Promise<void> {
    const read = () => store.getCall(closing.requestId)
    const call = await read()
      .catch(read)
      .catch(() => null)
    if (call === null) return
    const { overheadMs, upstreamMs } = closing
    this.countSettlement(call.surface, call.modelAsked, closing, { overheadMs, upstreamMs: upstreamMs ?? 0 })
  }

  /** The models that upstream lists; null: not known. A metric names only these and those of the price book. */
  useOffered(surface: Surface, models: ReadonlySet<string> | null): void {
    this.surfaces[surface].offered = models
  }

  /** Counts a call that was refused because its model has no price. False: upstream offers no such model. */
  countUnpriced(surface: Surface, modelAsked: string | null): boolean {
    const onSurface = this.surfaces[surface]
    this.#findCounts(onSurface, modelAsked ?? '').unpriced += 1
    return onSurface.offered === null || (modelAsked !== null && onSurface.offered.has(modelAsked))
  }

  countRefusal(code: ErrorCode): void {
    this.refusals.set(code, (this.refusals.get(code) ?? 0) + 1)
  }

  /** Counts a model of the price book under its id, even if the call used an alias or a fine-tuned name. */
  #findCounts(surface: SurfaceCounts, name: string): ModelCounts {
    for (const version of this.#book.versions) {
      const model = findModel(version, name)
      if (model === null) continue
      const counts = surface.ofModel(model.id)
      // Fine-tuned names are not cached, because their number is unbounded.
      if (version.names.has(name)) surface.named.set(name, counts)
      return counts
    }
    return surface.ofModel(surface.offered?.has(name) === true ? name : OTHER_MODEL)
  }
}
