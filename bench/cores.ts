import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** The core of the subject, and the core of the load and the upstream. Null: not pinned. */
export interface Cores {
  readonly subject: number | null
  readonly load: number | null
  /** The reason for which nothing is pinned. */
  readonly note: string | null
}

const UNPINNED = { subject: null, load: null } as const

export function chooseCores(): Cores {
  if (spawnSync('taskset', ['--version']).status !== 0) {
    return { ...UNPINNED, note: 'taskset is not installed: nothing was pinned to a core.' }
  }
  const allowed = /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? ''
  const [subject, load] = listCores(allowed)
  if (subject === undefined || load === undefined) {
    return { ...UNPINNED, note: 'There is only one core: nothing was pinned, and all figures are mixed up.' }
  }
  return { subject, load, note: null }
}

/** Reads a list of cores as the kernel writes it, such as `0-1,4`. */
function listCores(list: string): number[] {
  return list.split(',').flatMap((range) => {
    const [first = Number.NaN, last = first] = range.split('-').map(Number)
    if (!Number.isInteger(first) || !Number.isInteger(last)) return []
    return Array.from({ length: last - first + 1 }, (_, i) => first + i)
  })
}

/** Moves this process, with all its threads, to this core. */
export function moveTo(core: number | null): void {
  if (core !== null) spawnSync('taskset', ['-acp', String(core), String(process.pid)])
}
