import { limits } from '../../kernel/limits.ts'
import type { Idempotency, IdempotentResult } from '../../kernel/vocabulary.ts'
import { bool, type Row, text } from '../rows.ts'
import type { Operation } from './operation.ts'
import { FOR_DELETE, now, raw, type Sql, sql } from './sql.ts'

/** How a command is done at most once per idempotency key, and its answer found again when it is repeated. */

type Read<T> = (subject: string) => Operation<T | null>

/**
 * Claims the key, in the transaction that does the command. Null: the key is claimed, and the command is to be done now.
 * Otherwise the command was done before, and nothing may be done. Where another command is about to claim the key, this
 * one waits to see whether it does, and locks nothing itself: twenty repetitions of a command read its answer side by side.
 */
export function* claimKey<T>(
  idempotency: Idempotency | null,
  subject: string,
  read: Read<T>,
): Operation<IdempotentResult<T> | null> {
  if (idempotency === null) return null
  const { accountId, name, fingerprint } = idempotency
  const outdated = sql`at_ms <= (SELECT ${now(idempotency.atMs)} - ${AGE})`
  for (;;) {
    const [claimed] = yield sql`
      INSERT INTO idempotency (account_id, name, fingerprint, subject, at_ms)
      VALUES (${accountId}, ${name}, ${fingerprint}, ${subject}, ${now(idempotency.atMs)})
      ON CONFLICT (account_id, name) DO NOTHING
      RETURNING EXISTS (SELECT 1 FROM idempotency AS old WHERE old.${outdated}) AS has_outdated`
    if (claimed !== undefined) {
      if (bool(claimed, 'has_outdated')) yield forgetSome(outdated)
      return null
    }
    const replay = yield* findReplay(idempotency, read)
    if (replay !== null) return replay
    // A key that is too old to be recognised is deleted, and the claim tried again.
    yield sql`DELETE FROM idempotency WHERE account_id = ${accountId} AND name = ${name} AND ${outdated}`
  }
}

const AGE = raw(`${limits.onceMs}`)

/** Keys that a new key deletes: more than one, so that a backlog shrinks, and few, so that no command takes long. */
const FORGOTTEN_AT_ONCE_MAX = 100

function forgetSome(outdated: Sql): Sql {
  return sql`
    WITH old AS MATERIALIZED (
      SELECT account_id, name FROM idempotency WHERE ${outdated}
      ORDER BY at_ms LIMIT ${FORGOTTEN_AT_ONCE_MAX} ${FOR_DELETE}
    )
    DELETE FROM idempotency WHERE (account_id, name) IN (SELECT account_id, name FROM old)`
}

/** The replay of a command that cannot be done, perhaps because it was done before. Null: it was not. */
export function* findReplay<T>(
  idempotency: Idempotency | null,
  read: Read<T>,
): Operation<IdempotentResult<T> | null> {
  if (idempotency === null) return null
  const [row] = yield sql`
    SELECT subject, fingerprint FROM idempotency
    WHERE account_id = ${idempotency.accountId} AND name = ${idempotency.name} AND at_ms > ${now(idempotency.atMs)} - ${AGE}`
  return row === undefined ? null : yield* replay(row, idempotency, read)
}

/** The command did nothing after all: its key may be used again. */
export function* giveUpKey(idempotency: Idempotency | null): Operation<void> {
  if (idempotency === null) return
  yield sql`
    DELETE FROM idempotency WHERE account_id = ${idempotency.accountId} AND name = ${idempotency.name}`
}

function* replay<T>(row: Row, idempotency: Idempotency, read: Read<T>): Operation<IdempotentResult<T>> {
  if (Buffer.compare(row['fingerprint'] as Uint8Array, idempotency.fingerprint) !== 0)
    return { kind: 'conflict' }
  // A subject that cannot be read as this kind of record was made by another kind of command.
  const value = yield* read(text(row, 'subject'))
  return value === null ? { kind: 'conflict' } : { kind: 'repeated', value }
}
