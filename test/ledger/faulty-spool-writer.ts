import { openSpoolWriter, SpoolDiskFull, type SpoolWriter } from '../../src/ledger/settlement-spool.ts'
import type { SpoolChange } from '../../src/ledger/spool-thread.ts'

/** What was written to the file of a spool, and what happens to the next write. */
export interface WriterWatch {
  readonly changes: SpoolChange[]
  /** While it is set writes fail: before anything is in the file, or with the change in it. */
  fault: 'no room' | 'failed fsync' | 'written and not told' | null
  /** Writes wait for it, while it is set. */
  gate: Promise<void> | null
  open(path: string): SpoolWriter
}

export function watchWriter(): WriterWatch {
  const watch: WriterWatch = { changes: [], fault: null, gate: null, open }

  function open(path: string): SpoolWriter {
    const writer = openSpoolWriter(path)
    return {
      async write(change) {
        const { fault } = watch
        watch.changes.push(change)
        if (fault === 'no room') throw new SpoolDiskFull(fault)
        if (fault === 'failed fsync') throw new Error(fault)
        await watch.gate
        await writer.write(change)
        if (fault !== null) throw new Error(fault)
      },
      close: () => writer.close(),
    }
  }

  return watch
}
