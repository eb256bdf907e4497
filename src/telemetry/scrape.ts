import { monitorEventLoopDelay } from 'node:perf_hooks'
import { collectDefaultMetrics, Registry } from 'prom-client'
import type { Histogram } from '../kernel/histogram.ts'
import { shareWork } from '../kernel/shared-work.ts'
import { METRICS, type Metric, type MetricSources, type Sample } from './metric-table.ts'

const DELAY_RESOLUTION_MS = 10

/** The first scrape loads this file and starts the monitors. Concurrent scrapes share a result: anyone may scrape. */
export function createScraper(sources: Omit<MetricSources, 'eventLoopDelay'>) {
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
  async function scrape() {
    const own = await Promise.all(METRICS.map((metric) => familyOf(metric, from)))
    // The registry's text ends with the end-of-file marker.
    return { contentType: registry.contentType, text: own.join('') + (await registry.metrics()) }
  }
  return shareWork(scrape, { monotonicMs: () => performance.now() }, () => 0)
}

/** Leaves out lists of all handles, which take milliseconds, and prom-client's event loop monitor: ours replaces it. */
function collectProcessMetrics(registry: Registry<typeof Registry.OPENMETRICS_CONTENT_TYPE>): void {
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 86_400_000 })
  for (const { name } of registry.getMetricsAsArray())
    if (/^nodejs_(?:active|eventloop)_/.test(name)) registry.removeSingleMetric(name)
}

async function familyOf(metric: Metric, from: MetricSources): Promise<string> {
  const { name, type, help } = metric
  // A counter's family name has no `_total`; its samples do.
  const family = type === 'counter' ? name.replace(/_total$/, '') : name
  const samples = (await metric.read(from)) ?? []
  const lines = samples.map(({ labels, value }) =>
    typeof value === 'number' ? lineOf(name, labels, value) : histogramLines(name, labels, value),
  )
  return `# HELP ${family} ${escaped(help)}\n# TYPE ${family} ${type}\n${lines.join('')}`
}

function histogramLines(name: string, labels: Sample['labels'], histogram: Histogram): string {
  const { atMost, count, sum } = histogram.read()
  const bucket = (le: string, value: number) => lineOf(`${name}_bucket`, { ...labels, le }, value)
  return [
    ...histogram.bounds.map((bound, i) => bucket(floatText(bound), atMost[i] ?? 0)),
    bucket('+Inf', count),
    lineOf(`${name}_sum`, labels, sum),
    lineOf(`${name}_count`, labels, count),
  ].join('')
}

function lineOf(name: string, labels: Sample['labels'], value: number): string {
  const pairs = Object.entries(labels).map(
    ([label, text]) => `${label}="${escaped(text).replaceAll('"', '\\"')}"`,
  )
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}\n`
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}

/** OpenMetrics requires bounds in floating-point form, so that scrapers can compare them as text. */
function floatText(bound: number): string {
  return Number.isInteger(bound) ? bound.toFixed(1) : String(bound)
}
