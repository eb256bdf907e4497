import { join } from 'node:path'
import { buildTollgate } from '../build-tollgate.ts'
import { filledFolder } from '../filled-folder.ts'
import type { Figures } from '../job.ts'
import { memoryBytes } from '../read-proc.ts'
import { makeScratchFolder } from '../scratch.ts'
import { freePort } from '../start-process.ts'
import { startTollgate, type TollgateParts } from '../subjects/tollgate.ts'
import { untilAnswers } from '../subjects/until-answers.ts'
import { type Case, type Group, type Plan, shortCount } from './group.ts'

export const startWorkload = (calls: number): string =>
  calls === 0 ? 'start-empty' : `start-${shortCount(calls)}`

const KEYS = 20

/** The suffix of a revision that runs as it is published, not from its source. */
export const BUILT = ' (built)'

/**
 * The time from the start of the process to the first 200 of /healthz: from the source, and as it is published. The first
 * start of all is not measured, because later starts use the code that it has compiled.
 */
export function startGroup(plan: Plan): Group {
  const { startCalls } = plan.sizes
  const variants = [
    ...plan.tollgates,
    ...plan.tollgates.map((parts) => ({ ...parts, name: parts.name + BUILT })),
  ]
  return {
    title: `Start-up, with an empty database and with ${shortCount(startCalls)} calls recorded`,
    async prepare() {
      for (const parts of plan.tollgates) {
        await filledFolder(parts, { keys: KEYS, calls: startCalls, allUsedToday: true })
        await buildTollgate(parts.root)
      }
      for (const parts of variants) await startOnce(plan, parts, 0)
    },
    cases: [0, startCalls].flatMap((calls) => variants.map((parts) => startCase(plan, parts, calls))),
  }
}

function startCase(plan: Plan, parts: TollgateParts, calls: number): Case {
  return { workload: startWorkload(calls), subject: parts.name, run: () => startOnce(plan, parts, calls) }
}

async function startOnce({ cores }: Plan, parts: TollgateParts, calls: number): Promise<Figures> {
  const built = parts.name.endsWith(BUILT)
  const chosen = built ? { ...parts, program: await buildTollgate(parts.root) } : parts
  const folder = makeScratchFolder('start')
  try {
    const dataDir =
      calls === 0
        ? join(folder.path, 'data')
        : await filledFolder(parts, { keys: KEYS, calls, allUsedToday: true })
    const port = await freePort()
    // No request goes to upstream.
    const setting = { upstreamUrl: 'http://127.0.0.1:9', folder: folder.path, core: cores.subject }
    const sinceMs = performance.now()
    const started = startTollgate(chosen, setting, dataDir, port)
    const startMs = await untilAnswers(`http://127.0.0.1:${port}/healthz`, { status: 200, sinceMs })
    const memoryMb = memoryBytes([started.pid]) / 1e6
    await started.stop()
    return { startMs, memoryMb }
  } finally {
    folder.remove()
  }
}
