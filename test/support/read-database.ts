import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Queries } from '../../src/store/postgres/database.ts'
import { openPatientPool, runOn } from './postgres.ts'
import type { DatabasePlace } from './test-store.ts'

/** Reads and changes the database of a gateway directly, in either store. Both have the same columns. */

export type Rows = readonly Record<string, unknown>[]

/** The parts of a gateway that identify its database. */
export interface DatabaseOwner extends DatabasePlace {
  readonly dataDir: string
}

/** Rows in SQLite's form: flags are 0 and 1, integers bigint, lists JSON text. */
export type ReadRows = (sql: string) => Promise<Rows>

export interface DatabaseReader {
  readonly read: ReadRows
  /** All rows that `work` reads are from one snapshot. */
  atOneInstant(work: (read: ReadRows) => Promise<void>): Promise<void>
  close(): Promise<void>
}

export function openDatabaseReader({ dataDir, databaseUrl }: DatabaseOwner): DatabaseReader {
  if (databaseUrl !== null) return openDatabase(databaseUrl)
  const file = join(dataDir, 'tollgate.db')
  const db = new DatabaseSync(file, { readOnly: true, readBigInts: true, timeout: 60_000 })
  const read: ReadRows = async (sql) => db.prepare(sql).all()
  return {
    read,
    async atOneInstant(work) {
      db.exec('BEGIN')
      await work(read)
      db.exec('COMMIT')
    },
    async close() {
      db.close()
    },
  }
}

function openDatabase(url: string): DatabaseReader {
  const reader = openPatientPool(url)
  const readOn =
    (db: Queries): ReadRows =>
    async (sql) =>
      (await db.query(sql)).map(asInSqlite)
  return {
    read: readOn(reader),
    atOneInstant: (work) =>
      reader.transaction(async (tx) => {
        await tx.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY')
        await work(readOn(tx))
      }),
    close: () => reader.close(),
  }
}

export async function readDatabase(owner: DatabaseOwner, sql: string): Promise<Rows> {
  const database = openDatabaseReader(owner)
  try {
    return await database.read(sql)
  } finally {
    await database.close()
  }
}

/** A change by another process in one transaction, unknown to the gateway. */
export async function changeDatabase({ dataDir, databaseUrl }: DatabaseOwner, sql: string): Promise<void> {
  // Statements sent together are one transaction.
  if (databaseUrl !== null) return await runOn(databaseUrl, sql)
  const file = join(dataDir, 'tollgate.db')
  const db = new DatabaseSync(file, { enableForeignKeyConstraints: false, timeout: 60_000 })
  try {
    db.exec(`BEGIN IMMEDIATE; ${sql}; COMMIT`)
  } finally {
    db.close()
  }
}

export function asInSqlite(row: Rows[number]): Rows[number] {
  return Object.fromEntries(Object.entries(row).map(([column, value]) => [column, plain(value)]))
}

function plain(value: unknown): unknown {
  if (typeof value === 'boolean') return value ? 1n : 0n
  if (typeof value === 'number') return BigInt(value)
  return Array.isArray(value) ? JSON.stringify(value) : value
}
