import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import type { Cell } from '../export-rows.ts'
import type { ImportTarget } from '../import-rows.ts'
import { type Column, FIRST_ROWS, SCHEMA_VERSION, sqliteSchema, TABLES } from '../schema.ts'

type Location = 'main' | 'bodies'

/** Rows are written to new files, which are renamed into place once they are on disk. */
export function openImportFile(dataDir: string): ImportTarget {
  const files: Readonly<Record<Location, string>> = {
    main: join(dataDir, 'tollgate.db'),
    bodies: join(dataDir, 'bodies.db'),
  }
  const open = new Map<Location, DatabaseSync>()
  const statements = new Map<string, StatementSync>()

  function databaseOf(location: Location): DatabaseSync {
    const known = open.get(location)
    if (known !== undefined) return known
    const file = `${files[location]}.import`
    rmSync(file, { force: true })
    const db = new DatabaseSync(file)
    open.set(location, db)
    db.exec('PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -200000')
    if (location === 'bodies') db.exec('PRAGMA auto_vacuum = INCREMENTAL')
    db.exec('BEGIN')
    db.exec(sqliteSchema(location))
    for (const { name } of TABLES)
      if (FIRST_ROWS[name] !== undefined && locationOf(name) === location) db.exec(`DELETE FROM ${name}`)
    db.exec(`PRAGMA user_version = ${SCHEMA_VERSION}`)
    return db
  }

  function statementOf(table: string, columns: readonly Column[]): StatementSync {
    const known = statements.get(table)
    if (known !== undefined) return known
    const names = columns.map(({ name }) => name).join(', ')
    const made = databaseOf(locationOf(table)).prepare(
      `INSERT INTO ${table} (${names}) VALUES (${columns.map(() => '?').join(', ')})`,
    )
    statements.set(table, made)
    return made
  }

  const discard = (): void => {
    for (const [location, db] of open) {
      db.close()
      rmSync(`${files[location]}.import`, { force: true })
    }
    open.clear()
  }

  databaseOf('main')
  return {
    async insert(table, columns, rows) {
      const statement = statementOf(table, columns)
      for (const row of rows) statement.run(...row.map((cell, at) => bound(cell, columns[at])))
    },
    async commit() {
      for (const [location, db] of open) {
        db.exec('COMMIT')
        db.close()
        syncPath(`${files[location]}.import`)
      }
      // The main database is the last to appear: without it the store is empty.
      for (const location of ['bodies', 'main'] as const) {
        if (!open.has(location)) continue
        for (const ending of ['', '-wal', '-shm']) rmSync(files[location] + ending, { force: true })
        renameSync(`${files[location]}.import`, files[location])
      }
      open.clear()
      syncPath(dirname(files.main))
    },
    async abort() {
      discard()
    },
  }
}

function locationOf(table: string): Location {
  return TABLES.find(({ name }) => name === table)?.location === 'bodies' ? 'bodies' : 'main'
}

function bound(cell: Cell, column: Column | undefined): SQLInputValue {
  if (cell === null) return null
  switch (column?.kind) {
    case 'integer':
      return typeof cell === 'string' ? BigInt(cell) : (cell as number)
    case 'flag':
      return cell === true ? 1 : 0
    case 'bytes':
      return Buffer.from(String(cell), 'base64')
    default:
      return String(cell)
  }
}

function syncPath(path: string): void {
  if (!existsSync(path)) return
  const descriptor = openSync(path, 'r')
  fsyncSync(descriptor)
  closeSync(descriptor)
}
