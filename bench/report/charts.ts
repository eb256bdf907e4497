import { type Bar, barChart, type Panel } from './bar-chart.ts'
import { isMeasured } from './columns.ts'
import { memoryChart } from './line-chart.ts'
import { type Results, sectionsOf, spreadOf } from './results.ts'

export interface Chart {
  readonly name: string
  readonly title: string
  readonly svg: string
}

const CHARTS = [
  {
    name: 'throughput',
    figure: 'requestsPerSecond',
    title: 'Throughput',
    unit: 'Requests per second',
    digits: 0,
  },
  {
    name: 'cpu-per-request',
    figure: 'cpuMicrosPerRequest',
    title: 'Processor time per request',
    unit: 'Microseconds, less is better',
    digits: 0,
  },
  {
    name: 'latency-p50',
    figure: 'latencyP50Ms',
    title: 'Latency, median',
    unit: 'Milliseconds, less is better',
    digits: 2,
  },
  {
    name: 'event-delay-p99',
    figure: 'delayP99Ms',
    title: 'Delay of an event, 99th percentile',
    unit: 'Milliseconds from upstream to the client, less is better',
    digits: 2,
  },
  {
    name: 'cpu-per-event',
    figure: 'cpuMicrosPerEvent',
    title: 'Processor time per event',
    unit: 'Microseconds, less is better',
    digits: 1,
  },
  {
    name: 'memory-per-stream',
    figure: 'memoryKbPerStream',
    title: 'Memory per open stream',
    unit: 'Kilobytes, less is better',
    digits: 0,
  },
  {
    name: 'usage-reports',
    figure: 'reportsMs',
    title: 'Reports on usage, all eight of them',
    unit: 'Milliseconds, less is better',
    digits: 2,
  },
  {
    name: 'start',
    figure: 'startMs',
    title: 'From the start of the process to the first answer',
    unit: 'Milliseconds, less is better',
    digits: 0,
  },
] as const

export function drawCharts(results: Results): Chart[] {
  const bars = CHARTS.map(({ name, figure, title, unit, digits }) => {
    const panels = panelsOf(results, figure)
    return panels.length === 0 ? null : { name, title, svg: barChart(title, unit, digits, panels) }
  })
  const soaks = results.measurements.flatMap(({ workload, subject, samples }) => {
    if (samples === undefined || samples.length < 2) return []
    const title = `Memory of ${subject} under steady load`
    return [
      {
        name: `${workload}-${subject.replaceAll(/[^a-z0-9]+/gi, '-')}`,
        title,
        svg: memoryChart(title, samples),
      },
    ]
  })
  return [...bars.filter((chart) => chart !== null), ...soaks]
}

function panelsOf(results: Results, figure: string): Panel[] {
  return sectionsOf(results).flatMap(({ title, rows }) => {
    const bars = rows.flatMap(({ label, workload, subject }): Bar[] => {
      const spread = spreadOf(results, workload, subject, figure)
      return spread !== null && isMeasured(figure, subject)
        ? [{ label, spread, own: subject.startsWith('tollgate') }]
        : []
    })
    return bars.length === 0 ? [] : [{ title, bars }]
  })
}
