import type { DatabaseSync } from 'node:sqlite'
import type { KeyRefusal } from '../../keys/identity.ts'
import { type AdminKeyRecord, type KeyRecord, keyStatus } from '../../keys/key-store.ts'
import type { Operations } from './operations.ts'
import { integer, number, numberOrNull, present, type Row, text } from './rows.ts'

const KEY_COLUMNS =
  'id, account_id, name, prefix, last4, created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms'
const ADMIN_COLUMNS = 'id, account_id, name, prefix, last4, created_at_ms, revoked_at_ms, bootstrap'

type KeyOperations = Pick<
  Operations,
  'createKey' | 'getKey' | 'revokeKey' | 'createAdminKey' | 'listAdminKeys' | 'revokeAdminKey' | 'recognise'
>

export function keyOperations(db: DatabaseSync): KeyOperations {
  const insertKey = db.prepare(
    `INSERT INTO api_key (id, account_id, name, digest, prefix, last4, created_at_ms, expires_at_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING ${KEY_COLUMNS}`,
  )
  const selectKey = db.prepare(`SELECT ${KEY_COLUMNS} FROM api_key WHERE id = ?`)
  const selectKeyByDigest = db.prepare(`SELECT ${KEY_COLUMNS} FROM api_key WHERE digest = ?`)
  const markRevoked = db.prepare(
    'UPDATE api_key SET revoked_at_ms = ? WHERE id = ? AND revoked_at_ms IS NULL',
  )

  const insertAdmin = db.prepare(
    `INSERT INTO admin_key (id, account_id, name, digest, prefix, last4, created_at_ms, bootstrap)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING ${ADMIN_COLUMNS}`,
  )
  const selectAdmin = db.prepare(`SELECT ${ADMIN_COLUMNS} FROM admin_key WHERE id = ?`)
  const selectAdminByDigest = db.prepare(`SELECT ${ADMIN_COLUMNS} FROM admin_key WHERE digest = ?`)
  const selectAdmins = db.prepare(`SELECT ${ADMIN_COLUMNS} FROM admin_key ORDER BY id DESC`)
  const markAdminRevoked = db.prepare(
    'UPDATE admin_key SET revoked_at_ms = ? WHERE id = ? AND revoked_at_ms IS NULL',
  )
  const retireBootstrap = db.prepare(
    'UPDATE admin_key SET revoked_at_ms = ? WHERE account_id = ? AND bootstrap = 1 AND revoked_at_ms IS NULL',
  )
  const reviveAdmin = db.prepare(
    `UPDATE admin_key SET revoked_at_ms = NULL, bootstrap = 1 WHERE id = ? RETURNING ${ADMIN_COLUMNS}`,
  )

  return {
    createKey(key) {
      const row = insertKey.get(
        key.id,
        key.accountId,
        key.name,
        key.digest,
        key.prefix,
        key.last4,
        integer(key.createdAtMs),
        key.expiresAtMs === null ? null : integer(key.expiresAtMs),
      )
      return keyRecord(present(row))
    },

    getKey(id) {
      const row = selectKey.get(id)
      return row === undefined ? null : keyRecord(row)
    },

    revokeKey(id, atMs) {
      markRevoked.run(integer(atMs), id)
      const row = selectKey.get(id)
      return row === undefined ? null : keyRecord(row)
    },

    createAdminKey(key) {
      if (key.bootstrap) {
        retireBootstrap.run(integer(key.createdAtMs), key.accountId)
        const known = selectAdminByDigest.get(key.digest)
        if (known !== undefined) return adminRecord(present(reviveAdmin.get(String(known['id']))))
      }
      const row = insertAdmin.get(
        key.id,
        key.accountId,
        key.name,
        key.digest,
        key.prefix,
        key.last4,
        integer(key.createdAtMs),
        key.bootstrap ? 1n : 0n,
      )
      return adminRecord(present(row))
    },

    listAdminKeys() {
      return selectAdmins.all().map(adminRecord)
    },

    revokeAdminKey(id, atMs) {
      markAdminRevoked.run(integer(atMs), id)
      const row = selectAdmin.get(id)
      return row === undefined ? null : adminRecord(row)
    },

    recognise(digest, atMs) {
      const row = selectKeyByDigest.get(digest)
      if (row !== undefined) {
        const key = keyRecord(row)
        const reason = refusalOf(key, atMs)
        if (reason !== null) return { kind: 'refused', reason }
        return { kind: 'api_key', keyId: key.id, accountId: key.accountId }
      }
      const adminRow = selectAdminByDigest.get(digest)
      if (adminRow === undefined) return { kind: 'refused', reason: 'unknown_key' }
      const admin = adminRecord(adminRow)
      if (admin.revokedAtMs !== null) return { kind: 'refused', reason: 'revoked_key' }
      return { kind: 'admin_key', keyId: admin.id, accountId: admin.accountId }
    },
  }
}

function refusalOf(key: KeyRecord, atMs: number): KeyRefusal | null {
  const status = keyStatus(key, atMs)
  if (status === 'usable') return null
  return status === 'revoked' ? 'revoked_key' : 'expired_key'
}

function keyRecord(row: Row): KeyRecord {
  return {
    id: text(row, 'id'),
    accountId: text(row, 'account_id'),
    name: text(row, 'name'),
    prefix: text(row, 'prefix'),
    last4: text(row, 'last4'),
    createdAtMs: number(row, 'created_at_ms'),
    expiresAtMs: numberOrNull(row, 'expires_at_ms'),
    revokedAtMs: numberOrNull(row, 'revoked_at_ms'),
    lastUsedAtMs: numberOrNull(row, 'last_used_at_ms'),
  }
}

function adminRecord(row: Row): AdminKeyRecord {
  return {
    id: text(row, 'id'),
    accountId: text(row, 'account_id'),
    name: text(row, 'name'),
    prefix: text(row, 'prefix'),
    last4: text(row, 'last4'),
    createdAtMs: number(row, 'created_at_ms'),
    revokedAtMs: numberOrNull(row, 'revoked_at_ms'),
    bootstrap: row['bootstrap'] === 1n,
  }
}
