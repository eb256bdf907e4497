import pg from 'pg'
import { StoreRefused, StoreUnavailable } from '../../kernel/errors.ts'

/** The connection or the time ran out while the database was at it: it may have been done, or be done yet. */
export class StoreInDoubt extends StoreUnavailable {
  override readonly name = 'StoreInDoubt'
}

/**
 * The command itself is wrong: bad data, a constraint, a statement that does not fit the schema. Everything else that
 * the database says (starting, stopping, full, out of connections, read-only after a failover) may pass.
 */
const REFUSED_CLASSES: ReadonlySet<string> = new Set([
  '0A',
  '21',
  '22',
  '23',
  '2F',
  '38',
  '39',
  '42',
  '44',
  'P0',
])

/** The owner of the database may give the right back. */
const INSUFFICIENT_PRIVILEGE = '42501'

/** A serialization failure or a deadlock: the database has undone it in favour of another. */
const GAVE_WAY: ReadonlySet<string> = new Set(['40001', '40P01'])

export function sqlState(error: unknown): string | null {
  if (error instanceof StoreRefused || error instanceof StoreUnavailable) return sqlState(error.cause)
  return error instanceof pg.DatabaseError ? (error.code ?? null) : null
}

export function gaveWay(error: unknown): boolean {
  return GAVE_WAY.has(sqlState(error) ?? '')
}

/** Whether the connection can be used again. An error of a statement leaves it sound; all else does not. */
export function leavesSound(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.severity === 'ERROR'
}

/** What a statement that was sent has failed with, in the words of the port. */
export function failureOf(error: unknown): Error {
  if (error instanceof StoreRefused || error instanceof StoreUnavailable) return error
  const { message } = error instanceof Error ? error : new Error(String(error))
  if (!(error instanceof pg.DatabaseError)) return new StoreInDoubt(message, { cause: error })
  const code = error.code ?? ''
  if (REFUSED_CLASSES.has(code.slice(0, 2)) && code !== INSUFFICIENT_PRIVILEGE) {
    return new StoreRefused(message, { cause: error })
  }
  return leavesSound(error)
    ? new StoreUnavailable(message, { cause: error })
    : new StoreInDoubt(message, { cause: error })
}

/** No connection: nothing was sent. */
export function unconnected(error: unknown): StoreUnavailable {
  // A name with several addresses fails once for each of them, and says nothing itself.
  const [first] = error instanceof AggregateError ? error.errors : [error]
  const message = first instanceof Error ? first.message : String(first)
  return new StoreUnavailable(`no connection to the database: ${message}`, { cause: error })
}
