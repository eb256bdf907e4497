import type { Figures } from '../job.ts'
import type { Sizes } from '../sizes.ts'
import { median } from './median.ts'

/** One case in one round, as it was measured. */
export interface Measurement {
  readonly workload: string
  readonly subject: string
  readonly round: number
  readonly figures: Figures
}

export interface Results {
  readonly date: string
  readonly revision: string
  readonly comparedTo: string | null
  readonly quick: boolean
  readonly machine: Readonly<Record<string, string | number>>
  readonly settings: Readonly<Record<string, string | number>>
  readonly sizes: Sizes
  /** Notes that a reader of the figures needs: workloads that were left out, cases that failed. */
  readonly notes: readonly string[]
  /** The workloads in the order in which they were measured, each with its title. */
  readonly workloads: readonly { readonly name: string; readonly title: string }[]
  readonly measurements: readonly Measurement[]
}

export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

/** A figure over all rounds, or null where no round has it. */
export function spreadOf(results: Results, workload: string, subject: string, figure: string): Spread | null {
  const values = results.measurements
    .filter((one) => one.workload === workload && one.subject === subject)
    .map((one) => one.figures[figure])
    .filter((value) => value !== undefined)
  if (values.length === 0) return null
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) }
}

export function medianOf(results: Results, workload: string, subject: string, figure: string): number | null {
  return spreadOf(results, workload, subject, figure)?.median ?? null
}

/** A line of a table or a bar of a chart. */
export interface Row {
  readonly label: string
  readonly workload: string
  readonly subject: string
}

/** Workloads that were measured in turns stand together. */
export interface Section {
  readonly title: string
  readonly workloads: readonly string[]
  readonly rows: readonly Row[]
}

export function sectionsOf(results: Results): Section[] {
  const titles = [...new Set(results.workloads.map(({ title }) => title))]
  return titles.map((title) => {
    const workloads = results.workloads.filter((one) => one.title === title).map(({ name }) => name)
    const measured = results.measurements.filter(({ workload }) => workloads.includes(workload))
    const several = new Set(measured.map(({ subject }) => subject)).size > 1
    const rows = new Map<string, Row>()
    for (const { workload, subject } of measured) {
      const both = several ? `${workload}, ${subject}` : workload
      const label = workloads.length === 1 ? subject : both
      rows.set(label, { label, workload, subject })
    }
    return { title, workloads, rows: [...rows.values()] }
  })
}
