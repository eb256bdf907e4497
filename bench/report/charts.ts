import { type Bar, barChart, type Panel } from './bar-chart.ts'
import { isMeasured } from './columns.ts'
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
] as const

export function drawCharts(results: Results): Chart[] {
  return CHARTS.flatMap(({ name, figure, title, unit, digits }) => {
    const panels = panelsOf(results, figure)
    return panels.length === 0 ? [] : [{ name, title, svg: barChart(title, unit, digits, panels) }]
  })
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
