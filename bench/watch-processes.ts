import type { Figures, Target } from './job.ts'
import { monotonicNs } from './monotonic.ts'
import { cpuSeconds, memoryBytes } from './read-proc.ts'

export interface Watched {
  readonly seconds: number
  /** The processor time of the subject. */
  readonly cpuSeconds: number
  readonly figures: Figures
}

/** Watches processes from now on; the returned function tells what they used until it is called. */
export function watchProcesses({ pids, loadPids }: Target): () => Watched {
  const load = [...loadPids, process.pid]
  const each = (): number[] => pids.map((pid) => cpuSeconds([pid]))
  const began = { atNs: monotonicNs(), cpu: each(), loadCpu: cpuSeconds(load) }
  return () => {
    const seconds = (monotonicNs() - began.atNs) / 1e9
    const usedByEach = each().map((cpu, i) => cpu - (began.cpu[i] ?? 0))
    const used = usedByEach.reduce((sum, cpu) => sum + cpu, 0)
    return {
      seconds,
      cpuSeconds: used,
      figures: {
        seconds,
        // Near 1 the load was the limit, and the subject could have done more.
        loadCoreShare: (cpuSeconds(load) - began.loadCpu) / seconds,
        subjectCoreShare: used / seconds,
        ...(pids.length > 1 ? { busiestProcessShare: Math.max(...usedByEach) / used } : {}),
        memoryMb: memoryBytes(pids) / 1e6,
      },
    }
  }
}
