import { parentPort, workerData } from 'node:worker_threads'
import { changeRows, openSpoolFile, type SpoolRow } from './spool-file.ts'

/** The thread that writes the spool, so that an fsync never stalls a stream: one change after the other. */
export interface SpoolChange {
  readonly takenIds: readonly string[]
  readonly rows: readonly SpoolRow[]
}

/** Null: the change is on the disk. Otherwise the reason why it is not. */
export type SpoolAnswer = string | null

const db = openSpoolFile(workerData as string)

parentPort?.on('message', (change: SpoolChange | 'close') => {
  if (change === 'close') {
    db.close()
    parentPort?.close()
  } else parentPort?.postMessage(write(change))
})

function write({ takenIds, rows }: SpoolChange): SpoolAnswer {
  try {
    changeRows(db, takenIds, rows)
    return null
  } catch (error) {
    return (error as Error).message
  }
}
