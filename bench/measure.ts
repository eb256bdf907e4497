import { fileURLToPath } from 'node:url'
import type { Cores } from './cores.ts'
import type { Figures, Job, Target } from './job.ts'
import { makeScratchFolder } from './scratch.ts'
import { type StartedProcess, startProcess } from './start-process.ts'
import type { RunningSubject, Setting, Subject } from './subjects/subject.ts'
import type { UpstreamPlan } from './upstream.ts'
import type { Surface } from './wire-text.ts'

const upstreamProgram = fileURLToPath(new URL('upstream.ts', import.meta.url))
const loadProgram = fileURLToPath(new URL('load.ts', import.meta.url))

/** How much longer than its job a load may take; then the load or the subject is stuck. */
const OVERTIME_MS = 300_000

export interface RunningUpstream {
  readonly url: string
  readonly pid: number
  stop(): Promise<void>
}

export async function startUpstream(plan: UpstreamPlan, core: number | null): Promise<RunningUpstream> {
  const started = startProcess({
    command: process.execPath,
    args: [upstreamProgram, JSON.stringify(plan)],
    core,
    errors: 'shown',
  })
  const [, port] = await started.printed(/^listening (\d+)$/m)
  return { url: `http://127.0.0.1:${port}`, pid: started.pid, stop: () => started.stop() }
}

export function targetOf(running: RunningSubject, upstream: RunningUpstream, surface: Surface): Target {
  return {
    urls: running.urls,
    headers: running.headers(surface),
    pids: running.pids(),
    loadPids: [upstream.pid],
  }
}

/** Runs one job in a process of its own. */
export async function runLoad(job: Job, core: number | null): Promise<Figures> {
  const started = startProcess({ command: process.execPath, args: [loadProgram], core, errors: 'shown' })
  started.child.stdin?.end(JSON.stringify(job))
  const expectedMs = job.seconds * 1_000 + OVERTIME_MS
  const timer = setTimeout(() => started.child.kill('SIGKILL'), expectedMs)
  try {
    const [, json = ''] = await started.printed(/^figures (.*)$/m)
    return JSON.parse(json) as Figures
  } finally {
    clearTimeout(timer)
    await stopQuietly(started)
  }
}

async function stopQuietly(started: StartedProcess): Promise<void> {
  started.child.kill('SIGKILL')
  await started.ended
}

/** Upstream and subject in fresh processes, with a folder that is removed with them. */
export async function withSubject<T, Running extends RunningSubject>(
  subject: Subject<Running>,
  plan: UpstreamPlan,
  cores: Cores,
  work: (running: Running, upstream: RunningUpstream) => Promise<T>,
): Promise<T> {
  const folder = makeScratchFolder(subject.name.replaceAll(/[^a-z0-9]+/gi, '-'))
  try {
    const upstream = await startUpstream(plan, cores.load)
    try {
      const setting: Setting = { upstreamUrl: upstream.url, folder: folder.path, core: cores.subject }
      const running = await subject.start(setting)
      try {
        return await work(running, upstream)
      } finally {
        await running.stop()
      }
    } finally {
      await upstream.stop()
    }
  } finally {
    folder.remove()
  }
}
