import { DatabaseSync } from 'node:sqlite'
import { migrate } from '../../src/store/sqlite/database.ts'

/** Empty books as the bytes of a file. A migration takes 17 ms, of the quarter of a second that most tests take. */
export const emptyBooks: Uint8Array = makeEmptyBooks()

function makeEmptyBooks(): Uint8Array {
  const db = new DatabaseSync(':memory:')
  migrate(db)
  return db.serialize()
}
