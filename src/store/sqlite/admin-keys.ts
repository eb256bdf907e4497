import type { DatabaseSync } from 'node:sqlite'
import type { AdminKeyRecord } from '../../keys/key-store.ts'
import type { Operations } from './operations.ts'
import { flag, integer, number, numberOrNull, present, type Row, text } from './rows.ts'

const ADMIN_COLUMNS = 'id, account_id, name, prefix, last4, created_at_ms, revoked_at_ms, bootstrap'

type AdminKeyOperations = Pick<Operations, 'createAdminKey' | 'listAdminKeys' | 'revokeAdminKey'>

export function adminKeyOperations(db: DatabaseSync): AdminKeyOperations {
  const insertAdmin = db.prepare(
    `INSERT INTO admin_key (id, account_id, name, digest, prefix, last4, created_at_ms, bootstrap)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING ${ADMIN_COLUMNS}`,
  )
  const selectAdmin = db.prepare(`SELECT ${ADMIN_COLUMNS} FROM admin_key WHERE id = ?`)
  const selectIdByDigest = db.prepare('SELECT id FROM admin_key WHERE digest = ?')
  const selectAdmins = db.prepare(`SELECT ${ADMIN_COLUMNS} FROM admin_key ORDER BY id DESC`)
  const markRevoked = db.prepare(
    'UPDATE admin_key SET revoked_at_ms = ? WHERE id = ? AND revoked_at_ms IS NULL',
  )
  const retireBootstrap = db.prepare(
    'UPDATE admin_key SET revoked_at_ms = ? WHERE account_id = ? AND bootstrap = 1 AND revoked_at_ms IS NULL',
  )
  const revive = db.prepare(
    `UPDATE admin_key SET revoked_at_ms = NULL, bootstrap = 1 WHERE id = ? RETURNING ${ADMIN_COLUMNS}`,
  )

  return {
    createAdminKey(key) {
      if (key.bootstrap) {
        retireBootstrap.run(integer(key.createdAtMs), key.accountId)
        const known = selectIdByDigest.get(key.digest)
        if (known !== undefined) return adminRecord(present(revive.get(text(known, 'id'))))
      }
      const row = insertAdmin.get(
        key.id,
        key.accountId,
        key.name,
        key.digest,
        key.prefix,
        key.last4,
        integer(key.createdAtMs),
        flag(key.bootstrap),
      )
      return adminRecord(present(row))
    },

    listAdminKeys() {
      return selectAdmins.all().map(adminRecord)
    },

    revokeAdminKey(id, atMs) {
      markRevoked.run(integer(atMs), id)
      const row = selectAdmin.get(id)
      return row === undefined ? null : adminRecord(row)
    },
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
