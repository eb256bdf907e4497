import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { READS } from '../operations/cold-operations.ts'
import { failureOf, type Outcome } from './outcome.ts'
import { operationsOn } from './run-operation.ts'

/**
 * The thread that answers what looks at many rows, on a connection that cannot write. Readers and the writer of a
 * write-ahead log do not wait for each other; but while a read lasts the log cannot be folded back, so it grows.
 */

const port = parentPort
if (port === null) throw new Error('reader-worker.ts runs as a worker thread only')

const { file } = workerData as { readonly file: string }
const db = new DatabaseSync(file, { readOnly: true, readBigInts: true, timeout: 5_000 })
const operations = operationsOn(db, READS)
type ReadCommand = readonly [keyof typeof READS, ...unknown[]]

port.on('message', (message: ReadCommand | 'close') => {
  if (message === 'close') {
    db.close()
    port.close()
    return
  }
  port.postMessage(answer(message))
})

/** One transaction per read: it sees all that was committed before it, and nothing that is committed during it. */
function answer([name, ...args]: ReadCommand): Outcome {
  const operation = operations[name] as (...args: unknown[]) => unknown
  try {
    db.exec('BEGIN')
    const value = operation(...args)
    db.exec('COMMIT')
    return { ok: true, value }
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    return failureOf(error)
  }
}
