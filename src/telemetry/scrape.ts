import { monitorEventLoopDelay } from 'node:perf_hooks'
import { type Metric as ClientMetric, collectDefaultMetrics, Registry } from 'prom-client'
import {
  type HistogramSample,
  METRICS,
  type Metric,
  type MetricSources,
  type Sample,
} from './metric-table.ts'

/** The answer to a scrape. */
export interface Scraped {
  readonly contentType: string
  readonly text: string
}

/** How often the delay of the event loop is sampled. */
const DELAY_RESOLUTION_MS = 10
const QUANTILES = ['0.5', '0.9', '0.99', '1']

/**
 * The scraper answers in the OpenMetrics format. This file and prom-client are loaded with the first scrape, which also
 * starts the monitors of the event loop and garbage collection. Scrapes at the same time share one answer: with
 * `metrics.public` every client may ask.
 */
export function createScraper(sources: Omit<MetricSources, 'eventLoopDelay'>): () => Promise<Scraped> {
  const registry = new Registry<typeof Registry.OPENMETRICS_CONTENT_TYPE>()
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE)
  const delay = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS })
  delay.enable()
  const eventLoopDelay = () => {
    const told = QUANTILES.map((quantile) => {
      // The monitor records the time between two samples; before the first one, the percentile is 0 or the largest number.
      const lateMs =
        delay.count === 0 ? 0 : delay.percentile(Number(quantile) * 100) / 1e6 - DELAY_RESOLUTION_MS
      return { quantile, seconds: Math.max(0, lateMs) / 1_000 }
    })
    delay.reset()
    return told
  }
  const from = { ...sources, eventLoopDelay }
  for (const metric of METRICS) registry.registerMetric(toClientMetric(metric, from))
  collectProcessMetrics(registry)
  let scraping: Promise<Scraped> | null = null
  return () => {
    scraping ??= registry
      .metrics()
      .then((text) => ({ contentType: registry.contentType, text }))
      .finally(() => {
        scraping = null
      })
    return scraping
  }
}

/**
 * The metrics of the process, without those that list every handle, which with thousands of connections takes milliseconds,
 * and without a second monitor of the event loop: prom-client's monitor is set to sample once a day.
 */
function collectProcessMetrics(registry: Registry<typeof Registry.OPENMETRICS_CONTENT_TYPE>): void {
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 86_400_000 })
  for (const { name } of registry.getMetricsAsArray())
    if (/^nodejs_(?:active|eventloop)_/.test(name)) registry.removeSingleMetric(name)
}

/**
 * A metric in the form that prom-client's registry reads. prom-client's own counters take their values one by one and by a
 * hash of their labels, and its histograms cannot be given counts from elsewhere.
 */
function toClientMetric(metric: Metric, from: MetricSources): ClientMetric {
  const { type, help } = metric
  const read = {
    type,
    help,
    // The registry takes `_total` off the name of a counter, and puts it back behind that of a sample.
    name: metric.name,
    aggregator: 'sum',
    get: async () => ({
      type,
      help,
      name: read.name,
      aggregator: 'sum',
      values: await valuesOf(metric, from),
    }),
  }
  return read as unknown as ClientMetric
}

async function valuesOf(
  metric: Metric,
  from: MetricSources,
): Promise<readonly (Sample & { metricName?: string })[]> {
  if (metric.type !== 'histogram') return (await metric.read(from)) ?? []
  return metric.read(from).flatMap((sample) => histogramValues(metric.name, sample))
}

function histogramValues(name: string, { labels, histogram }: HistogramSample) {
  const { atMost, count, sum } = histogram.read()
  const bucket = (le: string, value: number) => ({
    metricName: `${name}_bucket`,
    labels: { ...labels, le },
    value,
  })
  return [
    ...histogram.bounds.map((bound, i) => bucket(floatText(bound), atMost[i] ?? 0)),
    bucket('+Inf', count),
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: count },
  ]
}

/** OpenMetrics asks for bounds that look like floating-point numbers: scrapers that compare them as text agree then. */
function floatText(bound: number): string {
  return Number.isInteger(bound) ? bound.toFixed(1) : String(bound)
}
