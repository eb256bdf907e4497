import { unlessLate } from '../kernel/deadlines.ts'
import type { Histogram } from '../kernel/histogram.ts'
import { formatUsd, type Nanos } from '../kernel/money.ts'
import { VERSION } from '../kernel/runtime.ts'
import { SURFACE_NAMES, type Surface } from '../kernel/vocabulary.ts'
import type { Store, StoreLoad } from '../store/store.ts'
import { type CallCounts, type ModelCounts, STATUS_CLASSES } from './call-counts.ts'

/** Operators depend on the names, so they never change. A test compares this table with docs/OPERATIONS.md. */

export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number | Histogram
}

/** Null: the source did not answer in time, so this scrape has no sample of the metric. */
type Samples = readonly Sample[] | Promise<readonly Sample[] | null>

export interface Metric {
  readonly name: string
  readonly labels: readonly string[]
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  read(from: MetricSources): Samples
}

/** `described`: a name with its labels, such as `tollgate_calls_total{surface,model}`. */
const metricOf =
  (type: Metric['type']) =>
  (described: string, help: string, read: Metric['read']): Metric => {
    const [name = '', labels = ''] = described.split(/[{}]/)
    return { name, labels: labels === '' ? [] : labels.split(','), type, help, read }
  }

const counter = metricOf('counter')
const gauge = metricOf('gauge')
const histogram = metricOf('histogram')

/** The sources of the figures. They are in memory, except those that return a promise. */
export interface MetricSources {
  readonly counts: CallCounts
  readonly load: StoreLoad
  readonly inFlight: { readonly count: number }
  readonly waitingCalls: { readonly count: number }
  readonly store: Pick<Store, 'countDeferred' | 'countWaiting' | 'sumHeld'>
  webhookFailures(): number
  /** Open connections to upstream; null for a surface without one. */
  connections(surface: Surface): { readonly busy: number; readonly idle: number } | null
  nowMs(): number
  /** The 99th percentile in seconds since the previous scrape. */
  eventLoopDelay(): number
}

const unlabelled = (value: number | Histogram): Sample[] => [{ labels: {}, value }]

/** How long a scrape waits for a figure from the database. After that, it is answered without the figure. */
const STORE_MS = 2_000

const unlabelledIfKnown = (value: Promise<number>) =>
  unlessLate(value, STORE_MS).then((known) => (known === null ? null : unlabelled(known)))

const labelledBy = (
  label: string,
  values: Iterable<readonly [text: string, value: number | Histogram]>,
): Sample[] => Array.from(values, ([text, value]) => ({ labels: { [label]: text }, value }))

/** The decimal text is exact and parses to the nearest double, so nothing is rounded twice. */
const usd = (nanos: Nanos): number => Number(formatUsd(nanos))

function ofModels({ counts }: MetricSources, samples: (counts: ModelCounts) => readonly Sample[]): Sample[] {
  return SURFACE_NAMES.flatMap((surface) =>
    [...counts.surfaces[surface].models.values()].flatMap((model) =>
      samples(model).map(({ labels, value }) => ({
        labels: { surface, model: model.model, ...labels },
        value,
      })),
    ),
  )
}

const ofSurfaces = (histogram: (surface: Surface) => Histogram) =>
  labelledBy(
    'surface',
    SURFACE_NAMES.map((surface) => [surface, histogram(surface)]),
  )

export const METRICS: readonly Metric[] = [
  counter(
    'tollgate_calls_total{surface,model,status_class}',
    "Calls that this node admitted and closed, by upstream's status (none: upstream did not answer).",
    (from) =>
      ofModels(from, ({ calls }) =>
        labelledBy(
          'status_class',
          STATUS_CLASSES.map((name, i) => [name, calls[i] ?? 0] as const).filter(([, count]) => count > 0),
        ),
      ),
  ),
  counter(
    'tollgate_tokens_total{surface,model,kind}',
    'Tokens of closed calls: input, output, cache_read or cache_write. Each token is of one kind.',
    (from) =>
      ofModels(from, ({ input, output, cacheRead, cacheWrite }) =>
        labelledBy('kind', Object.entries({ input, output, cache_read: cacheRead, cache_write: cacheWrite })),
      ),
  ),
  counter('tollgate_cost_usd_total{surface,model}', 'Cost of closed calls, after the discount.', (from) =>
    ofModels(from, ({ costNanos }) => unlabelled(usd(costNanos))),
  ),
  counter(
    'tollgate_list_cost_usd_total{surface,model}',
    'List cost of closed calls, before the discount.',
    (from) => ofModels(from, ({ listNanos }) => unlabelled(usd(listNanos))),
  ),
  counter(
    'tollgate_unpriced_calls_total{model}',
    'Calls that could not be priced, or only in part, and calls that were refused because their model has no price.',
    ({ counts }) => {
      const byModel = new Map<string, number>()
      for (const surface of SURFACE_NAMES)
        for (const { model, unpriced } of counts.surfaces[surface].models.values())
          byModel.set(model, (byModel.get(model) ?? 0) + unpriced)
      return labelledBy('model', byModel)
    },
  ),
  counter(
    'tollgate_refusals_total{code}',
    'Proxied requests that the gateway refused or aborted with this error code.',
    ({ counts }) => labelledBy('code', counts.refusals),
  ),
  histogram(
    'tollgate_overhead_seconds{surface}',
    'Time that a call spends in the gateway: reading, waiting for a budget, admission and settlement.',
    ({ counts }) => ofSurfaces((surface) => counts.surfaces[surface].overheadSeconds),
  ),
  histogram(
    'tollgate_upstream_seconds{surface}',
    'Time from sending a call upstream to the end of its reply.',
    ({ counts }) => ofSurfaces((surface) => counts.surfaces[surface].upstreamSeconds),
  ),
  gauge(
    'tollgate_calls_in_flight',
    'Calls of this node that run upstream now, plus standing reservations of open WebSockets.',
    ({ inFlight }) => unlabelled(inFlight.count),
  ),
  gauge(
    'tollgate_calls_waiting',
    'Calls of this node that wait for a budget or for credit.',
    ({ waitingCalls }) => unlabelled(waitingCalls.count),
  ),
  gauge(
    'tollgate_held_usd',
    'USD reserved by calls in flight on all nodes that share the database. Every node reports the same value.',
    ({ store }) => unlabelledIfKnown(store.sumHeld().then(usd)),
  ),
  gauge(
    'tollgate_deferred_objects',
    'Upstream objects whose cost is not known yet, on all nodes that share the database. Every node reports the same value.',
    ({ store }) => unlabelledIfKnown(store.countDeferred()),
  ),
  gauge(
    'tollgate_webhook_queue',
    'Pending webhook deliveries on all nodes that share the database. Every node reports the same value.',
    ({ store }) => unlabelledIfKnown(store.countWaiting()),
  ),
  counter(
    'tollgate_webhook_failures_total',
    'Webhook delivery attempts of this node that failed.',
    ({ webhookFailures }) => unlabelled(webhookFailures()),
  ),
  counter('tollgate_events_total{type}', 'Events that this node has recorded.', ({ load }) =>
    labelledBy('type', load.events),
  ),
  gauge(
    'tollgate_store_queue',
    'Database commands of this node that wait for the previous batch. If the queue is full, calls are refused with store_unavailable.',
    ({ load }) => unlabelled(load.waiting),
  ),
  histogram(
    'tollgate_store_batch_calls',
    'Number of admissions and settlements in one transaction.',
    ({ load }) => unlabelled(load.batchCalls),
  ),
  histogram(
    'tollgate_store_commit_seconds',
    'Duration of a transaction of admissions and settlements. It includes the fsync (SQLite), or the round trip and the wait for locks (PostgreSQL).',
    ({ load }) => unlabelled(load.commitSeconds),
  ),
  gauge(
    'tollgate_event_loop_delay_seconds',
    'Delay of the event loop (99th percentile) since the previous scrape.',
    ({ eventLoopDelay }) => unlabelled(eventLoopDelay()),
  ),
  gauge(
    'tollgate_upstream_connections{surface,state}',
    'Open connections to upstream. A busy connection carries a call, or is being opened for a call. An idle one waits for the next call.',
    ({ connections }) =>
      SURFACE_NAMES.flatMap((surface) =>
        Object.entries(connections(surface) ?? {}).map(([state, value]) => ({
          labels: { surface, state },
          value,
        })),
      ),
  ),
  gauge('tollgate_price_book_info{version}', 'The price version in use on this node.', ({ counts, nowMs }) =>
    labelledBy('version', [[counts.priceVersionAt(nowMs()).id, 1]]),
  ),
  gauge('tollgate_build_info{version,node}', 'The versions of the gateway and of Node.js.', () => [
    { labels: { version: VERSION, node: process.version }, value: 1 },
  ]),
]
