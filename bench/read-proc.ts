import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

/** The kernel's figures of processes: the time they computed, with all their threads, and their memory. */

const ticksPerSecond = readTicksPerSecond()

function readTicksPerSecond(): number {
  try {
    return Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))
  } catch {
    return 100
  }
}

/** The seconds of processor time that these processes have used, in user space and in the kernel. */
export function cpuSeconds(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + secondsIn(pid, 'stat'), 0)
}

/** The same for each thread of one process, by the thread's id. The main thread has the id of the process. */
export function threadSeconds(pid: number): Map<number, number> {
  const threads = readdirSync(`/proc/${pid}/task`).map(Number)
  return new Map(threads.map((thread) => [thread, secondsIn(pid, `task/${thread}/stat`)]))
}

function secondsIn(pid: number, file: string): number {
  const text = readProc(pid, file)
  // The name stands in parentheses and may hold anything; the fields are counted from behind it.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) / ticksPerSecond
}

/** The bytes of memory of these processes; shared memory counts once. */
export function memoryBytes(pids: readonly number[]): number {
  let kilobytes = 0
  for (const pid of pids) {
    const shared = /^Pss:\s+(\d+) kB$/m.exec(readProc(pid, 'smaps_rollup'))
    const resident = shared ?? /^VmRSS:\s+(\d+) kB$/m.exec(readProc(pid, 'status'))
    kilobytes += Number(resident?.[1] ?? 0)
  }
  return kilobytes * 1024
}

/** The processes that a process has started and that still run. */
export function childrenOf(pid: number): number[] {
  return readProc(pid, `task/${pid}/children`).split(' ').filter(Boolean).map(Number)
}

function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return ''
  }
}
