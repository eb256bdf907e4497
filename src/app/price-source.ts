import type { Clock } from '../kernel/clock.ts'
import type { Log } from '../kernel/log.ts'
import { buildBook, type PriceLayers, storedLayers } from '../pricing/build-book.ts'
import { findModel, type PriceBook, versionAt } from '../pricing/price-book.ts'
import type { OverlayEntry, PriceList } from '../pricing/price-file.ts'
import { BUILT_IN_LIST, mergeLists } from '../pricing/price-list.ts'
import type { Store } from '../store/store.ts'

type PriceStore = Pick<Store, 'readPriceChanges' | 'readPrices' | 'storePriceList' | 'storePriceVersion'>

interface PriceParts {
  readonly store: PriceStore
  readonly clock: Clock
  readonly log: Log
}

/** What the configuration of the node adds to the prices of the database. */
type OwnLayers = Pick<PriceLayers, 'overlays' | 'fallbacks'>

/** How long after a change on another node this node may use the former prices. */
const REFRESH_MS = 1_000

/** The prices of this node: the list and the set prices of the database, and the overlay file of the node. */
export class PriceSource {
  readonly #around: PriceParts
  #layers: PriceLayers
  #book: PriceBook
  #changes = -1
  #refreshing: Promise<void> | null = null
  #timer: NodeJS.Timeout | null = null
  #use: ((book: PriceBook) => void) | null = null

  private constructor(around: PriceParts, own: OwnLayers) {
    this.#around = around
    this.#layers = { list: BUILT_IN_LIST, sets: [], ...own }
    this.#book = buildBook(this.#layers)
  }

  /** Puts the list of this release into the database, if it is newer, and reads the prices. */
  static async open(around: PriceParts, own: OwnLayers): Promise<PriceSource> {
    const prices = new PriceSource(around, own)
    await storeReleaseList(around)
    await prices.refresh()
    prices.#warnOfFallbacks()
    return prices
  }

  #warnOfFallbacks(): void {
    const { log, clock } = this.#around
    const version = versionAt(this.#book, clock.nowMs())
    for (const [pattern, model] of version.fallbacks)
      if (findModel(version, model) === null)
        log.warn(
          { setting: 'prices.fallbacks', pattern, model },
          'a fallback names a model that has no price, so it has no effect',
        )
  }

  get book(): PriceBook {
    return this.#book
  }

  get layers(): PriceLayers {
    return this.#layers
  }

  /** `use` is called with each later book, before a call is admitted with it. */
  start(use: (book: PriceBook) => void): void {
    this.#use = use
    const again = () => {
      const { log } = this.#around
      const refreshed = this.refresh().catch((error: Error) =>
        log.error(
          { cause: error.message },
          'the prices of the database could not be read; the former ones stay in use',
        ),
      )
      void refreshed.finally(() => {
        if (this.#timer !== null) this.#timer = setTimeout(again, REFRESH_MS).unref()
      })
    }
    this.#timer = setTimeout(again, REFRESH_MS).unref()
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
  }

  async useOverlays(overlays: readonly OverlayEntry[]): Promise<void> {
    await this.#change({ ...this.#layers, overlays })
  }

  /** Reads the prices of the database, if they have changed. */
  async refresh(): Promise<void> {
    while (this.#refreshing !== null) await this.#refreshing
    this.#refreshing = this.#read().finally(() => {
      this.#refreshing = null
    })
    await this.#refreshing
  }

  async #read(): Promise<void> {
    const { store } = this.#around
    if ((await store.readPriceChanges()) === this.#changes) return
    const stored = await store.readPrices()
    await this.#change(storedLayers(stored, BUILT_IN_LIST, this.#layers))
    this.#changes = stored.changes
  }

  /** The current and all later versions are stored before a call can be billed with them. */
  async #change(layers: PriceLayers): Promise<void> {
    const { store, clock } = this.#around
    const book = buildBook(layers)
    const nowMs = clock.nowMs()
    const first = book.versions.findLastIndex(
      ({ effectiveFromMs }) => (effectiveFromMs ?? -Infinity) <= nowMs,
    )
    for (const { id, entry } of book.versions.slice(Math.max(first, 0)))
      await store.storePriceVersion(id, JSON.stringify(entry))
    this.#layers = layers
    this.#book = book
    this.#use?.(book)
  }
}

async function storeReleaseList({ store, clock, log }: PriceParts): Promise<void> {
  const { listJson } = await store.readPrices()
  const stored = listJson === null ? null : (JSON.parse(listJson) as PriceList)
  if (stored !== null && stored.revision >= BUILT_IN_LIST.revision) return
  const merged = stored === null ? { list: BUILT_IN_LIST } : mergeLists(stored, BUILT_IN_LIST)
  if ('reason' in merged)
    log.warn(
      { conflict: merged.reason, names: merged.names },
      'the list of prices in the database has changes that this release does not have; the list of the release replaces it',
    )
  const list = 'list' in merged ? merged.list : BUILT_IN_LIST
  await store.storePriceList(list.revision, JSON.stringify(list), null, clock.nowMs())
}
