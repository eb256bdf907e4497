import type { Histogram } from '../kernel/histogram.ts'
import { formatUsd, type Nanos } from '../kernel/money.ts'
import { VERSION } from '../kernel/runtime.ts'
import { SURFACE_NAMES, type Surface } from '../kernel/vocabulary.ts'
import type { StoreLoad } from '../store/store.ts'
import { type CallCounts, STATUS_CLASSES } from './call-counts.ts'

/**
 * Every metric of the gateway: name, type, labels, help text and the source of its samples. Operators depend on the
 * names, so they never change. A test compares this table with docs/OPERATIONS.md.
 */

type Labels = Readonly<Record<string, string>>

export interface Sample {
  readonly labels: Labels
  readonly value: number
}

/** A histogram with its labels. */
export interface HistogramSample {
  readonly labels: Labels
  readonly histogram: Histogram
}

interface Described {
  readonly name: string
  readonly labels: readonly string[]
  readonly help: string
}

export type Metric =
  | (Described & { readonly type: 'counter' | 'gauge'; read(from: MetricSources): Samples })
  | (Described & { readonly type: 'histogram'; read(from: MetricSources): readonly HistogramSample[] })

/** Null: the source did not answer in time, so this scrape has no sample of the metric. */
type Samples = readonly Sample[] | Promise<readonly Sample[] | null>

/** The sources of the metrics: in memory, except those that return a promise. */
export interface MetricSources {
  readonly counts: CallCounts
  readonly load: StoreLoad
  readonly inFlight: { readonly count: number }
  readonly waitingCalls: { readonly count: number }
  webhooksWaiting(): Promise<number | null>
  webhookFailures(): number
  /** Open connections to upstream; null for a surface without one. */
  connections(surface: Surface): { readonly busy: number; readonly idle: number } | null
  /** The holds of all nodes; null if the store did not answer in time. */
  heldNanos(): Promise<Nanos | null>
  /** The number of objects of deferred calls; null if the store did not answer in time. */
  deferredObjects(): Promise<number | null>
  nowMs(): number
  /** The 99th percentile in seconds since the previous scrape. */
  eventLoopDelay(): number
}

const only = (value: number): Sample[] => [{ labels: {}, value }]

/** The decimal text is exact and parses to the nearest double, so nothing is rounded twice. */
const usd = (nanos: Nanos): number => Number(formatUsd(nanos))

/** A sample for each model that had a call, on each surface. */
function ofModels(
  { counts }: MetricSources,
  samples: (counts: ModelCounts) => readonly Sample[],
): readonly Sample[] {
  return SURFACE_NAMES.flatMap((surface) =>
    [...counts.surfaces[surface].models.values()].flatMap((model) =>
      samples(model).map(({ labels, value }) => ({
        labels: { surface, model: model.model, ...labels },
        value,
      })),
    ),
  )
}

type ModelCounts = CallCounts['surfaces'][Surface]['models'] extends ReadonlyMap<string, infer C> ? C : never

function ofSurfaces(histogram: (surface: Surface) => Histogram): readonly HistogramSample[] {
  return SURFACE_NAMES.map((surface) => ({ labels: { surface }, histogram: histogram(surface) }))
}

export const METRICS: readonly Metric[] = [
  {
    name: 'tollgate_calls_total',
    type: 'counter',
    labels: ['surface', 'model', 'status_class'],
    help: "Calls that this node admitted and closed, by upstream's status (none: no answer).",
    read: (from) =>
      ofModels(from, ({ calls }) =>
        STATUS_CLASSES.flatMap((status_class, i) => {
          const value = calls[i] ?? 0
          return value === 0 ? [] : [{ labels: { status_class }, value }]
        }),
      ),
  },
  {
    name: 'tollgate_tokens_total',
    type: 'counter',
    labels: ['surface', 'model', 'kind'],
    help: 'Tokens of those calls: input, output, cache_read or cache_write. Each token is of one kind.',
    read: (from) =>
      ofModels(from, ({ input, output, cacheRead, cacheWrite }) => [
        { labels: { kind: 'input' }, value: input },
        { labels: { kind: 'output' }, value: output },
        { labels: { kind: 'cache_read' }, value: cacheRead },
        { labels: { kind: 'cache_write' }, value: cacheWrite },
      ]),
  },
  {
    name: 'tollgate_cost_usd_total',
    type: 'counter',
    labels: ['surface', 'model'],
    help: 'Cost of those calls.',
    read: (from) => ofModels(from, ({ costNanos }) => only(usd(costNanos))),
  },
  {
    name: 'tollgate_list_cost_usd_total',
    type: 'counter',
    labels: ['surface', 'model'],
    help: 'The same at list prices, before the discount.',
    read: (from) => ofModels(from, ({ listNanos }) => only(usd(listNanos))),
  },
  {
    name: 'tollgate_unpriced_calls_total',
    type: 'counter',
    labels: ['model'],
    help: 'Calls that could not be priced, or only in part.',
    read({ counts }) {
      const byModel = new Map<string, number>()
      for (const surface of SURFACE_NAMES) {
        for (const { model, unpriced } of counts.surfaces[surface].models.values())
          byModel.set(model, (byModel.get(model) ?? 0) + unpriced)
      }
      return [...byModel].map(([model, value]) => ({ labels: { model }, value }))
    },
  },
  {
    name: 'tollgate_refusals_total',
    type: 'counter',
    labels: ['code'],
    help: 'Proxied requests that the gateway refused or broke off with this error code.',
    read: ({ counts }) => [...counts.refusals].map(([code, value]) => ({ labels: { code }, value })),
  },
  {
    name: 'tollgate_overhead_seconds',
    type: 'histogram',
    labels: ['surface'],
    help: 'Time of a call besides its time upstream: reading, waiting for a budget, admission and settlement.',
    read: ({ counts }) => ofSurfaces((surface) => counts.surfaces[surface].overheadSeconds),
  },
  {
    name: 'tollgate_upstream_seconds',
    type: 'histogram',
    labels: ['surface'],
    help: 'From sending a call upstream to the end of its reply.',
    read: ({ counts }) => ofSurfaces((surface) => counts.surfaces[surface].upstreamSeconds),
  },
  {
    name: 'tollgate_calls_in_flight',
    type: 'gauge',
    labels: [],
    help: 'Calls of this node that are upstream now, and standing reservations of open WebSockets.',
    read: ({ inFlight }) => only(inFlight.count),
  },
  {
    name: 'tollgate_calls_waiting',
    type: 'gauge',
    labels: [],
    help: 'Calls of this node that wait for a budget or for credit.',
    read: ({ waitingCalls }) => only(waitingCalls.count),
  },
  {
    name: 'tollgate_held_usd',
    type: 'gauge',
    labels: [],
    help: 'USD reserved by calls in flight on all nodes that share the database. Every node reports the same value.',
    async read({ heldNanos }) {
      const nanos = await heldNanos()
      return nanos === null ? null : only(usd(nanos))
    },
  },
  {
    name: 'tollgate_deferred_objects',
    type: 'gauge',
    labels: [],
    help: 'Upstream objects whose cost is not known yet, on all nodes that share the database. Every node reports the same value.',
    async read({ deferredObjects }) {
      const objects = await deferredObjects()
      return objects === null ? null : only(objects)
    },
  },
  {
    name: 'tollgate_webhook_queue',
    type: 'gauge',
    labels: [],
    help: 'Pending webhook deliveries on all nodes that share the database. Every node reports the same value.',
    async read({ webhooksWaiting }) {
      const waiting = await webhooksWaiting()
      return waiting === null ? null : only(waiting)
    },
  },
  {
    name: 'tollgate_webhook_failures_total',
    type: 'counter',
    labels: [],
    help: 'Attempts of this node to deliver a webhook that failed.',
    read: ({ webhookFailures }) => only(webhookFailures()),
  },
  {
    name: 'tollgate_events_total',
    type: 'counter',
    labels: ['type'],
    help: 'Events that this node has recorded.',
    read: ({ load }) => [...load.events].map(([type, value]) => ({ labels: { type }, value })),
  },
  {
    name: 'tollgate_store_queue',
    type: 'gauge',
    labels: [],
    help: 'Commands of this node that wait for the batch before them. At the limit calls are refused with store_unavailable.',
    read: ({ load }) => only(load.waiting),
  },
  {
    name: 'tollgate_store_batch_calls',
    type: 'histogram',
    labels: [],
    help: 'Admissions and settlements that shared one transaction.',
    read: ({ load }) => [{ labels: {}, histogram: load.batchCalls }],
  },
  {
    name: 'tollgate_store_commit_seconds',
    type: 'histogram',
    labels: [],
    help: 'Duration of such a transaction: with SQLite its fsync, with PostgreSQL the round trip and its locks.',
    read: ({ load }) => [{ labels: {}, histogram: load.commitSeconds }],
  },
  {
    name: 'tollgate_event_loop_delay_seconds',
    type: 'gauge',
    labels: [],
    help: 'Delay of the event loop (99th percentile) since the previous scrape.',
    read: ({ eventLoopDelay }) => only(eventLoopDelay()),
  },
  {
    name: 'tollgate_upstream_connections',
    type: 'gauge',
    labels: ['surface', 'state'],
    help: 'Open connections to upstream: busy ones carry a call or are being made for one, idle ones wait for the next.',
    read: ({ connections }) =>
      SURFACE_NAMES.flatMap((surface) => {
        const open = connections(surface)
        if (open === null) return []
        return [
          { labels: { surface, state: 'busy' }, value: open.busy },
          { labels: { surface, state: 'idle' }, value: open.idle },
        ]
      }),
  },
  {
    name: 'tollgate_price_book_info',
    type: 'gauge',
    labels: ['version'],
    help: 'The price version in use on this node.',
    read: ({ counts, nowMs }) => [{ labels: { version: counts.priceVersionAt(nowMs()).id }, value: 1 }],
  },
  {
    name: 'tollgate_build_info',
    type: 'gauge',
    labels: ['version', 'node'],
    help: 'The version of the gateway and of the Node.js it runs on.',
    read: () => [{ labels: { version: VERSION, node: process.version }, value: 1 }],
  },
]
