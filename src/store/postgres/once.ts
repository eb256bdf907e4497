import { limits } from '../../kernel/limits.ts'
import type { Once, OnceResult } from '../../kernel/once.ts'
import type { Bound } from './bound.ts'
import type { Database } from './database.ts'
import { bool, type Row, text } from './rows.ts'
import { nowSql, type StoreClock } from './store-clock.ts'

/** More than one per new name, so that a backlog shrinks, and few, so that no command takes long because of it. */
export const FORGOTTEN_AT_ONCE_MAX = 100

/**
 * Parts of a `WITH` that take the name of a command in the statement that does the command; the last one is called
 * `claimed`. Where the name was taken before, `mine` is false and nothing may be done; where another command is about
 * to take it, this waits to see whether it does. `from` says under what condition: without a row of it, nothing is
 * taken and `claimed` is empty.
 */
export function claimName(
  bound: Bound,
  once: Once | null,
  subject: string,
  clock: StoreClock,
  from = '',
): string {
  if (once === null)
    return `claimed AS (SELECT true AS mine, NULL::text AS subject, NULL::bytea AS fingerprint ${from})`
  const account = bound.as('text', once.accountId)
  const name = bound.as('text', once.name)
  const at = nowSql(clock, bound, once.atMs)
  const made = bound.as('text', subject)
  const fresh = `idempotency.at_ms > excluded.at_ms - ${limits.onceMs}`
  const kept = (column: string): string =>
    `${column} = CASE WHEN ${fresh} THEN idempotency.${column} ELSE excluded.${column} END`
  return `
    outdated AS MATERIALIZED (
      SELECT account_id, name FROM idempotency
      WHERE at_ms <= (SELECT ${at} - ${limits.onceMs}) AND (account_id, name) <> (${account}, ${name})
      ORDER BY at_ms LIMIT ${FORGOTTEN_AT_ONCE_MAX} FOR UPDATE SKIP LOCKED
    ), forgotten AS (
      DELETE FROM idempotency USING outdated
      WHERE idempotency.account_id = outdated.account_id AND idempotency.name = outdated.name
    ), claimed AS (
      INSERT INTO idempotency (account_id, name, fingerprint, subject, at_ms)
      SELECT ${account}, ${name}, ${bound.as('bytea', once.fingerprint)}, ${made}, ${at} ${from}
      ON CONFLICT (account_id, name) DO UPDATE SET ${['fingerprint', 'subject', 'at_ms'].map(kept).join(', ')}
      RETURNING subject, fingerprint, subject = ${made} AS mine
    )`
}

/** What `claimed` came to, for the list of columns. */
export const CLAIMED_COLUMNS =
  'claimed.mine AS once_mine, claimed.subject AS once_subject, claimed.fingerprint AS once_fingerprint'

/** Whether the row says that the command was done under its name before. Null: it was done now. */
export function repeatedIn<T>(
  row: Row,
  once: Once | null,
  read: (subject: string) => Promise<T | null>,
): Promise<OnceResult<T>> | null {
  if (once === null || bool(row, 'once_mine')) return null
  return repeated(row, once, read)
}

/** The same for a command that could not be done: it may be that because it was done before. Null: it was not. */
export async function findRepeated<T>(
  db: Database,
  once: Once,
  clock: StoreClock,
  bound: Bound,
  read: (subject: string) => Promise<T | null>,
): Promise<OnceResult<T> | null> {
  const [row] = await db.query(
    `SELECT subject AS once_subject, fingerprint AS once_fingerprint FROM idempotency
     WHERE account_id = ${bound.as('text', once.accountId)} AND name = ${bound.as('text', once.name)}
       AND at_ms > ${nowSql(clock, bound, once.atMs)} - ${limits.onceMs}`,
    bound.values,
  )
  return row === undefined ? null : repeated(row, once, read)
}

function repeated<T>(
  row: Row,
  once: Once,
  read: (subject: string) => Promise<T | null>,
): Promise<OnceResult<T>> {
  return repeatedAs(text(row, 'once_subject'), row['once_fingerprint'] as Uint8Array, once, read)
}

/** What comes of a command whose name was taken before. */
export async function repeatedAs<T>(
  subject: string,
  fingerprint: Uint8Array,
  once: Once | null,
  read: (subject: string) => Promise<T | null>,
): Promise<OnceResult<T>> {
  if (once === null || Buffer.compare(fingerprint, once.fingerprint) !== 0) return { kind: 'conflict' }
  // What cannot be read as this kind of thing was made by another kind of command.
  const value = await read(subject)
  return value === null ? { kind: 'conflict' } : { kind: 'repeated', value }
}
