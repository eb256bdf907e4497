import type { AdminRole } from '../../kernel/vocabulary.ts'
import type { AdminCaller } from '../../keys/credential.ts'
import type { AdminKeyRecord, NewAdminKey, NewSession, SessionRecord } from '../../keys/key-store.ts'
import { bool, number, numberOrNull, present, type Row, text, textOrNull } from '../rows.ts'
import { atomic, type Operation } from './operation.ts'
import { now, onPostgres, raw, sql } from './sql.ts'

const COLUMNS = raw('id, role, account_id, name, prefix, last4, created_at_ms, revoked_at_ms, bootstrap')

/** The columns of `admin_key k` that make a caller. */
export const ADMIN_CALLER = raw('k.id, k.role, k.account_id, k.name')

export function adminCaller(row: Row): AdminCaller {
  return {
    kind: 'admin_key',
    keyId: text(row, 'id'),
    name: text(row, 'name'),
    role: text(row, 'role') as AdminRole,
    accountId: textOrNull(row, 'account_id'),
  }
}

export const createAdminKey = atomic(function* (key: NewAdminKey): Operation<AdminKeyRecord> {
  if (key.bootstrap) {
    // All nodes create the bootstrap key when they start, and they may start at once.
    yield onPostgres(sql`SELECT pg_advisory_xact_lock(hashtextextended('tollgate bootstrap admin key', 0))`)
    yield sql`
      UPDATE admin_key SET revoked_at_ms = ${now(key.createdAtMs)}
      WHERE bootstrap AND revoked_at_ms IS NULL AND digest <> ${key.digest}`
    yield* endSessionsOfRevokedKeys()
  }
  const again = key.bootstrap
    ? sql`ON CONFLICT (digest) DO UPDATE SET revoked_at_ms = NULL, bootstrap = true`
    : sql``
  const [row] = yield sql`
    INSERT INTO admin_key (id, role, account_id, name, digest, prefix, last4, created_at_ms, bootstrap)
    VALUES (${key.id}, ${key.role}, ${key.accountId}, ${key.name}, ${key.digest}, ${key.prefix}, ${key.last4},
      ${key.createdAtMs}, ${key.bootstrap})
    ${again} RETURNING ${COLUMNS}`
  return adminRecord(present(row))
})

export function* listAdminKeys(): Operation<readonly AdminKeyRecord[]> {
  return (yield sql`SELECT ${COLUMNS} FROM admin_key ORDER BY id DESC`).map(adminRecord)
}

export const revokeAdminKey = atomic(function* (id: string, atMs: number): Operation<AdminKeyRecord | null> {
  const [row] = yield sql`
    UPDATE admin_key SET revoked_at_ms = coalesce(revoked_at_ms, ${now(atMs)})
    WHERE id = ${id} RETURNING ${COLUMNS}`
  yield* endSessionsOfRevokedKeys()
  return row === undefined ? null : adminRecord(row)
})

function adminRecord(row: Row): AdminKeyRecord {
  return {
    id: text(row, 'id'),
    role: text(row, 'role') as AdminRole,
    accountId: textOrNull(row, 'account_id'),
    name: text(row, 'name'),
    prefix: text(row, 'prefix'),
    last4: text(row, 'last4'),
    createdAtMs: number(row, 'created_at_ms'),
    revokedAtMs: numberOrNull(row, 'revoked_at_ms'),
    bootstrap: bool(row, 'bootstrap'),
  }
}

export const openSession = atomic(function* (session: NewSession): Operation<SessionRecord | null> {
  const { digest, adminKeyId, atMs, lifeMs, sessionsMax } = session
  yield sql`
    INSERT INTO session (digest, admin_key_id, expires_at_ms)
    SELECT ${digest}, id, ${now(atMs)} + ${lifeMs} FROM admin_key
    WHERE id = ${adminKeyId} AND revoked_at_ms IS NULL`
  // Expired sessions are deleted when another is opened: there are never more than were opened in one lifetime.
  yield sql`DELETE FROM session WHERE expires_at_ms <= (SELECT ${now(atMs)})`
  yield sql`
    DELETE FROM session WHERE admin_key_id = ${adminKeyId} AND digest NOT IN (
      SELECT digest FROM session WHERE admin_key_id = ${adminKeyId} ORDER BY expires_at_ms DESC LIMIT ${sessionsMax}
    )`
  return yield* findSession(digest, atMs)
})

export function* findSession(digest: Uint8Array, atMs: number): Operation<SessionRecord | null> {
  // The admin key is checked as well: a node of a version without sessions revokes the key and leaves its sessions.
  const [row] = yield sql`
    SELECT ${ADMIN_CALLER}, expires_at_ms FROM session JOIN admin_key k ON k.id = admin_key_id
    WHERE session.digest = ${digest} AND revoked_at_ms IS NULL AND expires_at_ms > (SELECT ${now(atMs)})`
  return row === undefined ? null : sessionRecord(row)
}

export function* endSession(digest: Uint8Array): Operation<void> {
  yield sql`DELETE FROM session WHERE digest = ${digest}`
}

/** A bootstrap key that is put into force again must not bring back the sessions from before its revocation. */
function* endSessionsOfRevokedKeys(): Operation<void> {
  yield sql`DELETE FROM session WHERE admin_key_id IN (SELECT id FROM admin_key WHERE revoked_at_ms IS NOT NULL)`
}

function sessionRecord(row: Row): SessionRecord {
  return { caller: adminCaller(row), expiresAtMs: number(row, 'expires_at_ms') }
}
