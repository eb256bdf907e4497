import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { SourceRow } from './copy-rows.ts'
import { type MovedTo, parseMovedTo } from './move-state.ts'
import { MOVED_TABLES, MOVED_TO, type MovedColumn, type MovedTable } from './moved-tables.ts'

/** What a table comes to: its rows, and the sum of each column of numbers. */
export type Totals = Readonly<Record<string, bigint>>

/** The books of a data directory, as they stood when they were opened. */
export interface Source {
  readonly installation: string
  /** A digest of what changes whenever anything is booked or managed. */
  readonly books: string
  rowsOf(table: MovedTable): number
  /** Each row is the columns of the table, in order. */
  read(table: MovedTable): Iterable<SourceRow>
  /** An instant in every month that has calls. */
  callMonths(): readonly number[]
  totals(table: MovedTable): Totals
  close(): void
}

export function openSource(dataDir: string): Source {
  const db = new DatabaseSync(join(dataDir, 'tollgate.db'), {
    readOnly: true,
    readBigInts: true,
    timeout: 5_000,
  })
  attachBodies(db, dataDir)
  // One view for all that is read.
  db.exec('BEGIN')
  const rows = new Map(MOVED_TABLES.map((table) => [table.name, countRows(db, table)]))
  return {
    installation: installationOf(db),
    books: digestOf(db),
    rowsOf: (table) => rows.get(table.name) ?? 0,
    read: (table) => readRows(db, table),
    callMonths: () => callMonths(db),
    totals: (table) => totalsOf(db, table),
    close: () => db.close(),
  }
}

/** Where no body was ever logged there is no file; the table is then empty. */
function attachBodies(db: DatabaseSync, dataDir: string): void {
  const file = join(dataDir, 'bodies.db')
  db.prepare('ATTACH DATABASE ? AS bodies').run(existsSync(file) ? file : ':memory:')
}

/** That of the bodies is made with the first body; books that were moved before have not all of the others. */
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

/** By the index of calls by their start: one look for each month, however many calls it has. */
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
  // SQLite's sums end at 64 bits, and those of holds may go beyond: the halves are added up each for itself.
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

/** The pepper's fingerprint: where that is the same, so are the keys. */
function installationOf(db: DatabaseSync): string {
  return String(db.prepare("SELECT value FROM setting WHERE name = 'pepper'").get()?.['value'] ?? '')
}

/**
 * What follows from others need not be looked at row by row. Each admission adds a call, each use that no call
 * came of leaves the time on its key, each settlement and credit moves the account or the day; of the rest the number
 * and the ends tell.
 */
const WITNESSES: readonly string[] = [
  'SELECT * FROM account ORDER BY id',
  'SELECT * FROM api_key ORDER BY id',
  'SELECT * FROM admin_key ORDER BY id',
  `SELECT * FROM setting WHERE name <> '${MOVED_TO}' ORDER BY name`,
  'SELECT count(*), max(id) FROM call',
  'SELECT count(*), max(id) FROM credit',
  'SELECT count(*), total(spent_nanos), total(held_nanos), total(lost_nanos) FROM key_month',
  'SELECT count(*), sum(requests), total(cost_nanos), total(credited_nanos) FROM rollup',
  'SELECT count(*), max(at_ms) FROM idempotency',
  'SELECT count(*), max(at_ms) FROM batch_file',
  'SELECT count(*), max(id) FROM price_version',
]

/** Books that were moved before there were any have no such table. */
const REFUSED_WITNESS = 'SELECT count(*), min(id), max(id) FROM refused_call'
const BODY_WITNESS = 'SELECT count(*), min(at_ms), max(at_ms) FROM bodies.call_body'
const NO_BODIES = 'SELECT 0, NULL, NULL'

/** On a connection with the bodies attached. */
function digestOf(db: DatabaseSync): string {
  const hash = createHash('sha256')
  const refused = hasTable(db, 'refused_call') ? [REFUSED_WITNESS] : []
  const bodies = hasTable(db, 'bodies.call_body') ? BODY_WITNESS : NO_BODIES
  for (const sql of [...WITNESSES, ...refused, bodies]) {
    for (const row of selectArrays(db, sql)) {
      hash.update(JSON.stringify(row, (_, value) => (typeof value === 'bigint' ? String(value) : value)))
    }
  }
  return hash.digest('hex')
}

/**
 * Leaves word in SQLite that the books are elsewhere now, unless they have changed since they were read: a command may
 * have written beside the move. False: they have, and there is no word.
 */
export function sealSource(dataDir: string, books: string, to: MovedTo): boolean {
  return withWritable(dataDir, (db) => {
    attachBodies(db, dataDir)
    // A command that wants to write waits until the word is there.
    db.exec('BEGIN IMMEDIATE')
    if (digestOf(db) !== books) return false
    db.prepare('INSERT OR REPLACE INTO setting (name, value) VALUES (?, ?)').run(MOVED_TO, JSON.stringify(to))
    db.exec('COMMIT')
    return true
  })
}

/** Where the books are said to be now; null if they are here. */
export function readSeal(dataDir: string): MovedTo | null {
  return withWritable(dataDir, (db) => {
    const value = db.prepare('SELECT value FROM setting WHERE name = ?').get(MOVED_TO)?.['value']
    return typeof value === 'string' ? parseMovedTo(value) : null
  })
}

/** Takes the word back. */
export function breakSeal(dataDir: string): void {
  withWritable(dataDir, (db) => db.prepare('DELETE FROM setting WHERE name = ?').run(MOVED_TO))
}

function withWritable<T>(dataDir: string, work: (db: DatabaseSync) => T): T {
  const db = new DatabaseSync(join(dataDir, 'tollgate.db'), { readBigInts: true, timeout: 5_000 })
  try {
    db.exec('PRAGMA synchronous = FULL')
    return work(db)
  } finally {
    db.close()
  }
}
