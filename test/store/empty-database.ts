import { DatabaseSync } from 'node:sqlite'
import { migrateSqlite } from '../../src/store/sqlite/database.ts'

/** An empty database as the bytes of a file. A migration takes 17 ms, and most tests take 250 ms. */
export const emptyDatabase: Uint8Array = makeEmptyDatabase()

function makeEmptyDatabase(): Uint8Array {
  const db = new DatabaseSync(':memory:')
  migrateSqlite(db)
  return db.serialize()
}
