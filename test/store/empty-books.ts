import { DatabaseSync } from 'node:sqlite'
import { migrate } from '../../src/store/sqlite/migrate.ts'

/** Books that nothing was written to yet, as a file has them. To migrate takes 17 ms, of a quarter of a second that most tests take. */
export const emptyBooks: Uint8Array = makeEmptyBooks()

function makeEmptyBooks(): Uint8Array {
  const db = new DatabaseSync(':memory:')
  migrate(db)
  return db.serialize()
}
