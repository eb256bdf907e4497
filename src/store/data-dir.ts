import { chmodSync, mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { isMainThread } from 'node:worker_threads'
import type { Secret } from '../kernel/secret.ts'
import type { Snapshot } from './operations/operation.ts'

/** The gateway's own files in the data directory. Other files there are not touched. */
const DATABASES = ['tollgate.db', 'bodies.db']
const FILES = [
  ...DATABASES.flatMap((name) => [name, `${name}-wal`, `${name}-shm`]),
  ...['spool/settlements.jsonl', 'spool/refused.jsonl', 'serving.lock', 'pepper', 'admin-key', 'node'],
]
const FOLDERS = ['spool']

/** Makes the data directory private, because its files reveal which key made which call. */
export function makePrivateDir(dataDir: string): void {
  // SQLite creates its files with the umask of the process, which a worker thread cannot change.
  if (isMainThread) process.umask(0o077)
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
}

/** Removes permissions of other users from existing files. Returns the files that are still readable by others. */
export function tightenFiles(dataDir: string): readonly string[] {
  const stillOpen: string[] = []
  for (const [names, mode] of [
    [FILES, 0o600],
    [FOLDERS, 0o700],
  ] as const) {
    for (const name of names) {
      const path = join(dataDir, name)
      const found = modeOf(path)
      if (found === null || !isOpenToOthers(found)) continue
      try {
        chmodSync(path, mode)
      } catch {
        // The file belongs to another user, so we cannot change its mode.
        stillOpen.push(path)
      }
    }
  }
  return stillOpen
}

/** The mode of a file; null if the file does not exist. */
export function modeOf(path: string): number | null {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat === undefined ? null : stat.mode & 0o777
}

/** False on Windows, where Node reports a mode without meaning. */
export function isOpenToOthers(mode: number): boolean {
  return process.platform !== 'win32' && (mode & 0o077) !== 0
}

export interface DataDirLock {
  release(): void
}

/**
 * One gateway per data directory. The lock is an open exclusive transaction on a separate small database. The operating
 * system drops it when the process ends, so a crash leaves no stale lock, and command-line tools can still use the real
 * database.
 */
export function lockDataDir(dataDir: string): DataDirLock | null {
  const db = new DatabaseSync(join(dataDir, 'serving.lock'), { timeout: 0 })
  try {
    db.exec('BEGIN EXCLUSIVE')
  } catch {
    db.close()
    return null
  }
  return { release: () => db.close() }
}

export interface StoreLocation {
  readonly dataDir: string
  /** Null: SQLite in the data directory. */
  readonly databaseUrl: Secret | null
}

/** Opens the database for reading, while gateways run or not. Null: there is no database yet. */
export async function openSnapshot({ dataDir, databaseUrl }: StoreLocation): Promise<Snapshot | null> {
  // Load only the driver that is needed.
  if (databaseUrl === null)
    return await (await import('./sqlite/database.ts')).openSnapshot(join(dataDir, 'tollgate.db'))
  return await (await import('./postgres/ledger.ts')).openSnapshot(databaseUrl.reveal())
}
