import { DatabaseSync } from 'node:sqlite'
import { sqliteSchema } from '../render-schema.ts'
import { SCHEMA_VERSION } from '../schema.ts'
import { upgradesFrom } from '../upgrades.ts'

/** The schema version of an existing database; 0 if it is empty. */
export function schemaVersionOf(file: string): number {
  const db = new DatabaseSync(file, { readOnly: true, timeout: 5_000 })
  try {
    return versionOf(db)
  } finally {
    db.close()
  }
}

function versionOf(db: DatabaseSync): number {
  return Number(db.prepare('PRAGMA user_version').get()?.['user_version'] ?? 0)
}

/** Creates the tables of a new database, or upgrades an earlier version, in one transaction. A newer version is refused. */
export function migrate(db: DatabaseSync, location: 'main' | 'bodies' = 'main'): void {
  // The version is read under the write lock: a command and a gateway may start on a new directory at once.
  db.exec('BEGIN IMMEDIATE')
  try {
    const version = versionOf(db)
    if (version === 0) db.exec(sqliteSchema(location))
    else for (const statements of upgradesFrom(version, 'sqlite')) db.exec(statements)
    db.exec(`PRAGMA user_version = ${SCHEMA_VERSION}`)
    db.exec('COMMIT')
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}
