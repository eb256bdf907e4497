import { BUILT } from '../groups/start.ts'
import type { Chart } from './charts.ts'
import { type Column, columnsFor, isMeasured, shownNumber } from './columns.ts'
import {
  medianOf,
  type Results,
  type Row,
  type Section,
  type Spread,
  sectionsOf,
  spreadOf,
} from './results.ts'
import { judgeTargets } from './targets.ts'

/** The run as a page: targets first, then a table for each workload, then the charts. */
export function writeMarkdown(
  results: Results,
  charts: readonly (Chart & { readonly file: string })[],
): string {
  const compared = results.comparedTo === null ? '' : `, compared to ${results.comparedTo}`
  return [
    `# Measured on ${results.date}, revision ${results.revision}${compared}`,
    results.quick
      ? '**A quick run with reduced sizes: it shows that everything works and says nothing about speed.**'
      : 'Medians of the rounds; in parentheses the lowest and the highest round.',
    facts(results),
    ...results.notes.map((note) => `- ${note}`),
    results.comparedTo === null ? targets(results) : '',
    ...sectionsOf(results).map((section) => table(results, section)),
    ...(charts.length === 0 ? [] : ['## Charts']),
    ...charts.map(({ title, file }) => `![${title}](${file})`),
  ]
    .filter((part) => part !== '')
    .join('\n\n')
    .concat('\n')
}

function facts({ machine, settings }: Results): string {
  const rows = [...Object.entries(machine), ...Object.entries(settings)]
  return ['| | |', '|---|---|', ...rows.map(([name, value]) => `| ${name} | ${value} |`)].join('\n')
}

function targets(results: Results): string {
  const rows = judgeTargets(results).map(({ target, measured, met }) => {
    const verdict = met === null ? '–' : met ? 'met' : '**not met**'
    return `| ${target} | ${measured} | ${verdict} |`
  })
  return ['## Targets', '', '| Target | Measured | |', '|---|---|---|', ...rows].join('\n')
}

function table(results: Results, { title, workloads, rows }: Section): string {
  const sample = results.measurements.find(({ workload }) => workload === workloads[0])?.figures ?? {}
  const columns = columnsFor(sample)
  const base = baseOf(results, rows)
  const ratios = base === null ? [] : columns.filter((column) => column.asRatio)
  const isDirectThere = rows.some(({ subject }) => subject === 'direct')
  const additions = isDirectThere ? columns.filter((column) => column.asAdded) : []
  const head = [
    '',
    ...columns.map((column) => column.heading),
    ...additions.map((column) => `${column.heading} added to direct`),
    ...ratios.map((column) => `${column.heading} × ${base}`),
  ]
  const lines = rows.map(({ label, workload, subject }) => {
    const own = (figure: string): number | null => medianOf(results, workload, subject, figure)
    return [
      label,
      ...columns.map((column, index) =>
        cell(spreadOf(results, workload, subject, column.figure), column, index, subject),
      ),
      ...additions.map(({ figure, digits }) => {
        const [between, without] = [own(figure), medianOf(results, workload, 'direct', figure)]
        return between === null || without === null ? '–' : shownNumber(between - without, digits)
      }),
      ...ratios.map(({ figure }) => {
        const [one, other] = [own(figure), medianOf(results, workload, likeOf(base ?? '', subject), figure)]
        return !isMeasured(figure, subject) || !one || !other ? '–' : (one / other).toFixed(2)
      }),
    ]
  })
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  const rule = head.map((_, index) => (index === 0 ? '---' : '---:'))
  return [`## ${workloads.join(', ')}: ${title}`, '', line(head), line(rule), ...lines.map(line)].join('\n')
}

function cell(spread: Spread | null, { figure, digits }: Column, index: number, subject: string): string {
  if (spread === null || !isMeasured(figure, subject)) return '–'
  const middle = shownNumber(spread.median, digits)
  // The spread of the first figure tells how far the others can be trusted.
  if (index > 0 || spread.min === spread.max) return middle
  return `${middle} (${shownNumber(spread.min, digits)}–${shownNumber(spread.max, digits)})`
}

/** The base of the comparison: the other revision, or else the bare pipe. */
function baseOf({ comparedTo }: Results, rows: readonly Row[]): string | null {
  const subjects = rows.map(({ subject }) => subject)
  return (
    subjects.find((name) => name === `tollgate@${comparedTo}`) ??
    subjects.find((name) => name === 'pipe') ??
    null
  )
}

/** A built subject is compared with a built one. */
function likeOf(base: string, subject: string): string {
  return subject.endsWith(BUILT) ? base + BUILT : base
}
