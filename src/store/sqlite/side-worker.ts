import { chmodSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { BODIES, READS } from '../store.ts'
import { migrate, operationsOn, statementRunner } from './database.ts'
import { failureOf, type Outcome, type SideParts } from './thread-messages.ts'

/** The threads besides the writer: the reader runs queries over many rows, the other stores bodies. */

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
 * The reader's connection is read-only. With a write-ahead log, readers and the writer do not wait for each other, but
 * during a read the log cannot be checkpointed and grows.
 */
function openReader(): Side {
  const db = new DatabaseSync(file, { readOnly: true, readBigInts: true, timeout: 5_000 })
  const operations = operationsOn(statementRunner(db), READS)
  return {
    db,
    // One transaction per read: a snapshot of everything committed before it.
    run([name, ...args]) {
      db.exec('BEGIN')
      const value = call(operations, name, args)
      db.exec('COMMIT')
      return value
    },
  }
}

/**
 * Bodies have their own file: a megabyte per call would slow down the write-ahead log, for which every admission waits,
 * and every backup.
 */
function openBodies(): Side {
  const db = new DatabaseSync(file, { readBigInts: true, timeout: 5_000 })
  chmodSync(file, 0o600)
  // Returns the space of deleted bodies to the file system step by step. Must be set before the first table is created.
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

  /** Returns free space to the file system, and truncates the write-ahead log once there is nothing left to delete. */
  function giveSpaceBack(atEnd: boolean): void {
    db.exec('PRAGMA incremental_vacuum')
    if (atEnd) db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  }
}

function call<Operations extends object>(operations: Operations, name: string, args: unknown[]): unknown {
  const operation = operations[name as keyof Operations] as (...args: unknown[]) => unknown
  return operation(...args)
}
