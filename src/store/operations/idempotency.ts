import { limits } from '../../kernel/limits.ts'
import type { Once, OnceResult } from '../../kernel/once.ts'
import { bool, type Row, text } from '../rows.ts'
import type { Operation } from './operation.ts'
import { FOR_DELETE, now, raw, type Sql, sql } from './sql.ts'

/** How a command is done at most once per idempotency key, and its answer found again when it is repeated. */

type Read<T> = (subject: string) => Operation<T | null>

/**
 * Takes the key, in the transaction that does the command. Null: it is taken, and the command is to be done now.
 * Otherwise the command was done before, and nothing may be done. Where another command is about to take the key, this
 * waits to see whether it does, and locks nothing itself: twenty that repeat a command read its answer side by side.
 */
export function* claimKey<T>(
  once: Once | null,
  subject: string,
  read: Read<T>,
): Operation<OnceResult<T> | null> {
  if (once === null) return null
  const { accountId, name, fingerprint } = once
  const outdated = sql`at_ms <= (SELECT ${now(once.atMs)} - ${AGE})`
  for (;;) {
    const [claimed] = yield sql`
      INSERT INTO idempotency (account_id, name, fingerprint, subject, at_ms)
      VALUES (${accountId}, ${name}, ${fingerprint}, ${subject}, ${now(once.atMs)})
      ON CONFLICT (account_id, name) DO NOTHING
      RETURNING EXISTS (SELECT 1 FROM idempotency AS old WHERE old.${outdated}) AS has_outdated`
    if (claimed !== undefined) {
      if (bool(claimed, 'has_outdated')) yield forgetSome(outdated)
      return null
    }
    const replay = yield* findReplay(once, read)
    if (replay !== null) return replay
    // One that is too old to be recognised makes room.
    yield sql`DELETE FROM idempotency WHERE account_id = ${accountId} AND name = ${name} AND ${outdated}`
  }
}

const AGE = raw(`${limits.onceMs}`)

/** More than one per new key, so that a backlog shrinks, and few, so that no command takes long because of it. */
const FORGOTTEN_AT_ONCE_MAX = 100

function forgetSome(outdated: Sql): Sql {
  return sql`
    WITH old AS MATERIALIZED (
      SELECT account_id, name FROM idempotency WHERE ${outdated}
      ORDER BY at_ms LIMIT ${FORGOTTEN_AT_ONCE_MAX} ${FOR_DELETE}
    )
    DELETE FROM idempotency WHERE (account_id, name) IN (SELECT account_id, name FROM old)`
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
