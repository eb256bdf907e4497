import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type MovedTo, parseMovedTo } from './move-state.ts'
import { MOVED_TO } from './moved-tables.ts'
import { attachBodies, digestOf } from './source.ts'

/**
 * Leaves word in SQLite that the books are elsewhere now, unless they have changed since they were read: a command may
 * have written beside the move. False: they have, and there is no word.
 */
export function sealSource(dataDir: string, books: string, to: MovedTo): boolean {
  const db = openWritable(dataDir)
  try {
    attachBodies(db, dataDir)
    // Whoever wants to write waits until the word is there.
    db.exec('BEGIN IMMEDIATE')
    if (digestOf(db) !== books) return false
    db.prepare('INSERT OR REPLACE INTO setting (name, value) VALUES (?, ?)').run(MOVED_TO, JSON.stringify(to))
    db.exec('COMMIT')
    return true
  } finally {
    db.close()
  }
}

/** Where the books are said to be now; null if they are here. */
export function readSeal(dataDir: string): MovedTo | null {
  const db = openWritable(dataDir)
  try {
    const value = db.prepare('SELECT value FROM setting WHERE name = ?').get(MOVED_TO)?.['value']
    return typeof value === 'string' ? parseMovedTo(value) : null
  } finally {
    db.close()
  }
}

/** Takes the word back. */
export function breakSeal(dataDir: string): void {
  const db = openWritable(dataDir)
  try {
    db.prepare('DELETE FROM setting WHERE name = ?').run(MOVED_TO)
  } finally {
    db.close()
  }
}

function openWritable(dataDir: string): DatabaseSync {
  const db = new DatabaseSync(join(dataDir, 'tollgate.db'), { readBigInts: true, timeout: 5_000 })
  db.exec('PRAGMA synchronous = FULL')
  return db
}
