import { chmodSync, mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { isMainThread } from 'node:worker_threads'
import type { Secret } from '../kernel/secret.ts'
import type { Snapshot } from './operations/operation.ts'

/** The files of a gateway in its data directory. Files of the operator's own beside them are left as they are. */
const DATABASES = ['tollgate.db', 'bodies.db']
const FILES = [
  ...DATABASES.flatMap((name) => [name, `${name}-wal`, `${name}-shm`]),
  ...['spool/settlements.jsonl', 'spool/refused.jsonl', 'serving.lock', 'pepper', 'admin-key', 'node'],
]
const FOLDERS = ['spool']

/** The data directory is private: its files reveal which key made which call. */
export function makePrivateDir(dataDir: string): void {
  // SQLite makes its files by the umask of the process. A thread cannot change the umask.
  if (isMainThread) process.umask(0o077)
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
}

/** Closes files that an earlier version, or another umask, has left open to other users. Returns files that stay open. */
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
        // The file belongs to another user.
        stillOpen.push(path)
      }
    }
  }
  return stillOpen
}

/** Null if there is no such file. */
export function modeOf(path: string): number | null {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat === undefined ? null : stat.mode & 0o777
}

/** Windows has no such bits; the mode that it reports there means nothing. */
export function isOpenToOthers(mode: number): boolean {
  return process.platform !== 'win32' && (mode & 0o077) !== 0
}

export interface DataDirLock {
  release(): void
}

/**
 * One gateway per data directory. The lock is an open exclusive transaction on a small database of its own: the
 * operating system drops it when the process ends, however it ends, so a crash leaves no stale lock behind, and
 * command-line tools can still read and write the real database beside a running gateway.
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

/** Opens a database for reading, beside running gateways or without one. Null: there is none yet. */
export async function openSnapshot({ dataDir, databaseUrl }: StoreLocation): Promise<Snapshot | null> {
  // Each driver is loaded only where it is used.
  if (databaseUrl === null)
    return await (await import('./sqlite/database.ts')).openSnapshot(join(dataDir, 'tollgate.db'))
  return await (await import('./postgres/ledger.ts')).openSnapshot(databaseUrl.reveal())
}
