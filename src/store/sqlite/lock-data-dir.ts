import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

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
