import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync, type SQLInputValue, type SQLOutputValue, type StatementSync } from 'node:sqlite'
import type { Batch, Operation, Operations, Snapshot, SyncMethods } from '../operations/operation.ts'
import { boundValue, type Prepared, type Runnable } from '../operations/prepared.ts'
import { type BoundValue, type Dialect, render } from '../operations/sql.ts'
import type { Row } from '../rows.ts'
import { newerSchema, SCHEMA_VERSION, sqliteSchema, upgradesFrom } from '../schema.ts'

const SQLITE: Dialect = { store: 'sqlite', clock: 'caller' }

/** How many prepared statements are cached. Preparing costs six times as much as running. */
const PREPARED_MAX = 200
const PREPARED_CHARACTERS_MAX = 4_000

type RunStatement = (statement: Runnable) => readonly Row[]

type RunPrepared = (values: readonly BoundValue[]) => readonly Row[]

export function statementRunner(db: DatabaseSync): RunStatement {
  const prepared = new Map<Prepared | string, RunPrepared>()

  function preparedRun(statement: Prepared | string): RunPrepared {
    const known = prepared.get(statement)
    if (known !== undefined) return known
    const text = typeof statement === 'string' ? statement : statement.textFor(SQLITE)
    const run = runPrepared(db.prepare(text))
    if (prepared.size >= PREPARED_MAX) prepared.clear()
    if (text.length <= PREPARED_CHARACTERS_MAX) prepared.set(statement, run)
    return run
  }

  return (statement) => {
    if ('texts' in statement) {
      const { text, values } = render(statement, SQLITE)
      return text === '' ? NO_ROWS : preparedRun(text)(values)
    }
    const { perRow, rows } = statement
    if (rows.length === 0) return NO_ROWS
    const run = preparedRun(perRow)
    return rows.length === 1 ? run(rows[0] ?? []) : rows.flatMap((row) => run(row))
  }
}

/** Reads rows as arrays and copies them into objects, because SQLite's own objects are slow to create and to read. */
function runPrepared(statement: StatementSync): RunPrepared {
  const names = statement.columns().map(({ name }) => name)
  const blank = Object.fromEntries(names.map((name) => [name, null]))
  statement.setReturnArrays(true)

  function rowOf(cells: readonly SQLOutputValue[]): Row {
    const row: Record<string, unknown> = { ...blank }
    for (const [i, name] of names.entries()) row[name] = cells[i]
    return row
  }

  return (values) => {
    const bound = values.map((value) => boundValue(value, 'sqlite') as SQLInputValue)
    const rows = statement.all(...bound) as unknown as SQLOutputValue[][]
    return rows.length === 0 ? NO_ROWS : rows.map(rowOf)
  }
}

const NO_ROWS: readonly Row[] = []

/** The caller commits. */
export function runBatchOnSqlite<T>(batch: Batch<T>, run: RunStatement): T {
  let result = batch.next()
  while (!result.done) result = batch.next(result.value.statements.map(run))
  return result.value
}

export function runToEnd<T>(operation: Operation<T>, run: RunStatement): T {
  let step = operation.next()
  while (!step.done) step = operation.next(run(step.value))
  return step.value
}

export function sqliteOperations<O extends Operations>(run: RunStatement, operations: O): SyncMethods<O> {
  return Object.fromEntries(
    Object.entries(operations).map(([name, operate]) => [
      name,
      (...args: never[]) => runToEnd(operate(...args), run),
    ]),
  ) as SyncMethods<O>
}

/** 0 if the database is empty. */
function versionOf(db: DatabaseSync): number {
  return Number(db.prepare('PRAGMA user_version').get()?.['user_version'] ?? 0)
}

/** Creates the tables, or upgrades an earlier version, in one transaction. Refuses a newer version. */
export function migrateSqlite(db: DatabaseSync, location: 'main' | 'bodies' = 'main'): void {
  // Read the version under the write lock: a command and a gateway may start on a new directory at the same time.
  db.exec('BEGIN IMMEDIATE')
  try {
    const version = versionOf(db)
    if (version === 0) db.exec(sqliteSchema(location))
    else for (const statements of upgradesFrom(version, 'sqlite')) db.exec(statements)
    db.exec(`PRAGMA user_version = ${SCHEMA_VERSION}`)
    db.exec('COMMIT')
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

/** A consistent snapshot, during which the write-ahead log cannot be checkpointed. Null: there is no database. */
export async function openSqliteSnapshot(file: string): Promise<Snapshot | null> {
  if (!existsSync(file)) return null
  const db = new DatabaseSync(file, { readOnly: true, readBigInts: true, timeout: 5_000 })
  const version = versionOf(db)
  if (version === 0 || version > SCHEMA_VERSION) {
    db.close()
    if (version === 0) return null
    throw newerSchema(version)
  }
  const bodies = join(dirname(file), 'bodies.db')
  if (existsSync(bodies)) db.prepare('ATTACH ? AS bodies').run(bodies)
  else db.exec(sqliteSchema('bodies').replaceAll('CREATE TABLE', 'CREATE TEMP TABLE'))
  db.exec('BEGIN')
  const run = statementRunner(db)
  return { query: async (statement) => run(statement), close: async () => db.close() }
}
