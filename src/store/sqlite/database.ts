import { existsSync } from 'node:fs'
import { DatabaseSync, type SQLInputValue, type SQLOutputValue, type StatementSync } from 'node:sqlite'
import { compileLiteral } from '../compile-literal.ts'
import type { Batch, Operation, Operations, Snapshot, SyncMethods } from '../operations/operation.ts'
import { boundValue, type Prepared, type Runnable } from '../operations/prepared.ts'
import { type BoundValue, type Dialect, render } from '../operations/sql.ts'
import { number, present, type Row } from '../rows.ts'
import { SCHEMA, sqliteSchema } from '../schema.ts'
import {
  assertReadable,
  createRecord,
  READ_RECORD,
  type RecordedVersion,
  stepsFrom,
  type UpgradeStep,
  updateRecord,
} from '../upgrades.ts'
import { bodiesFileOf } from './bodies-file.ts'

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
  const members = statement.columns().map(({ name }, i) => `${JSON.stringify(name)}: from[${i}]`)
  const rowOf = compileLiteral<SQLOutputValue[], Row>(`{ ${members.join(', ')} }`)
  statement.setReturnArrays(true)

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

type SqliteFile = 'main' | 'bodies'

/** Null: the file has no tables yet. */
function readVersion(db: DatabaseSync): RecordedVersion | null {
  const created = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'schema_version'").get()
  const row = created === undefined ? undefined : db.prepare(READ_RECORD).get()
  return row === undefined
    ? null
    : { version: number(row, 'version'), oldestVersion: number(row, 'oldest_version') }
}

/** How long a step waits for another process that writes. */
const UPGRADE_LOCK_MS = 60_000

/** Creates the tables of a file, or upgrades them, each step in one transaction. */
export function migrateSqlite(db: DatabaseSync, file: SqliteFile = 'main', release = SCHEMA): void {
  // Read the version under the write lock: a command and a gateway may start on a new directory at the same time.
  inWriteTransaction(db, () => {
    if (readVersion(db) === null) db.exec(`${createRecord(release)}; ${release.create(file)}`)
  })
  const steps = stepsFrom(present(readVersion(db)), release)
  if (steps.length === 0) return
  const { timeout } = present(db.prepare('PRAGMA busy_timeout').get())
  db.exec(`PRAGMA busy_timeout = ${UPGRADE_LOCK_MS}`)
  for (const step of steps)
    inWriteTransaction(db, () => {
      if (present(readVersion(db)).version >= step.version) return
      db.exec(`${sqliteStatements(step, file)}; ${updateRecord(step)}`)
    })
  db.exec(`PRAGMA busy_timeout = ${timeout}`)
}

function sqliteStatements(step: UpgradeStep, file: SqliteFile): string {
  if (!('index' in step)) return step.statements[file] ?? ''
  const { name, on } = step.index
  return step.index.file === file ? `CREATE INDEX ${name} ON ${on}` : ''
}

function inWriteTransaction(db: DatabaseSync, work: () => void): void {
  db.exec('BEGIN IMMEDIATE')
  try {
    work()
    db.exec('COMMIT')
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

/** Upgrades the bodies at the start too, because commands read both files. */
export function migrateBodies(mainFile: string, release = SCHEMA): void {
  const file = bodiesFileOf(mainFile)
  if (!existsSync(file)) return
  const bodies = new DatabaseSync(file, { readBigInts: true, timeout: UPGRADE_LOCK_MS })
  try {
    migrateSqlite(bodies, 'bodies', release)
  } finally {
    bodies.close()
  }
}

/** A consistent snapshot, during which the write-ahead log cannot be checkpointed. Null: there is no database. */
export async function openSqliteSnapshot(file: string): Promise<Snapshot | null> {
  if (!existsSync(file)) return null
  const db = new DatabaseSync(file, { readOnly: true, readBigInts: true, timeout: 5_000 })
  try {
    const version = readVersion(db)
    if (version === null) {
      db.close()
      return null
    }
    assertReadable(version, SCHEMA)
  } catch (error) {
    db.close()
    throw error
  }
  const bodies = bodiesFileOf(file)
  if (existsSync(bodies)) db.prepare('ATTACH ? AS bodies').run(bodies)
  else db.exec(sqliteSchema('bodies').replaceAll('CREATE TABLE', 'CREATE TEMP TABLE'))
  db.exec('BEGIN')
  const run = statementRunner(db)
  return { query: async (statement) => run(statement), close: async () => db.close() }
}
