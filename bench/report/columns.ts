import type { Figures } from '../job.ts'

/** The figures that tables show, each with its heading. A workload has those of them that it measured. */
export interface Column {
  readonly figure: string
  readonly heading: string
  readonly digits: number
  /** The figure is also shown as a multiple of the base of the comparison. */
  readonly asRatio?: true
  /** The figure is also shown as the difference from a direct connection. */
  readonly asAdded?: true
}

const COLUMNS: readonly Column[] = [
  { figure: 'requestsPerSecond', heading: 'requests/s', digits: 0, asRatio: true },
  { figure: 'latencyP50Ms', heading: 'p50 ms', digits: 2, asAdded: true },
  { figure: 'latencyP99Ms', heading: 'p99 ms', digits: 2 },
  { figure: 'cpuMicrosPerRequest', heading: 'CPU µs/request', digits: 0, asRatio: true },
  { figure: 'databaseMicrosPerRequest', heading: 'database CPU µs/request', digits: 0, asRatio: true },
  { figure: 'streamsComplete', heading: 'complete', digits: 0 },
  { figure: 'eventsPerSecond', heading: 'events/s', digits: 0 },
  { figure: 'delayP50Ms', heading: 'delay p50 ms', digits: 2, asAdded: true },
  { figure: 'delayP99Ms', heading: 'delay p99 ms', digits: 2, asAdded: true },
  { figure: 'cpuMicrosPerEvent', heading: 'CPU µs/event', digits: 1, asRatio: true },
  { figure: 'cpuMillisPerMb', heading: 'CPU ms/MB', digits: 1, asRatio: true },
  { figure: 'memoryKbPerStream', heading: 'kB/stream', digits: 0, asRatio: true },
  { figure: 'reportsMs', heading: 'all reports ms', digits: 2, asRatio: true },
  { figure: 'slowestReportMs', heading: 'slowest ms', digits: 2 },
  { figure: 'cpuMicrosPerReport', heading: 'CPU µs/report', digits: 0, asRatio: true },
  { figure: 'startMs', heading: 'ready after ms', digits: 0, asRatio: true },
  { figure: 'requests', heading: 'requests', digits: 0 },
  { figure: 'memoryEarlyMb', heading: 'memory early MB', digits: 0 },
  { figure: 'memoryLateMb', heading: 'memory late MB', digits: 0 },
  { figure: 'memoryGrowthPercent', heading: 'growth %', digits: 1 },
  { figure: 'streamsIncomplete', heading: 'incomplete', digits: 0 },
  { figure: 'memoryMb', heading: 'memory MB', digits: 0 },
  { figure: 'subjectCoreShare', heading: 'its core', digits: 2 },
  { figure: 'busiestProcessShare', heading: 'share of the busiest process', digits: 2 },
  { figure: 'loadCoreShare', heading: "load's core", digits: 2 },
  { figure: 'errors', heading: 'errors', digits: 0 },
]

/** Counts that only say how many values another figure rests on; they are left out where that figure is shown. */
const NOT_SHOWN_WITH: Readonly<Record<string, string>> = { requests: 'requestsPerSecond' }

export function columnsFor(figures: Figures): Column[] {
  return COLUMNS.filter(({ figure }) => {
    const instead = NOT_SHOWN_WITH[figure]
    return figure in figures && (instead === undefined || !(instead in figures))
  })
}

/** A direct connection has no process, so no figure of one. */
export function isMeasured(figure: string, subject: string): boolean {
  return subject !== 'direct' || !/^(?:cpu|memory|subjectCore)/.test(figure)
}

export function shownNumber(value: number, digits: number): string {
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}
