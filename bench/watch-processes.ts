import type { Figures, Target } from './job.ts'
import { monotonicNs } from './monotonic.ts'
import { cpuSeconds, memoryBytes } from './read-proc.ts'

export interface Watched {
  readonly seconds: number
  /** The processor time of what is measured. */
  readonly cpuSeconds: number
  readonly figures: Figures
}

/** Watches processes from now on; what is returned says what they used until then. */
export function watchProcesses({ pids, loadPids }: Target): () => Watched {
  const load = [...loadPids, process.pid]
  const began = { atNs: monotonicNs(), cpu: cpuSeconds(pids), loadCpu: cpuSeconds(load) }
  return () => {
    const seconds = (monotonicNs() - began.atNs) / 1e9
    const used = cpuSeconds(pids) - began.cpu
    return {
      seconds,
      cpuSeconds: used,
      figures: {
        seconds,
        // Near 1 the load was the limit, and what is measured could have done more.
        loadCoreShare: (cpuSeconds(load) - began.loadCpu) / seconds,
        subjectCoreShare: used / seconds,
        memoryMb: memoryBytes(pids) / 1e6,
      },
    }
  }
}
