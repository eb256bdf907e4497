import { createDatabase } from './postgres.ts'

/** The store that the gateways of this run use. `test/run.ts` sets TEST_STORE. */
export const testStore: 'sqlite' | 'postgres' = readTestStore(process.env['TEST_STORE'])

function readTestStore(text = 'sqlite'): 'sqlite' | 'postgres' {
  if (text === 'sqlite' || text === 'postgres') return text
  throw new Error(`TEST_STORE is "sqlite" or "postgres", not "${text}"`)
}

/** The database of one gateway: on PostgreSQL, or in its data directory (null). */
export interface DatabasePlace {
  readonly databaseUrl: string | null
}

export interface OwnDatabase extends DatabasePlace {
  remove(): Promise<void>
}

export async function createTestDatabase(): Promise<OwnDatabase> {
  if (testStore === 'sqlite') return { databaseUrl: null, remove: async () => {} }
  // A server of this process would keep it alive: only test/run.ts knows when all tests are over.
  if (process.env['TEST_POSTGRES_URL'] === undefined) {
    throw new Error('there is no PostgreSQL to test on: node test/run.ts postgres <file>')
  }
  const database = await createDatabase()
  return { databaseUrl: database.url, remove: database.drop }
}

/** The variable that names the database, or none. */
export function databaseVariable({ databaseUrl }: DatabasePlace): Readonly<Record<string, string>> {
  return databaseUrl === null ? {} : { TOLLGATE_DATABASE_URL: databaseUrl }
}
