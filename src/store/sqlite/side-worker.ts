import { chmodSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { BODIES, READS } from '../store.ts'
import { migrate, operationsOn, statementRunner } from './database.ts'
import { failureOf, type Outcome, type SideParts } from './thread-messages.ts'

/** The threads beside the one that admits and settles: the reader runs queries over many rows, the other stores bodies. */

const port = parentPort
if (port === null) throw new Error('side-worker.ts runs as a worker thread only')

type SideCommand = readonly [name: string, ...args: unknown[]]

interface Side {
  readonly db: DatabaseSync
  run(command: SideCommand): unknown
}

const { kind, file } = workerData as SideParts
const { db, run } = kind === 'reader' ? openReader() : openBodies()

port.on('message', (message: readonly SideCommand[] | 'close') => {
  if (message === 'close') {
    db.close()
    port.close()
    return
  }
  port.postMessage(message.map(answer))
})

function answer(command: SideCommand): Outcome {
  try {
    return { ok: true, value: run(command) }
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    return failureOf(error)
  }
}

/**
 * The reader has a connection that cannot write. Readers and the writer of a write-ahead log do not wait for each other;
 * but while a read lasts the log cannot be folded back, so it grows.
 */
function openReader(): Side {
  const db = new DatabaseSync(file, { readOnly: true, readBigInts: true, timeout: 5_000 })
  const operations = operationsOn(statementRunner(db), READS)
  return {
    db,
    // One transaction per read: it sees all that was committed before it, and nothing that is committed during it.
    run([name, ...args]) {
      db.exec('BEGIN')
      const value = call(operations, name, args)
      db.exec('COMMIT')
      return value
    },
  }
}

/**
 * Bodies have a file of their own: a megabyte per call would burden the write-ahead log that every admission waits for,
 * and every backup.
 */
function openBodies(): Side {
  const db = new DatabaseSync(file, { readBigInts: true, timeout: 5_000 })
  chmodSync(file, 0o600)
  // Space of deleted bodies is given back to the file system bit by bit; this must be set before the first table.
  db.exec('PRAGMA auto_vacuum = INCREMENTAL')
  db.exec('PRAGMA journal_mode = WAL')
  // Deleted bodies must not stay readable in the file.
  db.exec('PRAGMA secure_delete = ON')
  // The last bodies before a power cut may be lost: no money depends on bodies.
  db.exec('PRAGMA synchronous = NORMAL')
  migrate(db, 'bodies')
  const operations = operationsOn(statementRunner(db), BODIES)
  return {
    db,
    run([name, ...args]) {
      db.exec(name === 'getBodies' ? 'BEGIN' : 'BEGIN IMMEDIATE')
      const value = call(operations, name, args)
      db.exec('COMMIT')
      if (name === 'deleteBodies') giveSpaceBack(value === 0)
      return value
    },
  }

  /** Space is given back to the file system, and out of the write-ahead log once there is nothing left to delete. */
  function giveSpaceBack(atEnd: boolean): void {
    db.exec('PRAGMA incremental_vacuum')
    if (atEnd) db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  }
}

function call<Operations extends object>(operations: Operations, name: string, args: unknown[]): unknown {
  const operation = operations[name as keyof Operations] as (...args: unknown[]) => unknown
  return operation(...args)
}
