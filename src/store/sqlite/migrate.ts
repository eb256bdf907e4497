import { DatabaseSync } from 'node:sqlite'
import { migrations } from './migrations.ts'

export const SCHEMA_VERSION = migrations.length

/** The schema version of an existing database; 0 if it is empty. */
export function schemaVersionOf(file: string): number {
  const db = new DatabaseSync(file, { readOnly: true, timeout: 5_000 })
  try {
    return Number(db.prepare('PRAGMA user_version').get()?.['user_version'] ?? 0)
  } finally {
    db.close()
  }
}

/** Brings the schema to this version, in one transaction; a database of a newer version is refused. */
export function migrate(db: DatabaseSync): void {
  // Read under the write lock: a command and a gateway may start on a new directory at once.
  db.exec('BEGIN IMMEDIATE')
  const row = db.prepare('PRAGMA user_version').get()
  const version = Number(row?.['user_version'] ?? 0)
  if (version > migrations.length) {
    db.exec('ROLLBACK')
    throw new Error(
      `The database has schema version ${version}, this Tollgate knows up to ${migrations.length}. ` +
        'It was written by a newer version: start that one, or restore a backup made before the upgrade.',
    )
  }
  for (const migration of migrations.slice(version)) db.exec(migration)
  db.exec(`PRAGMA user_version = ${migrations.length}`)
  db.exec('COMMIT')
}
