import { now, type Sql, sql } from './sql.ts'

/** A row of either store: integers are bigint, JSON of PostgreSQL is parsed, a flag is a boolean or 0 and 1. */
export type Row = Readonly<Record<string, unknown>>

/**
 * An operation, written once for both stores: it yields statements and is given their rows. SQLite's threads run it to
 * its end in the transaction of their batch. On PostgreSQL each statement is waited for and stands alone, unless the
 * operation is `atomic`: then all of them are one transaction, at READ COMMITTED.
 */
export type Operation<T> = Generator<Sql, T, readonly Row[]>

/** Runs one statement, for those that can wait for each. */
export type Ask = (statement: Sql) => Promise<readonly Row[]>

/** What makes an operation of the arguments of a command. */
export type Operate = (...args: never[]) => Operation<unknown>
export type Operations = Readonly<Record<string, Operate>>

export type AnswerOf<O extends Operate> = O extends (...args: never[]) => Operation<infer T> ? T : never

/** Operations by name, as they are called where they run. */
export type Answers<O extends Operations> = {
  [Name in keyof O]: (...args: Parameters<O[Name]>) => AnswerOf<O[Name]>
}

/** Operations by name, as they are called where their answer is waited for. */
export type Methods<O extends Operations> = {
  [Name in keyof O]: (...args: Parameters<O[Name]>) => Promise<AnswerOf<O[Name]>>
}

export function methodsOf<O extends Operations>(
  operations: O,
  ask: (name: keyof O & string, args: never[]) => Promise<unknown>,
): Methods<O> {
  const names = Object.keys(operations)
  return Object.fromEntries(
    names.map((name) => [name, (...args: never[]) => ask(name, args)]),
  ) as unknown as Methods<O>
}

/** Whether it is depends on the command where a command of one statement need not be. */
export function atomic<O extends Operate>(
  operate: O,
  isAtomic: (...args: Parameters<O>) => boolean = () => true,
): O {
  return Object.assign(operate, { isAtomic })
}

export function isAtomic(
  operate: Operate & { isAtomic?: (...args: never[]) => boolean },
  args: never[],
): boolean {
  return operate.isAtomic?.(...args) ?? false
}

/** The present instant, by the clock of the store. */
export function* currentTime(atMs: number): Operation<number> {
  const [row] = yield sql`SELECT ${now(atMs)} AS now_ms`
  return number(present(row), 'now_ms')
}

export function present(row: Row | undefined): Row {
  if (row === undefined) throw new Error('a row that must be there is not')
  return row
}

export function text(row: Row, column: string): string {
  const value = row[column]
  if (typeof value !== 'string') throw new Error(`${column} is not text`)
  return value
}

export function textOrNull(row: Row, column: string): string | null {
  return isNothing(row[column]) ? null : text(row, column)
}

export function number(row: Row, column: string): number {
  const value = row[column]
  if (typeof value !== 'bigint' && typeof value !== 'number') throw new Error(`${column} is not a number`)
  return Number(value)
}

export function numberOrNull(row: Row, column: string): number | null {
  return isNothing(row[column]) ? null : number(row, column)
}

export function nanos(row: Row, column: string): bigint {
  const value = row[column]
  if (typeof value !== 'bigint') throw new Error(`${column} is not an integer`)
  return value
}

export function nanosOrNull(row: Row, column: string): bigint | null {
  return isNothing(row[column]) ? null : nanos(row, column)
}

/** An integer without limit, which is read as text: PostgreSQL's sums are numeric. */
export function sum(row: Row, column: string): bigint {
  return BigInt(text(row, column))
}

export function bool(row: Row, column: string): boolean {
  const value = row[column]
  if (typeof value !== 'boolean' && typeof value !== 'bigint') throw new Error(`${column} is not a flag`)
  return value === true || value === 1n
}

function isNothing(value: unknown): boolean {
  return value === null || value === undefined
}
