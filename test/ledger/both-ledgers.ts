import { PostgresLedger } from './postgres-ledger.ts'
import { DataDir, type TestLedger } from './test-ledger.ts'

/** Each store that has a ledger. A test file that uses both passes `stopPostgres` to its `after`. */
export const BOTH: readonly (readonly [store: string, create: () => Promise<TestLedger>])[] = [
  ['SQLite', async () => new DataDir()],
  ['PostgreSQL', () => PostgresLedger.create()],
]
