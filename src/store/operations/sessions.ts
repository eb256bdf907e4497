import type { NewSession, SessionRecord } from '../../keys/session-store.ts'
import { number, type Row, text } from '../rows.ts'
import { atomic, type Operation } from './operation.ts'
import { now, sql } from './sql.ts'

export const openSession = atomic(function* (session: NewSession): Operation<SessionRecord | null> {
  const { digest, adminKeyId, atMs, lifeMs, sessionsMax } = session
  yield sql`
    INSERT INTO session (digest, admin_key_id, expires_at_ms)
    SELECT ${digest}, id, ${now(atMs)} + ${lifeMs} FROM admin_key
    WHERE id = ${adminKeyId} AND revoked_at_ms IS NULL`
  // Those that have expired are deleted when another is opened: there are never more than were opened in one lifetime.
  yield sql`DELETE FROM session WHERE expires_at_ms <= (SELECT ${now(atMs)})`
  yield sql`
    DELETE FROM session WHERE admin_key_id = ${adminKeyId} AND digest NOT IN (
      SELECT digest FROM session WHERE admin_key_id = ${adminKeyId} ORDER BY expires_at_ms DESC LIMIT ${sessionsMax}
    )`
  return yield* findSession(digest, atMs)
})

export function* findSession(digest: Uint8Array, atMs: number): Operation<SessionRecord | null> {
  // The admin key is looked at as well: a node of a version without sessions revokes it and leaves them.
  const [row] = yield sql`
    SELECT admin_key_id, account_id, expires_at_ms FROM session JOIN admin_key ON admin_key.id = admin_key_id
    WHERE session.digest = ${digest} AND revoked_at_ms IS NULL AND expires_at_ms > (SELECT ${now(atMs)})`
  return row === undefined ? null : sessionRecord(row)
}

export function* endSession(digest: Uint8Array): Operation<void> {
  yield sql`DELETE FROM session WHERE digest = ${digest}`
}

/** A bootstrap key that is put into force again must not bring back the sessions of its former life. */
export function* endSessionsOfRevokedKeys(): Operation<void> {
  yield sql`DELETE FROM session WHERE admin_key_id IN (SELECT id FROM admin_key WHERE revoked_at_ms IS NOT NULL)`
}

function sessionRecord(row: Row): SessionRecord {
  return {
    adminKeyId: text(row, 'admin_key_id'),
    accountId: text(row, 'account_id'),
    expiresAtMs: number(row, 'expires_at_ms'),
  }
}
