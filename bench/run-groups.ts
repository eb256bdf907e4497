import type { Case, Group } from './groups/group.ts'
import type { Figures } from './job.ts'
import { columnsFor, shownNumber } from './report/columns.ts'
import type { Measurement, Results } from './report/results.ts'

type Progress = Pick<Results, 'workloads' | 'measurements' | 'notes'>

/** Above this share of its core, the load was the limit and not the subject. */
const LOAD_FULL = 0.97

/** Runs the groups one after the other, and the cases of each in turns. Reports after every group. */
export async function runGroups(
  groups: readonly Group[],
  rounds: number,
  report: (progress: Progress) => Results,
): Promise<Results> {
  const measurements: Measurement[] = []
  const notes: string[] = []
  const workloads: { name: string; title: string }[] = []
  const total = groups.reduce((sum, group) => sum + group.cases.length * (group.rounds ?? rounds), 0)
  const beganMs = performance.now()
  let done = 0
  let results = report({ measurements, notes, workloads })

  for (const group of groups) {
    process.stderr.write(`\n${group.title}\n`)
    for (const { workload } of group.cases) {
      if (!workloads.some(({ name }) => name === workload))
        workloads.push({ name: workload, title: group.title })
    }
    const problem = await attempt(async () => group.prepare?.())
    if (problem !== null) {
      notes.push(`${group.title}: could not be prepared: ${problem}`)
      process.stderr.write(`  failed: ${problem}\n`)
      continue
    }
    for (let round = 1; round <= (group.rounds ?? rounds); round += 1) {
      for (const one of group.cases) {
        done += 1
        const minutes = ((performance.now() - beganMs) / 60_000).toFixed(1)
        const label = `  [${done}/${total}, ${minutes} min] ${one.workload} ${one.subject} round ${round}: `
        process.stderr.write(label)
        const failed = await attempt(async () => {
          const measured = await measure(one, round)
          measurements.push(measured)
          process.stderr.write(`${shortly(measured.figures)}\n`)
        })
        if (failed === null) continue
        notes.push(`${one.workload}, ${one.subject}, round ${round} failed: ${failed}`)
        process.stderr.write(`failed: ${failed}\n`)
      }
    }
    results = report({ measurements, notes: [...notes, ...notesOn(measurements)], workloads })
  }
  return results
}

async function attempt(work: () => Promise<void>): Promise<string | null> {
  try {
    await work()
    return null
  } catch (error) {
    return (error as Error).message
  }
}

async function measure(one: Case, round: number): Promise<Measurement> {
  const { workload, subject } = one
  return { workload, subject, round, figures: await one.run() }
}

function shortly(figures: Figures): string {
  return columnsFor(figures)
    .map(({ figure, heading, digits }) => `${heading} ${shownNumber(figures[figure] ?? 0, digits)}`)
    .join(', ')
}

/** Notes on figures that say less than they seem to. */
function notesOn(measurements: readonly Measurement[]): string[] {
  const notes = measurements.flatMap(({ workload, subject, figures }) => {
    const found: string[] = []
    const { errors = 0, loadCoreShare = 0, streams = 0, streamsComplete = streams } = figures
    if (errors > 0) found.push(`${workload}, ${subject}: not all requests were answered with 200.`)
    if (streamsComplete < streams) found.push(`${workload}, ${subject}: not all streams were complete.`)
    if (loadCoreShare > LOAD_FULL && subject !== 'direct') {
      found.push(
        `${workload}, ${subject}: the core of the load was full, so it may reach more; its CPU time is right.`,
      )
    }
    return found
  })
  return [...new Set(notes)]
}
