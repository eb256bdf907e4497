import { existsSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'

/**
 * Reads a database without leaving a trace. A read-only connection to a write-ahead database still creates its -wal
 * and -shm files and leaves them there, so one that was closed in order is opened as immutable. If a gateway starts
 * meanwhile, what was read that way is worth nothing, and is read again beside it.
 */
export function readUntouched<T>(file: string, read: (db: DatabaseSync) => T): T {
  if (existsSync(`${file}-wal`)) return readWith(file, read)
  const before = stampOf(file)
  const url = pathToFileURL(file)
  url.searchParams.set('immutable', '1')
  const isAsBefore = (): boolean => !existsSync(`${file}-wal`) && stampOf(file) === before
  try {
    const result = readWith(url, read)
    if (isAsBefore()) return result
  } catch (error) {
    if (isAsBefore()) throw error
  }
  return readWith(file, read)
}

function readWith<T>(place: string | URL, read: (db: DatabaseSync) => T): T {
  const db = new DatabaseSync(place, { readOnly: true, readBigInts: true, timeout: 2_000 })
  try {
    return read(db)
  } finally {
    db.close()
  }
}

function stampOf(file: string): string {
  const { size, mtimeMs, ino } = statSync(file)
  return `${ino} ${size} ${mtimeMs}`
}
