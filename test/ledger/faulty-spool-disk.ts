import { openSpoolDisk, type SpoolDisk, type SpoolFile } from '../../src/ledger/spool-disk.ts'

/** What was done to the files, and what happens to the next write. */
export interface DiskWatch {
  readonly done: string[]
  /** While it is set: what writes fails, or only what syncs an open file, or a file is replaced and nobody is told. */
  fault: 'ENOSPC' | 'EIO on sync' | 'EIO after replace' | null
  /** Syncs wait for it, while it is set. */
  gate: Promise<void> | null
  open(dir: string): Promise<SpoolDisk>
}

export function watchDisk(): DiskWatch {
  const watch: DiskWatch = { done: [], fault: null, gate: null, open }

  async function did(what: string): Promise<void> {
    if (watch.fault === 'ENOSPC' || (watch.fault === 'EIO on sync' && what === 'sync'))
      throw faultOf(watch.fault)
    watch.done.push(what)
    if (watch.gate !== null && what !== 'append') await watch.gate
  }

  async function open(dir: string): Promise<SpoolDisk> {
    const disk = await openSpoolDisk(dir)
    return {
      ...disk,
      async replace(name, lines) {
        await did('replace')
        const file = await disk.replace(name, lines)
        if (watch.fault !== 'EIO after replace') return watchFile(file)
        await file.close()
        throw new Error(watch.fault)
      },
      async append(name, line, bytesMax) {
        await did(`append to ${name}`)
        return await disk.append(name, line, bytesMax)
      },
    }
  }

  function watchFile(file: SpoolFile): SpoolFile {
    return {
      async append(bytes) {
        // A disk that fills up takes a part of it.
        if (watch.fault === 'ENOSPC') {
          await file.append(bytes.subarray(0, bytes.length >> 1))
          throw faultOf('ENOSPC')
        }
        await did('append')
        await file.append(bytes)
      },
      async sync() {
        await did('sync')
        await file.sync()
      },
      async clear() {
        await did('clear')
        await file.clear()
      },
      close: () => file.close(),
    }
  }

  return watch
}

/** As the file system says it. */
function faultOf(fault: string): Error {
  return Object.assign(new Error(fault), { code: fault.split(' ')[0] })
}
