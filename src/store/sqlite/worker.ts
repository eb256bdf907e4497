import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { migrate } from './migrate.ts'
import type { Command, Operations, Outcome, WorkerParts } from './operations.ts'
import { prepareOperations } from './prepare-operations.ts'

/**
 * The thread that owns the database, so that an fsync never stalls a stream. It receives batches of commands and
 * commits each batch once: what arrived together shares one durable write.
 */

const port = parentPort
if (port === null) throw new Error('worker.ts runs as a worker thread only')

const { file, diskFault } = workerData as WorkerParts
const db = new DatabaseSync(file, { readBigInts: true, timeout: 5_000 })
db.exec('PRAGMA journal_mode = WAL')
db.exec('PRAGMA synchronous = FULL')
migrate(db)
const operations = prepareOperations(db)
port.postMessage('ready')

port.on('message', (message: readonly Command[] | 'close') => {
  if (message === 'close') {
    db.close()
    port.close()
    return
  }
  port.postMessage(runBatch(message))
})

function runBatch(commands: readonly Command[]): Outcome[] {
  try {
    return inTransaction(() => commands.map((command) => ({ ok: true, value: run(command) })))
  } catch (error) {
    // The whole batch was rolled back. Run its commands one by one, so that one that cannot succeed (a
    // constraint, say) fails alone and not its neighbours with it.
    const failed = failure(error)
    if (commands.length === 1 || (!failed.ok && failed.fatal)) return commands.map(() => failed)
    return commands.map((command) => {
      try {
        return inTransaction(() => ({ ok: true, value: run(command) }) as const)
      } catch (single) {
        return failure(single)
      }
    })
  }
}

function inTransaction<T>(work: () => T): T {
  db.exec('BEGIN IMMEDIATE')
  try {
    const result = work()
    meetDiskFault()
    db.exec('COMMIT')
    return result
  } catch (error) {
    // A full disk or a failed fsync has rolled back already, and ROLLBACK without a transaction throws.
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

/** Fails the commit as the disk would, if a test has asked for it. */
function meetDiskFault(): void {
  const errcode = diskFault === null ? 0 : Atomics.load(new Int32Array(diskFault), 0)
  if (errcode !== 0) throw Object.assign(new Error(`disk fault ${errcode}`), { errcode })
}

function run(command: Command): unknown {
  const [name, ...args] = command
  const operation = operations[name] as (...args: unknown[]) => ReturnType<Operations[typeof name]>
  return operation(...args)
}

/** SQLITE_IOERR with any of its details: a read, write or fsync that the disk refused. */
const IO_ERROR = 10

/** SQLITE_BUSY, LOCKED, NOMEM, INTERRUPT, FULL. */
const PASSING: ReadonlySet<number> = new Set([5, 6, 7, 9, 13])

function failure(error: unknown): Outcome {
  const code = error instanceof Error && 'errcode' in error ? Number(error.errcode) & 0xff : 0
  return {
    ok: false,
    error: error instanceof Error ? error.message : String(error),
    fatal: code === IO_ERROR,
    passing: PASSING.has(code),
  }
}
