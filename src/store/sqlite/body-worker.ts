import { chmodSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { type BodyOperations, bodyOperations } from './body-operations.ts'
import { failureOf, type Outcome } from './outcome.ts'

/**
 * The thread that keeps the bodies of logged calls, in a file of their own: a megabyte per call has no business in
 * the write-ahead log that every admission waits for, nor in every backup of the books.
 */

const port = parentPort
if (port === null) throw new Error('body-worker.ts runs as a worker thread only')

const { file } = workerData as { readonly file: string }
const db = new DatabaseSync(file, { readBigInts: true, timeout: 5_000 })
chmodSync(file, 0o600)
// Space of deleted bodies is given back to the file system bit by bit; this must be set before the first table.
db.exec('PRAGMA auto_vacuum = INCREMENTAL')
db.exec('PRAGMA journal_mode = WAL')
// What was deleted must not stay readable in the file.
db.exec('PRAGMA secure_delete = ON')
// The last bodies before a power cut may be lost. They are no money.
db.exec('PRAGMA synchronous = NORMAL')
const operations = bodyOperations(db)

port.on('message', (message: readonly [keyof BodyOperations, ...unknown[]] | 'close') => {
  if (message === 'close') {
    db.close()
    port.close()
    return
  }
  port.postMessage(answer(message))
})

function answer([name, ...args]: readonly [keyof BodyOperations, ...unknown[]]): Outcome {
  const operation = operations[name] as (...args: unknown[]) => unknown
  try {
    const value = operation(...args)
    if (name === 'deleteBodies') giveSpaceBack(value === 0)
    return { ok: true, value }
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    return failureOf(error)
  }
}

/** To the file system, and out of the write-ahead log once there is nothing left to delete. */
function giveSpaceBack(atEnd: boolean): void {
  db.exec('PRAGMA incremental_vacuum')
  if (atEnd) db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
}
