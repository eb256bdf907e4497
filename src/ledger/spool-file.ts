import { existsSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { crc32 } from 'node:zlib'
import type { CallClosing } from './call.ts'
import { CALL_COLUMNS, CLOSING_AMOUNTS, CLOSING_NAMES } from './call-columns.ts'

/** A settlement in the spool. The checksum finds bytes that a disk has changed: a changed figure would still be a figure. */
export interface SpoolRow {
  readonly id: string
  readonly json: string
  readonly crc: number
}

export function toSpoolRow(closing: CallClosing): SpoolRow {
  const json = JSON.stringify(amountsAsText(closing))
  return { id: closing.requestId, json, crc: crc32(json) }
}

export function amountsAsText(closing: CallClosing): Readonly<Record<string, unknown>> {
  return { ...closing, ...Object.fromEntries(CLOSING_AMOUNTS.map((name) => [name, String(closing[name])])) }
}

/**
 * The closing; null if the row is damaged, or lacks a member. A nullable member may be missing: the version that wrote the
 * row may not have had that column.
 */
function readSpoolRow({ json, crc }: Pick<SpoolRow, 'json' | 'crc'>): CallClosing | null {
  if (crc32(json) !== crc) return null
  const written = { ...JSON.parse(json) } as Record<string, unknown>
  for (const name of NULLABLE) written[name] ??= null
  if (!MEMBERS.every((name) => Object.hasOwn(written, name))) return null
  for (const name of CLOSING_AMOUNTS) written[name] = BigInt(String(written[name]))
  return written as unknown as CallClosing
}

const MEMBERS: readonly (keyof CallClosing)[] = ['requestId', 'state', 'atMs', 'tokens', ...CLOSING_NAMES]
const NULLABLE = CLOSING_NAMES.filter((name) => CALL_COLUMNS[name].kind.endsWith('?'))

/** The file of the spool: a SQLite database, in which a committed row is on the disk. */
export function openSpoolFile(path: string): DatabaseSync {
  const db = new DatabaseSync(path, { timeout: 5_000 })
  try {
    // Rows that were taken give their room back to the disk.
    db.exec('PRAGMA auto_vacuum = FULL')
    db.exec('PRAGMA journal_mode = WAL')
    db.exec('PRAGMA synchronous = FULL')
    db.exec(`CREATE TABLE IF NOT EXISTS settlement
      (id TEXT PRIMARY KEY, json TEXT NOT NULL, crc INTEGER NOT NULL) STRICT`)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

/**
 * Removes rows and adds others, in one transaction. After a failure every waiting row is given again: SQLite writes pages
 * that it could not commit anew the next time, so a failed fsync is never just repeated.
 */
export function changeRows(db: DatabaseSync, takenIds: readonly string[], rows: readonly SpoolRow[]): void {
  const remove = db.prepare('DELETE FROM settlement WHERE id = ?')
  const insert = db.prepare('INSERT OR REPLACE INTO settlement (id, json, crc) VALUES (?, ?, ?)')
  db.exec('BEGIN IMMEDIATE')
  try {
    for (const id of takenIds) remove.run(id)
    for (const { id, json, crc } of rows) insert.run(id, json, BigInt(crc))
    db.exec('COMMIT')
  } catch (error) {
    // A full disk or a failed fsync has rolled back already, and ROLLBACK without a transaction throws.
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

/**
 * The settlements that an earlier process has left in the file, oldest first. A damaged file is put aside under another
 * name, and its legible rows go into a new file.
 */
export function readSpoolFile(path: string): { left: readonly CallClosing[]; damagedFile: string | null } {
  const { left, isDamaged } = readRows(path)
  if (!isDamaged) return { left, damagedFile: null }
  let damagedFile = `${path}.1.damaged`
  for (let i = 2; existsSync(damagedFile); i++) damagedFile = `${path}.${i}.damaged`
  // The -wal file that SQLite may have left beside the database moves too: SQLite finds it by its name.
  for (const suffix of ['', '-wal']) {
    if (existsSync(path + suffix)) renameSync(path + suffix, damagedFile + suffix)
  }
  rmSync(`${path}-shm`, { force: true })
  const db = openSpoolFile(path)
  changeRows(db, [], left.map(toSpoolRow))
  db.close()
  return { left, damagedFile }
}

/** SQLite's codes for a file that is damaged, or is no database. */
const DAMAGE = [11, 26]

/** The file is read from both ends: rows behind a damaged page are found from the other side. */
function readRows(path: string): { left: readonly CallClosing[]; isDamaged: boolean } {
  const found = new Map<number, CallClosing>()
  let isDamaged = false
  let db: DatabaseSync | null = null
  for (const order of ['ASC', 'DESC']) {
    try {
      db ??= openSpoolFile(path)
      const rows = db.prepare(`SELECT rowid AS number, json, crc FROM settlement ORDER BY rowid ${order}`)
      for (const { number, json, crc } of rows.iterate()) {
        const closing = readSpoolRow({ json: String(json), crc: Number(crc) })
        if (closing === null) isDamaged = true
        else found.set(Number(number), closing)
      }
      isDamaged ||= db.prepare('PRAGMA quick_check(1)').get()?.['quick_check'] !== 'ok'
    } catch (error) {
      if (!DAMAGE.includes(sqliteCode(error))) throw error
      isDamaged = true
    }
  }
  db?.close()
  const oldestFirst = [...found].sort(([a], [b]) => a - b)
  return { left: oldestFirst.map(([, closing]) => closing), isDamaged }
}

/** The low byte of SQLite's error code, which tells the kind. 0: the error is not SQLite's. */
export function sqliteCode(error: unknown): number {
  return Number((error as { errcode?: number }).errcode ?? 0) & 0xff
}

/** Refuses a spool from before it was a database: only the version that wrote its settlements can send them. */
export function refuseOldSpool(dir: string): void {
  const log = join(dir, 'settlements.log')
  const bytes = statSync(log, { throwIfNoEntry: false })?.size ?? 0
  if (bytes === 0) return
  throw new Error(
    `settlements of an earlier version wait in ${log}. Start that version once more, until the file is empty`,
  )
}
