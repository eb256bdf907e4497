import { type Books, DataDir } from './books.ts'
import { PostgresBooks } from './postgres-books.ts'

/** Each store that keeps books. A test file that uses both names `stopPostgres` in its `after`. */
export const BOTH: readonly (readonly [store: string, create: () => Promise<Books>])[] = [
  ['SQLite', async () => new DataDir()],
  ['PostgreSQL', () => PostgresBooks.create()],
]
