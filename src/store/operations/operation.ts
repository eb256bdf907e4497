import type { Page } from '../../keys/key-store.ts'
import { number, pageOf, present, type Row } from '../rows.ts'
import type { Runnable } from './prepared.ts'
import { and, now, raw, type Sql, sql } from './sql.ts'

/** Yields statements and receives their rows. On PostgreSQL each is its own transaction, unless `atomic`. */
export type Operation<T> = Generator<Sql, T, readonly Row[]>

export type RunQuery = (statement: Sql) => Promise<readonly Row[]>

/** Runs an operation outside a store, for example on a snapshot. */
export async function runOn<T>(query: RunQuery, operation: Operation<T>): Promise<T> {
  let step = operation.next()
  while (!step.done) step = operation.next(await query(step.value))
  return step.value
}

export interface Snapshot {
  readonly query: RunQuery
  close(): Promise<void>
}

type Operate = (...args: never[]) => Operation<unknown>
export type Operations = Readonly<Record<string, Operate>>

type ResultOf<O extends Operate> = O extends (...args: never[]) => Operation<infer T> ? T : never

/** The operations as synchronous functions, for the thread that runs them. */
export type SyncMethods<O extends Operations> = {
  [Name in keyof O]: (...args: Parameters<O[Name]>) => ResultOf<O[Name]>
}

/** The operations as methods that return promises, for callers on other threads or connections. */
export type Methods<O extends Operations> = {
  [Name in keyof O]: (...args: Parameters<O[Name]>) => Promise<ResultOf<O[Name]>>
}

export function asyncMethods<O extends Operations>(
  operations: O,
  call: (name: keyof O & string, args: never[]) => Promise<unknown>,
): Methods<O> {
  const names = Object.keys(operations)
  return Object.fromEntries(
    names.map((name) => [name, (...args: never[]) => call(name, args)]),
  ) as unknown as Methods<O>
}

const ATOMIC = new Set<unknown>()

/** Makes PostgreSQL run the statements in one transaction. An operation with one statement does not need it. */
export function atomic<Args extends unknown[], T>(operate: (...args: Args) => Operation<T>) {
  ATOMIC.add(operate)
  return operate
}

export function isAtomic(operate: Operate): boolean {
  return ATOMIC.has(operate)
}

/** Statements that run in this order. PostgreSQL gets them pipelined, in one round trip. */
export interface Step {
  readonly statements: readonly Runnable[]
  /** How the last step ends the transaction; null for the others. */
  readonly end: 'COMMIT' | 'ROLLBACK' | null
}

/** Admissions and settlements in one transaction. Yields steps, and receives the rows of their statements. */
export type Batch<T> = Generator<Step, T, readonly (readonly Row[])[]>

export function step(statements: readonly Runnable[]): Step {
  return { statements, end: null }
}

export function lastStep(statements: readonly Runnable[]): Step {
  return { statements, end: 'COMMIT' }
}

export const ROLLBACK: Step = { statements: [], end: 'ROLLBACK' }

/** Runs an operation within a batch. Use it in rare cases, because each statement is a round trip. */
export function* inBatch<T>(operation: Operation<T>): Batch<T> {
  let result = operation.next()
  while (!result.done) {
    const [rows = []] = yield step([result.value])
    result = operation.next(rows)
  }
  return result.value
}

/** Conditions that the columns have these values. A null value imposes no condition. */
export function columnsEqual(values: Readonly<Record<string, string | null>>): Sql[] {
  return Object.entries(values).flatMap(([column, value]) =>
    value === null ? [] : [sql`${raw(column)} = ${value}`],
  )
}

/** A page of a list, newest first, ordered by an id that begins with a timestamp. */
export function* selectPage<Record>(
  page: { readonly select: Sql; readonly from: Sql; readonly where: readonly Sql[]; readonly id?: string },
  { after, limit }: { readonly after: string | null; readonly limit: number },
  toRecord: (row: Row) => Record,
): Operation<Page<Record>> {
  const id = raw(page.id ?? 'id')
  const where = and([sql`true`, ...page.where, ...(after === null ? [] : [sql`${id} < ${after}`])])
  const rows = yield sql`
    SELECT ${page.select} FROM ${page.from} WHERE ${where} ORDER BY ${id} DESC LIMIT ${limit + 1}`
  return pageOf(rows, limit, toRecord)
}

export function* currentTime(atMs: number): Operation<number> {
  const [row] = yield sql`SELECT ${now(atMs)} AS now_ms`
  return number(present(row), 'now_ms')
}
