import { mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { isMainThread } from 'node:worker_threads'
import type { Secret } from '../kernel/secret.ts'
import type { Snapshot } from './operations/operation.ts'

/** Makes the data directory private, because its files reveal which key made which call. */
export function makePrivateDir(dataDir: string): void {
  // SQLite creates its files with the umask of the process, which a worker thread cannot change.
  if (isMainThread) process.umask(0o077)
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
}

/** False if the file does not exist, and on Windows, which has no permission bits. */
export function isOpenToOthers(path: string): boolean {
  const stat = statSync(path, { throwIfNoEntry: false })
  return process.platform !== 'win32' && stat !== undefined && (stat.mode & 0o077) !== 0
}

/** The operating system drops this lock (an open transaction on a small database) when the process ends. */
export function lockDataDir(dataDir: string): { release(): void } | null {
  const db = new DatabaseSync(join(dataDir, 'serving.lock'), { timeout: 0 })
  try {
    db.exec('BEGIN EXCLUSIVE')
  } catch {
    db.close()
    return null
  }
  return { release: () => db.close() }
}

/** Opens the database for reading. Gateways may be running. Null: there is no database yet. */
export async function openSnapshot({
  dataDir,
  databaseUrl,
}: Readonly<{ dataDir: string; databaseUrl: Secret | null }>): Promise<Snapshot | null> {
  if (databaseUrl === null)
    return await (await import('./sqlite/database.ts')).openSqliteSnapshot(join(dataDir, 'tollgate.db'))
  return await (await import('./postgres/ledger.ts')).openPostgresSnapshot(databaseUrl.reveal())
}
