import type { Config } from '../config/read-config.ts'
import type { Probe } from '../doctor/upstream-checks.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Log } from '../kernel/log.ts'
import { SURFACE_NAMES, type Surface } from '../kernel/vocabulary.ts'
import { createWorkLoop } from '../kernel/work-loop.ts'
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
export function createModelProbe({ store, config, clock, log, counts, priceSource }: Sources) {
  const stopping = new AbortController()
  let isFirst = true

  async function probe(former: Offered | null, atMs: number): Promise<Offered | null> {
    const { probeUpstreams } = await import('../doctor/upstream-checks.ts')
    const probes = await probeUpstreams(config, stopping.signal)
    if (stopping.signal.aborted) return former
    for (const { result } of probes)
      if (result.state !== 'ok') log.warn({ check: 'upstream_keys', todo: result.todo }, result.found)
    const listed = probes.flatMap(({ surface, models }) =>
      models === null ? [] : [[surface, models] as const],
    )
    warnOfUnpriced(probes)
    return { atMs, models: { ...former?.models, ...Object.fromEntries(listed) } }
  }

  function warnOfUnpriced(probes: readonly Probe[]): void {
    const version = versionAt(priceSource.book, clock.nowMs())
    const names = probes
      .flatMap(({ models }) => models ?? [])
      .filter((name) => findModel(version, name) === null)
    if (names.length === 0) return
    const more = names.length > NAMES_SHOWN_MAX ? ` and ${names.length - NAMES_SHOWN_MAX} more` : ''
    log.warn(
      { check: 'prices', todo: 'Set their prices with `tollgate prices set`, if they are called.' },
      `upstream offers models without a price: ${names.slice(0, NAMES_SHOWN_MAX).join(', ')}${more}`,
    )
  }

  function use({ models }: Offered): void {
    for (const surface of SURFACE_NAMES) {
      const listed = models[surface]
      counts.useOffered(surface, listed === undefined ? null : new Set(listed))
    }
  }

  async function poll(): Promise<number> {
    const text = await store.readSetting(OFFERED)
    const former = text === null ? null : (JSON.parse(text) as Offered)
    if (former !== null) use(former)
    const atMs = clock.nowMs()
    const isDue = former === null || former.atMs <= atMs - DAY_MS
    if (!isFirst && !isDue) return HOUR_MS
    const claim = JSON.stringify({ ...former, atMs })
    // At its start, each node asks: its own URL and key may be wrong.
    if (!isFirst && text !== null && !(await store.replaceSetting(OFFERED, text, claim))) return HOUR_MS
    isFirst = false
    const offered = await probe(former, atMs)
    if (offered === null || stopping.signal.aborted) return HOUR_MS
    await store.writeSetting(OFFERED, JSON.stringify(offered))
    use(offered)
    return HOUR_MS
  }

  const loop = createWorkLoop({
    poll,
    onFailure(error) {
      log.warn(
        { cause: (error as Error).message },
        "the upstreams' models could not be read; retry in an hour",
      )
      return HOUR_MS
    },
    stopping: stopping.signal,
  })
  return {
    start: loop.start,
    async stop(): Promise<void> {
      stopping.abort()
      await loop.ended()
    },
  }
}
