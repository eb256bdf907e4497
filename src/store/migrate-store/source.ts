import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { SourceRow } from './copy-rows.ts'
import { type MovedTo, parseMovedTo } from './move-state.ts'
import { MOVED_TABLES, MOVED_TO, type MovedColumn, type MovedTable } from './moved-tables.ts'

/** The totals of a table: the number of its rows, and the sum of each column of numbers. */
export type Totals = Readonly<Record<string, bigint>>

/** The books of a data directory. Nothing can be written into them until they are closed. */
export interface Source {
  readonly installation: string
  rowsOf(table: MovedTable): number
  /** Each row is the columns of the table, in order. */
  read(table: MovedTable): Iterable<SourceRow>
  /** An instant in every month that has calls. */
  callMonths(): readonly number[]
  totals(table: MovedTable): Totals
  /** Notes in SQLite that the books are elsewhere now. After that the source is not read any more. */
  seal(to: MovedTo): void
  close(): void
}

export function openSource(dataDir: string): Source {
  const db = openWritable(dataDir)
  // Where no body was ever logged there is no file; the table is then empty.
  const bodies = join(dataDir, 'bodies.db')
  db.prepare('ATTACH DATABASE ? AS bodies').run(existsSync(bodies) ? bodies : ':memory:')
  // One transaction for all reads. A command that wants to write waits, and fails if the move takes longer.
  db.exec('BEGIN IMMEDIATE')
  const rows = new Map(MOVED_TABLES.map((table) => [table.name, countRows(db, table)]))
  return {
    installation: installationOf(db),
    rowsOf: (table) => rows.get(table.name) ?? 0,
    read: (table) => readRows(db, table),
    callMonths: () => callMonths(db),
    totals: (table) => totalsOf(db, table),
    seal(to) {
      const word = db.prepare('INSERT OR REPLACE INTO setting (name, value) VALUES (?, ?)')
      word.run(MOVED_TO, JSON.stringify(to))
      db.exec('COMMIT')
    },
    close: () => db.close(),
  }
}

/** The table of bodies is made with the first body; books that were moved before may lack some of the other tables. */
function hasTable(db: DatabaseSync, source: string): boolean {
  const [name = '', schema = 'main'] = source.split('.').toReversed()
  return db.prepare(`SELECT 1 FROM ${schema}.sqlite_master WHERE name = ?`).get(name) !== undefined
}

function countRows(db: DatabaseSync, table: MovedTable): number {
  if (!hasTable(db, table.source)) return 0
  const [row] = selectArrays(db, `SELECT count(*) FROM ${table.source} WHERE ${table.where}`)
  return Number(row?.[0])
}

function readRows(db: DatabaseSync, { source, columns, where, orderBy }: MovedTable): Iterable<SourceRow> {
  if (!hasTable(db, source)) return []
  const order = orderBy === null ? '' : `ORDER BY ${orderBy}`
  return selectArrays(
    db,
    `SELECT ${columns.map(({ from }) => from).join(', ')} FROM ${source} WHERE ${where} ${order}`,
  )
}

function selectArrays(db: DatabaseSync, sql: string): Iterable<SourceRow> {
  const select = db.prepare(sql)
  select.setReturnArrays(true)
  return select.iterate() as unknown as Iterable<SourceRow>
}

/** Months are found by the index of calls by their start: one look-up for each month, however many calls it has. */
function callMonths(db: DatabaseSync): readonly number[] {
  const next = db.prepare(
    'SELECT min(started_at_ms) AS at FROM call WHERE account_id = ? AND started_at_ms >= ?',
  )
  const instants: number[] = []
  for (const [id] of selectArrays(db, 'SELECT id FROM account')) {
    for (let from = -8.64e15; ; ) {
      const at = next.get(String(id), BigInt(from))?.['at']
      if (typeof at !== 'bigint') break
      instants.push(Number(at))
      const date = new Date(Number(at))
      from = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1)
    }
  }
  return instants
}

function totalsOf(db: DatabaseSync, table: MovedTable): Totals {
  if (!hasTable(db, table.source))
    return Object.fromEntries([['rows', 0n], ...summed(table).map(({ name }) => [name, 0n])])
  const columns = summed(table)
  // SQLite's sums end at 64 bits, and sums of holds may go beyond: the halves of the numbers are added up separately.
  const halves = columns.flatMap(({ from }) => [`sum(${from} >> 32)`, `sum(${from} & 4294967295)`])
  const [row = []] = selectArrays(
    db,
    `SELECT ${['count(*)', ...halves].join(', ')} FROM ${table.source} WHERE ${table.where}`,
  )
  const integer = (i: number): bigint => BigInt((row[i] ?? 0n) as bigint)
  return Object.fromEntries([
    ['rows', integer(0)],
    ...columns.map(({ name }, i) => [name, (integer(2 * i + 1) << 32n) + integer(2 * i + 2)] as const),
  ])
}

export function summed({ columns }: MovedTable): readonly MovedColumn[] {
  return columns.filter(({ kind }) => kind === 'integer' || kind === 'flag')
}

/** The fingerprint of the pepper names the installation: where it is the same, so are the keys. */
function installationOf(db: DatabaseSync): string {
  return String(db.prepare("SELECT value FROM setting WHERE name = 'pepper'").get()?.['value'] ?? '')
}

/** The seal, which says where the books are now; null if they are here. */
export function readSeal(dataDir: string): MovedTo | null {
  return withWritable(dataDir, (db) => {
    const value = db.prepare('SELECT value FROM setting WHERE name = ?').get(MOVED_TO)?.['value']
    return typeof value === 'string' ? parseMovedTo(value) : null
  })
}

/** Deletes the seal. */
export function breakSeal(dataDir: string): void {
  withWritable(dataDir, (db) => db.prepare('DELETE FROM setting WHERE name = ?').run(MOVED_TO))
}

function withWritable<T>(dataDir: string, work: (db: DatabaseSync) => T): T {
  const db = openWritable(dataDir)
  try {
    return work(db)
  } finally {
    db.close()
  }
}

function openWritable(dataDir: string): DatabaseSync {
  const db = new DatabaseSync(join(dataDir, 'tollgate.db'), { readBigInts: true, timeout: 5_000 })
  db.exec('PRAGMA synchronous = FULL')
  return db
}
