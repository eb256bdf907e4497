import { StoreRefused, StoreUnavailable } from '../../kernel/errors.ts'

/** What a thread answers to a command. A failure is text and two facts: errors do not cross threads well. */
export type Outcome = { readonly ok: true; readonly value: unknown } | Failure

export interface Failure {
  readonly ok: false
  readonly error: string
  /** The disk is not to be trusted any more: what was reported as written may not be there. */
  readonly fatal: boolean
  /** The same command may succeed later: the disk was full, or somebody else was writing. */
  readonly passing: boolean
  readonly full: boolean
}

/** SQLITE_IOERR with any of its details: a read, write or fsync that the disk refused. */
const IO_ERROR = 10

const FULL = 13

/** SQLITE_IOERR_SHMSIZE: there is no room for the index of the write-ahead log, and nothing has been written yet. */
const NO_ROOM_FOR_INDEX = 4874

/** SQLITE_BUSY, LOCKED, NOMEM, INTERRUPT, FULL. */
const PASSING: ReadonlySet<number> = new Set([5, 6, 7, 9, FULL])

/** On the thread's side. */
export function failureOf(error: unknown): Failure {
  const detailed = error instanceof Error && 'errcode' in error ? Number(error.errcode) : 0
  const code = detailed === NO_ROOM_FOR_INDEX ? FULL : detailed & 0xff
  return {
    ok: false,
    error: error instanceof Error ? error.message : String(error),
    fatal: code === IO_ERROR,
    passing: PASSING.has(code),
    full: code === FULL,
  }
}

/** On the caller's side. A command that got no answer may get one later. */
export function errorOf(failure: Failure | undefined): Error {
  if (failure === undefined) return new StoreUnavailable('the store gave no answer')
  return failure.passing || failure.fatal
    ? new StoreUnavailable(failure.error)
    : new StoreRefused(failure.error)
}
