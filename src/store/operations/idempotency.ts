import { limits } from '../../kernel/limits.ts'
import type { Once, OnceResult } from '../../kernel/once.ts'
import { bool, type Operation, present, type Row, text } from './operation.ts'
import { FOR_DELETE, now, raw, sql } from './sql.ts'

/** How a command is done at most once per idempotency key, and its answer found again when it is repeated. */

type Read<T> = (subject: string) => Operation<T | null>

/** More than one per new key, so that a backlog shrinks, and few, so that no command takes long because of it. */
const FORGOTTEN_AT_ONCE_MAX = 100

const AGE = raw(`${limits.onceMs}`)

/** A key that is there by now and is older than this is as good as a new one. */
const FRESH = sql`idempotency.at_ms > excluded.at_ms - ${AGE}`

/**
 * Takes the key, in the transaction that does the command. Null: it is taken, and the command is to be done now.
 * Otherwise the command was done before, and nothing may be done. Where another command is about to take the key, this
 * waits to see whether it does. The subject is the id of what the command makes, which no command before has made.
 */
export function* claimKey<T>(
  once: Once | null,
  subject: string,
  read: Read<T>,
): Operation<OnceResult<T> | null> {
  if (once === null) return null
  const { accountId, name, fingerprint } = once
  const at = now(once.atMs)
  const outdated = sql`at_ms <= (SELECT ${at} - ${AGE})`
  const [row] = yield sql`
    INSERT INTO idempotency (account_id, name, fingerprint, subject, at_ms)
    VALUES (${accountId}, ${name}, ${fingerprint}, ${subject}, ${at})
    ON CONFLICT (account_id, name) DO UPDATE SET
      fingerprint = CASE WHEN ${FRESH} THEN idempotency.fingerprint ELSE excluded.fingerprint END,
      subject = CASE WHEN ${FRESH} THEN idempotency.subject ELSE excluded.subject END,
      at_ms = CASE WHEN ${FRESH} THEN idempotency.at_ms ELSE excluded.at_ms END
    RETURNING subject, fingerprint, EXISTS (SELECT 1 FROM idempotency AS old WHERE old.${outdated}) AS has_outdated`
  const kept = present(row)
  if (text(kept, 'subject') !== subject) return yield* replay(kept, once, read)
  if (bool(kept, 'has_outdated'))
    yield sql`
      WITH outdated AS MATERIALIZED (
        SELECT account_id, name FROM idempotency WHERE ${outdated}
        ORDER BY at_ms LIMIT ${FORGOTTEN_AT_ONCE_MAX} ${FOR_DELETE}
      )
      DELETE FROM idempotency WHERE (account_id, name) IN (SELECT account_id, name FROM outdated)`
  return null
}

/** The same for a command that cannot be done: it may be that because it was done before. Null: it was not. */
export function* findReplay<T>(once: Once | null, read: Read<T>): Operation<OnceResult<T> | null> {
  if (once === null) return null
  const [row] = yield sql`
    SELECT subject, fingerprint FROM idempotency
    WHERE account_id = ${once.accountId} AND name = ${once.name} AND at_ms > ${now(once.atMs)} - ${AGE}`
  return row === undefined ? null : yield* replay(row, once, read)
}

/** For a command that knows only after it was done what to find its answer by. */
export function* keepSubject(once: Once | null, subject: string): Operation<void> {
  if (once === null) return
  yield sql`
    UPDATE idempotency SET subject = ${subject} WHERE account_id = ${once.accountId} AND name = ${once.name}`
}

function* replay<T>(row: Row, once: Once, read: Read<T>): Operation<OnceResult<T>> {
  if (Buffer.compare(row['fingerprint'] as Uint8Array, once.fingerprint) !== 0) return { kind: 'conflict' }
  // What cannot be read as this kind of thing was made by another kind of command.
  const value = yield* read(text(row, 'subject'))
  return value === null ? { kind: 'conflict' } : { kind: 'repeated', value }
}
