import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { type CommandMessage, readCommand, writeOutcome } from './call-texts.ts'
import { migrate } from './migrate.ts'
import type { Command, WorkerParts } from './operations.ts'
import { failureOf, type Outcome } from './outcome.ts'
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
const begin = db.prepare('BEGIN IMMEDIATE')
const commit = db.prepare('COMMIT')
port.postMessage('ready')

port.on('message', (message: readonly CommandMessage[] | 'close') => {
  if (message === 'close') {
    db.close()
    port.close()
    return
  }
  const commands = message.map(readCommand)
  const outcomes = runBatch(commands)
  port.postMessage(commands.map((command, i) => writeOutcome(command, outcomes[i] ?? NO_OUTCOME)))
})

const NO_OUTCOME = failureOf(new Error('the command was not run'))

function runBatch(commands: readonly Command[]): Outcome[] {
  try {
    return inTransaction(() => commands.map((command) => ({ ok: true, value: operations.run(command) })))
  } catch (error) {
    // The whole batch was rolled back. Run its commands one by one, so that one that cannot succeed (a
    // constraint, say) fails alone and not its neighbours with it.
    const failed = failureOf(error)
    if (commands.length === 1 || failed.fatal) return commands.map(() => failed)
    return commands.map((command) => {
      try {
        return inTransaction(() => ({ ok: true, value: operations.run(command) }) as const)
      } catch (single) {
        return failureOf(single)
      }
    })
  }
}

function inTransaction<T>(work: () => T): T {
  begin.run()
  try {
    const result = work()
    operations.beforeCommit()
    meetDiskFault()
    commit.run()
    return result
  } catch (error) {
    operations.rolledBack()
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
