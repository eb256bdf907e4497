import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { systemClock } from '../kernel/clock.ts'
import { Secret } from '../kernel/secret.ts'
import { createKeyDigest, pepperFingerprint } from '../keys/key-digest.ts'
import { migrate } from '../store/sqlite/migrate.ts'

/**
 * The examiner: the process that touches the data directory. A disk that does not answer, or a database of many gigabytes,
 * blocks the caller, and a thread in such a call cannot be ended; a process can be killed, and the report still comes.
 */

/** The facts that this process tells about the data directory. None of them is secret. */
export interface DataDirFacts {
  readonly directory: DirectoryFacts
  readonly disk: DiskFacts
  readonly database: DatabaseFacts
  readonly integrity: readonly IntegrityFacts[]
}

/** One message, in the order of DataDirFacts. */
export type Observation = {
  readonly [K in keyof DataDirFacts]: readonly [K, DataDirFacts[K]]
}[keyof DataDirFacts]

export type DirectoryFacts = ReturnType<typeof examineDirectory>
export type DiskFacts = ReturnType<typeof examineDisk>
export type DatabaseFacts = ReturnType<typeof examineDatabase>
export type IntegrityFacts = ReturnType<typeof examineIntegrity>[number]
export type DatabaseContents = NonNullable<ReturnType<typeof contentsOf>>

/** The books, in the data directory or elsewhere, as far as the keys in them are concerned. */
export type KnownBooks =
  | { readonly kind: 'missing' | 'broken' }
  | Pick<Extract<DatabaseFacts, { kind: 'open' }>, 'kind' | 'serving' | 'contents'>

const PROBLEMS_MAX = 20
const SQLITE_BUSY = 5
const DATABASE_FILES = ['tollgate.db', 'bodies.db'] as const
/** The schema versions that brought the tables and columns which are read here. */
const KEYS_VERSION = 1
const CALLS_VERSION = 2
const DEFERRED_VERSION = 10
const FSYNCS = 20
const PAGE_BYTES = 4_096
const FSYNCS_MS_MAX = 4_000

const [dataDir = '', books = 'books-here', fsyncFile = ''] = process.argv.slice(2)

const directory = examineDirectory()
await tell(['directory', directory])
if (directory.kind !== 'unusable') await tell(['disk', examineDisk(directory)])
if (directory.kind === 'there' && books === 'books-here') {
  const database = examineDatabase()
  await tell(['database', database])
  if (database.kind === 'open') await tell(['integrity', examineIntegrity()])
}
process.disconnect()

/** Resolves when the observation was sent: the next examination may block this process for good. */
function tell(observation: Observation): Promise<void> {
  return new Promise((resolve, reject) => {
    process.send?.(observation, undefined, {}, (error) => (error === null ? resolve() : reject(error)))
  })
}

function examineDirectory() {
  try {
    const stat = statSync(dataDir)
    if (!stat.isDirectory()) return { kind: 'unusable' as const, reason: 'it is not a folder' }
    return {
      kind: 'there' as const,
      mode: stat.mode & 0o777,
      writable: isWritable(dataDir),
      pepper: examinePepper(join(dataDir, 'pepper')),
      /** The mode of the file with the first admin key; null if the file is no longer there. */
      adminKeyMode: modeOf(join(dataDir, 'admin-key')),
      refusedSettlements: countLines(join(dataDir, 'spool', 'refused.jsonl')),
    }
  } catch (error) {
    if (!isMissing(error)) return { kind: 'unusable' as const, reason: (error as Error).message }
    const above = nearestAbove(dataDir)
    return { kind: 'missing' as const, above, aboveWritable: isWritable(above) }
  }
}

function examineDisk(directory: DirectoryFacts) {
  const isThere = directory.kind === 'there'
  const { bavail, blocks, bsize } = statfsSync(isThere ? dataDir : nearestAbove(dataDir))
  // The fsync measurement is null where nothing can be written yet.
  const fsync = isThere && directory.writable ? measureFsync(fsyncFile) : null
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize, fsync }
}

function examinePepper(file: string) {
  try {
    const mode = statSync(file).mode & 0o777
    const text = readFileSync(file, 'utf8').trim()
    // A start takes an empty file for none.
    if (text === '') return { kind: 'missing' as const }
    const pepper = new Secret(text)
    return { kind: 'there' as const, mode, fingerprint: pepperFingerprint(createKeyDigest(pepper)) }
  } catch (error) {
    return isMissing(error)
      ? { kind: 'missing' as const }
      : { kind: 'unreadable' as const, reason: (error as Error).message }
  }
}

function modeOf(file: string): number | null {
  try {
    return statSync(file).mode & 0o777
  } catch {
    return null
  }
}

/** The lines of a file; none if the file is not there, null if it cannot be read. */
function countLines(file: string): number | null {
  try {
    return readFileSync(file, 'utf8').split('\n').length - 1
  } catch (error) {
    return isMissing(error) ? 0 : null
  }
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK | constants.X_OK)
    return true
  } catch {
    return false
  }
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT'
}

function nearestAbove(path: string): string {
  let above = dirname(path)
  while (modeOf(above) === null && dirname(above) !== above) above = dirname(above)
  return above
}

/** Appends pages as the write-ahead log does, and waits for each to be on the disk. */
function measureFsync(file: string) {
  const page = Buffer.alloc(PAGE_BYTES, 1)
  const tookMs: number[] = []
  try {
    const descriptor = openSync(file, 'wx', 0o600)
    try {
      const startedMs = systemClock.monotonicMs()
      while (tookMs.length < FSYNCS && systemClock.monotonicMs() - startedMs < FSYNCS_MS_MAX) {
        const beforeMs = systemClock.monotonicMs()
        writeSync(descriptor, page)
        fsyncSync(descriptor)
        tookMs.push(systemClock.monotonicMs() - beforeMs)
      }
    } finally {
      closeSync(descriptor)
      rmSync(file, { force: true })
    }
  } catch (error) {
    return { reason: (error as Error).message }
  }
  tookMs.sort((a, b) => a - b)
  return { medianMs: tookMs[Math.floor(tookMs.length / 2)] ?? 0, count: tookMs.length }
}

function examineDatabase() {
  const file = join(dataDir, 'tollgate.db')
  if (!existsSync(file)) return { kind: 'missing' as const }
  const serving = isServing(join(dataDir, 'serving.lock'))
  const schemaVersionKnown = versionKnown()
  try {
    return readUntouched(file, (db) => {
      const schemaVersion = versionOf(db)
      return {
        kind: 'open' as const,
        bytes: sizeOf(file),
        walBytes: sizeOf(`${file}-wal`),
        bodiesBytes: sizeOf(join(dataDir, 'bodies.db')),
        schemaVersion,
        schemaVersionKnown,
        serving,
        /** Null in a database whose schema is not ours to read. */
        contents: schemaVersion > schemaVersionKnown ? null : contentsOf(db, schemaVersion),
      }
    })
  } catch (error) {
    return { kind: 'broken' as const, reason: (error as Error).message }
  }
}

/** Checks page by page and row by row, but not that each index agrees with its table: `tollgate audit` checks that. */
function examineIntegrity() {
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

function contentsOf(db: DatabaseSync, version: number) {
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
      version < CALLS_VERSION
        ? 0
        : count(
            `SELECT count(*) AS count FROM call WHERE state = 'in_flight'
             ${version < DEFERRED_VERSION ? '' : 'AND object_id IS NULL AND parent_id IS NULL'}`,
          ),
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

/** The schema version that this Tollgate knows is the one that a new database gets. */
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

/**
 * Reads a database without leaving a trace. A read-only connection to a write-ahead database still creates its -wal
 * and -shm files and leaves them there, so a database that was closed in order is opened as immutable. If a gateway starts
 * meanwhile, the result of the immutable read is worth nothing, and the database is read again beside the gateway.
 */
function readUntouched<T>(file: string, read: (db: DatabaseSync) => T): T {
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
