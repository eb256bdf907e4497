import pg from 'pg'
import { createLog } from '../../src/kernel/log.ts'
import { openPostgresStore, type PostgresStoreOptions } from '../../src/store/postgres/postgres-store.ts'
import type { Store } from '../../src/store/store.ts'
import { createDatabase, openPatientPool } from '../support/postgres.ts'
import type { Rows, StoreUnderTest } from './conformance/fixtures.ts'
import type { MortalStore } from './conformance/simulation-run.ts'
import { emptyTables } from './empty-tables.ts'

/** A long timeout: the suite sends thousands of concurrent calls on busy machines. */
const PATIENCE_MS = 60_000

/** A store that uses the caller's clock and runs nothing in the background. */
export function openByCallersClock(url: string, more: Partial<PostgresStoreOptions> = {}): Promise<Store> {
  return openPostgresStore(url, {
    clock: 'caller',
    node: { name: 'test', alone: true, beatEveryMs: null },
    log: createLog('silent'),
    answerMs: PATIENCE_MS,
    ...more,
  })
}

export async function openFreshPostgres(): Promise<StoreUnderTest> {
  return await openMortalPostgres()
}

/** Its connections are cut, and the next life is another node of the same name. `through`: a pooler's URL. */
export async function openMortalPostgres(through = (url: string): string => url): Promise<MortalStore> {
  const database = await openTestDatabase()
  const dead: Store[] = []
  const open = () => openByCallersClock(through(database.url))
  let store = await open()

  return {
    get store() {
      return store
    },
    rows: database.rows,
    addAccount: database.addAccount,
    exec: database.exec,
    async empty() {
      // The store drops its cached rows.
      await store.setBalanceLow(null)
      await database.exec(emptyTables('main', 'bodies'))
    },
    async die() {
      await cutConnections(database.url)
      dead.push(store)
      store = await open()
    },
    async close() {
      await Promise.all([store, ...dead].map((each) => each.close()))
      await database.close()
    },
  }
}

export interface OpenDatabase extends Pick<StoreUnderTest, 'rows' | 'addAccount' | 'exec'> {
  readonly url: string
  query(text: string, values?: readonly unknown[]): Promise<Rows>
  close(): Promise<void>
}

export async function openTestDatabase(): Promise<OpenDatabase> {
  const database = await createDatabase()
  const reading = openDatabaseAt(database.url)
  return {
    ...reading,
    async close() {
      await reading.close()
      await database.drop()
    },
  }
}

export function openDatabaseAt(url: string): OpenDatabase {
  const reader = openPatientPool(url)
  return {
    url,
    query: reader.query,
    rows: async (table) => (await reader.query(`SELECT * FROM ${table}`)).map(asInSqlite),
    exec: (sql) => reader.query(sql),
    async addAccount(id) {
      await reader.query('INSERT INTO account (id, created_at_ms) VALUES ($1, 0)', [id])
    },
    close: reader.close,
  }
}

/** Ends every session of the store, as a restart of the database would. */
export async function cutConnections(url: string): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  await client.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid()`,
  )
  await client.end()
}

/** The suite compares columns in SQLite's form: flags are 0 and 1, integers bigint, lists JSON text. */
function asInSqlite(row: Rows[number]): Rows[number] {
  const made: Record<string, unknown> = {}
  for (const column of Object.keys(row)) made[column] = plain(row[column])
  return made
}

function plain(value: unknown): unknown {
  if (typeof value === 'boolean') return value ? 1n : 0n
  if (typeof value === 'number') return BigInt(value)
  return Array.isArray(value) ? JSON.stringify(value) : value
}
