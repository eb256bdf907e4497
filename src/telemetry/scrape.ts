import { monitorEventLoopDelay } from 'node:perf_hooks'
import { collectDefaultMetrics, Registry } from 'prom-client'
import { METRICS, type Metric, type MetricSources, type Sample } from './metric-table.ts'

export interface Scraped {
  readonly contentType: string
  readonly text: string
}

const DELAY_RESOLUTION_MS = 10

/**
 * The scraper answers in the OpenMetrics format. Our metrics are written from the table; those of the process are
 * prom-client's. This file is loaded with the first scrape, which also starts the monitors of the event loop and garbage
 * collection. Concurrent scrapes share one answer: with `metrics.public` every client may ask.
 */
export function createScraper(sources: Omit<MetricSources, 'eventLoopDelay'>): () => Promise<Scraped> {
  const registry = new Registry<typeof Registry.OPENMETRICS_CONTENT_TYPE>()
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE)
  collectProcessMetrics(registry)
  const delay = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS })
  delay.enable()
  const eventLoopDelay = (): number => {
    // The monitor records the time between two samples.
    const lateMs = delay.count === 0 ? 0 : delay.percentile(99) / 1e6 - DELAY_RESOLUTION_MS
    delay.reset()
    return Math.max(0, lateMs) / 1_000
  }
  const from = { ...sources, eventLoopDelay }
  async function scrape(): Promise<Scraped> {
    const own = await Promise.all(METRICS.map((metric) => familyOf(metric, from)))
    // The text of the registry ends with the mark of the end.
    return { contentType: registry.contentType, text: own.join('') + (await registry.metrics()) }
  }
  let scraping: Promise<Scraped> | null = null
  return () => {
    scraping ??= scrape().finally(() => {
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

async function familyOf(metric: Metric, from: MetricSources): Promise<string> {
  const { name, type, help } = metric
  // The name of a counter has no `_total`, that of its samples has.
  const family = type === 'counter' ? name.replace(/_total$/, '') : name
  const lines =
    type === 'histogram'
      ? metric
          .read(from)
          .flatMap((sample) =>
            histogramLines(name, sample.labels, sample.histogram.read(), sample.histogram.bounds),
          )
      : ((await metric.read(from)) ?? []).map((sample) => lineOf(name, sample))
  return `# HELP ${family} ${escaped(help)}\n# TYPE ${family} ${type}\n${lines.join('')}`
}

function histogramLines(
  name: string,
  labels: Sample['labels'],
  {
    atMost,
    count,
    sum,
  }: { readonly atMost: readonly number[]; readonly count: number; readonly sum: number },
  bounds: readonly number[],
): string[] {
  const bucket = (le: string, value: number) => lineOf(`${name}_bucket`, { labels: { ...labels, le }, value })
  return [
    ...bounds.map((bound, i) => bucket(floatText(bound), atMost[i] ?? 0)),
    bucket('+Inf', count),
    lineOf(`${name}_sum`, { labels, value: sum }),
    lineOf(`${name}_count`, { labels, value: count }),
  ]
}

function lineOf(name: string, { labels, value }: Sample): string {
  const pairs = Object.entries(labels).map(
    ([label, text]) => `${label}="${escaped(text).replaceAll('"', '\\"')}"`,
  )
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}\n`
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}

/** OpenMetrics asks for bounds that look like floating-point numbers: scrapers that compare them as text agree then. */
function floatText(bound: number): string {
  return Number.isInteger(bound) ? bound.toFixed(1) : String(bound)
}
