import type { Config } from '../config/read-config.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Log } from '../kernel/log.ts'
import { SURFACE_NAMES, type Surface } from '../kernel/vocabulary.ts'
import { createWorkLoop, type WorkLoop } from '../kernel/work-loop.ts'
import { findModel, versionAt } from '../pricing/price-book.ts'
import type { Store } from '../store/store.ts'
import type { CallCounts } from '../telemetry/call-counts.ts'
import type { PriceSource } from './price-source.ts'

/** The setting in which nodes share what upstreams listed last. */
const OFFERED = 'offered_models'

const HOUR_MS = 60 * 60 * 1_000
const DAY_MS = 24 * HOUR_MS
const NAMES_SHOWN_MAX = 20

interface Offered {
  readonly atMs: number
  readonly models: Readonly<Partial<Record<Surface, readonly string[]>>>
}

interface Sources {
  readonly store: Pick<Store, 'readSetting' | 'writeSetting' | 'replaceSetting'>
  readonly config: Pick<Config, Surface | 'egress'>
  readonly clock: Clock
  readonly log: Log
  readonly counts: Pick<CallCounts, 'useOffered'>
  readonly priceSource: Pick<PriceSource, 'book'>
}

/**
 * Asks the installation's upstreams for their models: each node at its start, then one node a day, whose answer the others
 * read. With it, the gateway tells models without a price from names that clients invent.
 */
export class ModelProbe {
  readonly #sources: Sources
  readonly #stopping = new AbortController()
  readonly #loop: WorkLoop
  #isFirst = true

  constructor(sources: Sources) {
    this.#sources = sources
    this.#loop = createWorkLoop({
      poll: () => this.#poll(),
      onFailure(error) {
        const cause = (error as Error).message
        sources.log.warn({ cause }, "the upstreams' models could not be read; retry in an hour")
        return HOUR_MS
      },
      stopping: this.#stopping.signal,
    })
  }

  start(): void {
    this.#loop.start()
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#loop.ended()
  }

  async #poll(): Promise<number> {
    const { store, clock } = this.#sources
    const text = await store.readSetting(OFFERED)
    const former = text === null ? null : (JSON.parse(text) as Offered)
    if (former !== null) this.#use(former)
    const atMs = clock.nowMs()
    // At its start, each node asks: its own URL and key may be wrong. After that, one node claims the day.
    if (!this.#isFirst) {
      const isDue = former === null || former.atMs <= atMs - DAY_MS
      const claim = JSON.stringify({ ...former, atMs })
      if (!isDue || (text !== null && !(await store.replaceSetting(OFFERED, text, claim)))) return HOUR_MS
    }
    this.#isFirst = false
    const offered = await this.#probe(former, atMs)
    if (offered === null || this.#stopping.signal.aborted) return HOUR_MS
    await store.writeSetting(OFFERED, JSON.stringify(offered))
    this.#use(offered)
    return HOUR_MS
  }

  async #probe(former: Offered | null, atMs: number): Promise<Offered | null> {
    const { config, log } = this.#sources
    const { probeUpstreams } = await import('../doctor/upstream-checks.ts')
    const probes = await probeUpstreams(config, this.#stopping.signal)
    if (this.#stopping.signal.aborted) return former
    for (const { result } of probes)
      if (result.state !== 'ok') log.warn({ check: 'upstream_keys', todo: result.todo }, result.found)
    const listed = probes.flatMap(({ surface, models }) =>
      models === null ? [] : [[surface, models] as const],
    )
    warnOfUnpriced(
      listed.flatMap(([, models]) => models),
      this.#sources,
    )
    return { atMs, models: { ...former?.models, ...Object.fromEntries(listed) } }
  }

  #use({ models }: Offered): void {
    for (const surface of SURFACE_NAMES) {
      const listed = models[surface]
      this.#sources.counts.useOffered(surface, listed === undefined ? null : new Set(listed))
    }
  }
}

function warnOfUnpriced(offered: readonly string[], { priceSource, clock, log }: Sources): void {
  const version = versionAt(priceSource.book, clock.nowMs())
  const names = offered.filter((name) => findModel(version, name) === null)
  if (names.length === 0) return
  const more = names.length > NAMES_SHOWN_MAX ? ` and ${names.length - NAMES_SHOWN_MAX} more` : ''
  log.warn(
    { check: 'prices', todo: 'Set their prices with `tollgate prices set`, if they are called.' },
    `upstream offers models without a price: ${names.slice(0, NAMES_SHOWN_MAX).join(', ')}${more}`,
  )
}
