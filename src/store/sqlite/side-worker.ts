import { chmodSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { BODIES, READS } from '../store.ts'
import { migrateSqlite, sqliteOperations, statementRunner } from './database.ts'
import { type SideOptions, type ThreadOutcome, threadFailure } from './thread-messages.ts'

/** A thread besides the writer: the reader runs queries over many rows, the other thread stores bodies. */

const port = parentPort
if (port === null) throw new Error('side-worker.ts runs as a worker thread only')

type SideCommand = readonly [name: string, ...args: unknown[]]

const { kind, file } = workerData as SideOptions
const db = kind === 'reader' ? openReader() : openBodies()
const operations: Readonly<Record<string, (...args: never[]) => unknown>> = sqliteOperations(
  statementRunner(db),
  kind === 'reader' ? READS : BODIES,
)

port.on('message', (message: readonly SideCommand[] | 'close') => {
  if (message !== 'close') {
    port.postMessage(message.map(answer))
    return
  }
  db.close()
  port.close()
})

/** One transaction per command: a read is a snapshot of everything committed before it. */
function answer([name, ...args]: SideCommand): ThreadOutcome {
  try {
    db.exec(kind === 'reader' || name === 'getBodies' ? 'BEGIN' : 'BEGIN IMMEDIATE')
    const value = operations[name]?.(...(args as never[]))
    db.exec('COMMIT')
    if (name === 'deleteBodies') releaseFreeSpace(value === 0)
    return { ok: true, value }
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    return threadFailure(error)
  }
}

/** Readers and the writer do not wait for each other, but the log cannot be checkpointed during a read. */
function openReader(): DatabaseSync {
  return new DatabaseSync(file, { readOnly: true, readBigInts: true, timeout: 5_000 })
}

/** Bodies have a separate file: a megabyte per call would slow down the log that every admission writes. */
function openBodies(): DatabaseSync {
  const bodies = new DatabaseSync(file, { readBigInts: true, timeout: 5_000 })
  chmodSync(file, 0o600)
  // Returns the space of deleted bodies to the file system step by step. Must be set before the first table is created.
  bodies.exec('PRAGMA auto_vacuum = INCREMENTAL')
  bodies.exec('PRAGMA journal_mode = WAL')
  // Deleted bodies must not stay readable in the file.
  bodies.exec('PRAGMA secure_delete = ON')
  // The last bodies before a power cut may be lost: no money depends on bodies.
  bodies.exec('PRAGMA synchronous = NORMAL')
  migrateSqlite(bodies, 'bodies')
  return bodies
}

/** Returns free space to the file system, and truncates the write-ahead log once there is nothing left to delete. */
function releaseFreeSpace(atEnd: boolean): void {
  db.exec('PRAGMA incremental_vacuum')
  if (atEnd) db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
}
