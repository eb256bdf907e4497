import { chmodSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { bytesOf } from '../operations/bodies.ts'
import { BODIES } from '../operations/cold-operations.ts'
import { failureOf, type Outcome } from './outcome.ts'
import { operationsOn } from './run-operation.ts'

/**
 * The thread that keeps the bodies of logged calls, in a file of their own: a megabyte per call has no business in
 * the write-ahead log that every admission waits for, nor in every backup of the books.
 */

const port = parentPort
if (port === null) throw new Error('body-worker.ts runs as a worker thread only')

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS call_body (
    call_id            TEXT PRIMARY KEY,
    at_ms              INTEGER NOT NULL,
    request            BLOB,
    request_type       TEXT,
    request_bytes      INTEGER,
    request_truncated  INTEGER,
    response           BLOB,
    response_type      TEXT,
    response_bytes     INTEGER,
    response_truncated INTEGER
  ) STRICT;

  CREATE INDEX IF NOT EXISTS call_body_by_age ON call_body (at_ms);

  -- What all bodies take, kept with every change: adding them up would read the whole file.
  CREATE TABLE IF NOT EXISTS body_total (bytes INTEGER NOT NULL) STRICT;

  CREATE TRIGGER IF NOT EXISTS call_body_added AFTER INSERT ON call_body BEGIN
    UPDATE body_total SET bytes = bytes + ${bytesOf('NEW.')};
  END;

  CREATE TRIGGER IF NOT EXISTS call_body_deleted AFTER DELETE ON call_body BEGIN
    UPDATE body_total SET bytes = bytes - (${bytesOf('OLD.')});
  END;
`

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
makeSchema()
const operations = operationsOn(db, BODIES)
type BodyCommand = readonly [keyof typeof BODIES, ...unknown[]]

port.on('message', (message: BodyCommand | 'close') => {
  if (message === 'close') {
    db.close()
    port.close()
    return
  }
  port.postMessage(answer(message))
})

function answer([name, ...args]: BodyCommand): Outcome {
  const operation = operations[name] as (...args: unknown[]) => unknown
  try {
    const value = operation(...args)
    if (name === 'deleteBodies') giveSpaceBack(value === 0)
    return { ok: true, value }
  } catch (error) {
    return failureOf(error)
  }
}

/** A file of before has bodies and no total yet. */
function makeSchema(): void {
  db.exec('BEGIN IMMEDIATE')
  db.exec(SCHEMA)
  if (db.prepare('SELECT 1 FROM body_total').get() === undefined)
    db.exec(`INSERT INTO body_total SELECT coalesce(sum(${bytesOf()}), 0) FROM call_body`)
  db.exec('COMMIT')
}

/** To the file system, and out of the write-ahead log once there is nothing left to delete. */
function giveSpaceBack(atEnd: boolean): void {
  db.exec('PRAGMA incremental_vacuum')
  if (atEnd) db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
}
