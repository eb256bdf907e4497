import type { DatabaseSync } from 'node:sqlite'
import { keyStatus } from '../../keys/key-store.ts'
import type { Operations } from './operations.ts'
import { integer, numberOrNull, text } from './rows.ts'

export function recogniseOperation(db: DatabaseSync): Pick<Operations, 'recognise'> {
  const selectKey = db.prepare(
    'SELECT id, account_id, expires_at_ms, revoked_at_ms FROM api_key WHERE digest = ?',
  )
  const selectAdmin = db.prepare('SELECT id, account_id, revoked_at_ms FROM admin_key WHERE digest = ?')
  // Requests may be recognised in another order than that in which they came.
  const markUsed = db.prepare(
    'UPDATE api_key SET last_used_at_ms = :at WHERE id = :id AND coalesce(last_used_at_ms, :at - 1) < :at',
  )

  return {
    recognise(digest, atMs) {
      const key = selectKey.get(digest)
      if (key !== undefined) {
        const status = keyStatus(
          {
            revokedAtMs: numberOrNull(key, 'revoked_at_ms'),
            expiresAtMs: numberOrNull(key, 'expires_at_ms'),
          },
          atMs,
        )
        if (status !== 'usable') return { kind: 'refused', reason: `${status}_key` }
        const keyId = text(key, 'id')
        markUsed.run({ id: keyId, at: integer(atMs) })
        return { kind: 'api_key', keyId, accountId: text(key, 'account_id') }
      }
      const admin = selectAdmin.get(digest)
      if (admin === undefined) return { kind: 'refused', reason: 'unknown_key' }
      if (admin['revoked_at_ms'] !== null) return { kind: 'refused', reason: 'revoked_key' }
      return { kind: 'admin_key', keyId: text(admin, 'id'), accountId: text(admin, 'account_id') }
    },
  }
}
