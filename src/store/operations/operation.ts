import { number, present, type Row } from '../rows.ts'
import { now, type Runnable, type Sql, sql } from './sql.ts'

/**
 * An operation, written once for both stores: it yields statements and is given their rows. SQLite's threads run it to
 * its end in the transaction of their batch. On PostgreSQL each statement is waited for and stands alone, unless the
 * operation is `atomic`: then all of its statements are one transaction, at READ COMMITTED.
 */
export type Operation<T> = Generator<Sql, T, readonly Row[]>

export type Ask = (statement: Sql) => Promise<readonly Row[]>

export interface Snapshot {
  readonly ask: Ask
  close(): Promise<void>
}

/** A function that makes an operation of the arguments of a command. */
export type Operate = (...args: never[]) => Operation<unknown>
export type Operations = Readonly<Record<string, Operate>>

export type AnswerOf<O extends Operate> = O extends (...args: never[]) => Operation<infer T> ? T : never

/** Operations by name, as they are called on the thread that runs them. */
export type Answers<O extends Operations> = {
  [Name in keyof O]: (...args: Parameters<O[Name]>) => AnswerOf<O[Name]>
}

/** Operations by name, as they are called where the answer is a promise. */
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

/** Marks an operation as atomic. `isAtomic` decides by the command where a command of one statement need not be atomic. */
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

/**
 * A step of a batch: statements that go to the database together, in this order. SQLite runs the statements one by one;
 * PostgreSQL gets them in one flight, so that a batch takes as many round trips as it has steps.
 */
export interface Step {
  readonly statements: readonly Runnable[]
  /** How the last step ends the transaction; null for the others. */
  readonly end: 'commit' | 'rollback' | null
}

export type StepRows = readonly (readonly Row[])[]

/** Commands of the hot path, all in one transaction: it yields steps and is given the rows of their statements. */
export type Batch<T> = Generator<Step, T, StepRows>

export function step(statements: readonly Runnable[]): Step {
  return { statements, end: null }
}

export function lastStep(statements: readonly Runnable[]): Step {
  return { statements, end: 'commit' }
}

/** Ends the batch as if it had not begun. */
export const ABANDON: Step = { statements: [], end: 'rollback' }

/** Runs an operation within a batch, for what is rarely done there: each of its statements is a step. */
export function* inBatch<T>(operation: Operation<T>): Batch<T> {
  let result = operation.next()
  while (!result.done) {
    const [rows = []] = yield step([result.value])
    result = operation.next(rows)
  }
  return result.value
}

export function* currentTime(atMs: number): Operation<number> {
  const [row] = yield sql`SELECT ${now(atMs)} AS now_ms`
  return number(present(row), 'now_ms')
}
