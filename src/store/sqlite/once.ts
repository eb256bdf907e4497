import type { DatabaseSync } from 'node:sqlite'
import { limits } from '../../kernel/limits.ts'
import type { Once, OnceResult } from '../../kernel/once.ts'
import { integer, text } from './rows.ts'

/** How the operations of this store do a command at most once per name. */
export interface OnceBook {
  /** Whether the command was done under its name before. Null: it was not, and is to be done now. */
  repeated<T>(once: Once | null, read: (subject: string) => T | null): OnceResult<T> | null
  /** Keeps the name, in the transaction that did the command. The subject is the id of what it made. */
  keep(once: Once | null, subject: string): void
}

/** More than one per new name, so that a backlog shrinks, and few, so that no admission waits for it to go. */
const FORGOTTEN_AT_ONCE_MAX = 100

export function prepareOnceBook(db: DatabaseSync): OnceBook {
  const select = db.prepare(
    'SELECT fingerprint, subject FROM idempotency WHERE account_id = ? AND name = ? AND at_ms > ?',
  )
  const forget = db.prepare(
    `DELETE FROM idempotency WHERE (account_id, name) IN
       (SELECT account_id, name FROM idempotency WHERE at_ms <= ? ORDER BY at_ms LIMIT ${FORGOTTEN_AT_ONCE_MAX})`,
  )
  // A name that is there by now is one that was too old to be recognised.
  const insert = db.prepare(
    `INSERT INTO idempotency (account_id, name, fingerprint, subject, at_ms) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (account_id, name) DO UPDATE SET fingerprint = excluded.fingerprint, subject = excluded.subject,
       at_ms = excluded.at_ms`,
  )

  return {
    repeated(once, read) {
      if (once === null) return null
      const row = select.get(once.accountId, once.name, oldestMs(once))
      if (row === undefined) return null
      if (Buffer.compare(row['fingerprint'] as Uint8Array, once.fingerprint) !== 0)
        return { kind: 'conflict' }
      // What cannot be read as this kind of thing was made by another kind of command.
      const value = read(text(row, 'subject'))
      return value === null ? { kind: 'conflict' } : { kind: 'repeated', value }
    },

    keep(once, subject) {
      if (once === null) return
      forget.run(oldestMs(once))
      insert.run(once.accountId, once.name, once.fingerprint, subject, integer(once.atMs))
    },
  }
}

const oldestMs = (once: Once): bigint => integer(once.atMs - limits.onceMs)
