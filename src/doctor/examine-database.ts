import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { migrate } from '../store/sqlite/migrate.ts'
import type { DatabaseContents, DatabaseFacts, IntegrityFacts } from './data-dir-facts.ts'
import { readUntouched } from './open-untouched.ts'

const PROBLEMS_MAX = 20
const SQLITE_BUSY = 5
const DATABASE_FILES = ['tollgate.db', 'bodies.db'] as const

/** The schema versions that brought what is read here. */
const KEYS_VERSION = 1
const CALLS_VERSION = 2

export function examineDatabase(dataDir: string): DatabaseFacts {
  const file = join(dataDir, 'tollgate.db')
  if (!existsSync(file)) return { kind: 'missing' }
  const serving = isServing(join(dataDir, 'serving.lock'))
  const schemaVersionKnown = versionKnown()
  try {
    return readUntouched(file, (db) => {
      const schemaVersion = versionOf(db)
      return {
        kind: 'open',
        bytes: sizeOf(file),
        walBytes: sizeOf(`${file}-wal`),
        bodiesBytes: sizeOf(join(dataDir, 'bodies.db')),
        schemaVersion,
        schemaVersionKnown,
        serving,
        contents: schemaVersion > schemaVersionKnown ? null : contentsOf(db, schemaVersion),
      }
    })
  } catch (error) {
    return { kind: 'broken', reason: (error as Error).message }
  }
}

/** Page by page and row by row, but not whether each index holds what its table does: that is `tollgate audit`'s. */
export function examineIntegrity(dataDir: string): IntegrityFacts[] {
  return DATABASE_FILES.map((name) => join(dataDir, name))
    .filter((file) => existsSync(file))
    .map((file) => ({ file, bytes: sizeOf(file), problems: quickCheck(file) }))
}

function quickCheck(file: string): string[] {
  try {
    return readUntouched(file, (db) => {
      const rows = db.prepare(`PRAGMA quick_check(${PROBLEMS_MAX})`).all()
      return rows.map((row) => String(row['quick_check'])).filter((text) => text !== 'ok')
    })
  } catch (error) {
    return [(error as Error).message]
  }
}

function contentsOf(db: DatabaseSync, version: number): DatabaseContents | null {
  if (version < KEYS_VERSION) return null
  const count = (sql: string): number => Number(db.prepare(sql).get()?.['count'] ?? 0)
  const fingerprint = db.prepare("SELECT value FROM setting WHERE name = 'pepper'").get()?.['value']
  const inForce = (bootstrap: 0 | 1): number =>
    count(`SELECT count(*) AS count FROM admin_key WHERE revoked_at_ms IS NULL AND bootstrap = ${bootstrap}`)
  return {
    pepperFingerprint: typeof fingerprint === 'string' ? fingerprint : null,
    adminKeysInForce: inForce(0),
    bootstrapKeyInForce: inForce(1) > 0,
    openCalls:
      version < CALLS_VERSION ? 0 : count("SELECT count(*) AS count FROM call WHERE state = 'in_flight'"),
  }
}

/**
 * A gateway that serves holds the lock exclusively, so that not even a read gets in. Only a read is tried: the lock
 * itself, taken for an instant, could turn a starting gateway away.
 */
function isServing(lockFile: string): boolean | null {
  if (!existsSync(lockFile)) return false
  try {
    const db = new DatabaseSync(lockFile, { readOnly: true, timeout: 0 })
    try {
      db.prepare('SELECT count(*) FROM sqlite_schema').get()
      return false
    } finally {
      db.close()
    }
  } catch (error) {
    return error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY ? true : null
  }
}

/** What a new database gets is what this version knows. */
function versionKnown(): number {
  const db = new DatabaseSync(':memory:')
  try {
    migrate(db)
    return versionOf(db)
  } finally {
    db.close()
  }
}

function versionOf(db: DatabaseSync): number {
  return Number(db.prepare('PRAGMA user_version').get()?.['user_version'] ?? 0)
}

function sizeOf(file: string): number {
  return existsSync(file) ? statSync(file).size : 0
}
