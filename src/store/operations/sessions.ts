import type { NewSession, SessionRecord } from '../../keys/key-store.ts'
import { number, text } from '../rows.ts'
import { lookUpKeyById } from './key-lookup.ts'
import { atomic, type Operation } from './operation.ts'
import { now, sql } from './sql.ts'

export const openSession = atomic(function* (session: NewSession): Operation<SessionRecord | null> {
  const { digest, keyId, atMs, lifeMs, sessionsMax } = session
  if ((yield* lookUpKeyById(keyId, atMs)).kind === 'refused') return null
  yield sql`
    INSERT INTO session (digest, key_id, expires_at_ms) VALUES (${digest}, ${keyId}, ${now(atMs)} + ${lifeMs})`
  // Expired sessions are deleted when another is opened: there are never more than were opened in one lifetime.
  yield sql`DELETE FROM session WHERE expires_at_ms <= (SELECT ${now(atMs)})`
  yield sql`
    DELETE FROM session WHERE key_id = ${keyId} AND digest NOT IN (
      SELECT digest FROM session WHERE key_id = ${keyId} ORDER BY expires_at_ms DESC LIMIT ${sessionsMax}
    )`
  return yield* findSession(digest, atMs)
})

export function* findSession(digest: Uint8Array, atMs: number): Operation<SessionRecord | null> {
  const [row] = yield sql`
    SELECT key_id, expires_at_ms FROM session WHERE digest = ${digest} AND expires_at_ms > (SELECT ${now(atMs)})`
  if (row === undefined) return null
  const caller = yield* lookUpKeyById(text(row, 'key_id'), atMs)
  return caller.kind === 'refused' ? null : { caller, expiresAtMs: number(row, 'expires_at_ms') }
}

export function* endSession(digest: Uint8Array): Operation<void> {
  yield sql`DELETE FROM session WHERE digest = ${digest}`
}

/** A bootstrap key that becomes usable again must not bring back the sessions from before its revocation. */
export function* endSessionsOfRevokedKeys(): Operation<void> {
  yield sql`DELETE FROM session WHERE key_id IN (SELECT id FROM admin_key WHERE revoked_at_ms IS NOT NULL)`
}
