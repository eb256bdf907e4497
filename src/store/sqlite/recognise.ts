import type { DatabaseSync } from 'node:sqlite'
import { keyStatus } from '../../keys/key-store.ts'
import type { Operations } from './operations.ts'
import { numberOrNull, text } from './rows.ts'

/**
 * Writes nothing itself, so that nobody waits for the disk before a large body is taken in: that a key was used goes
 * with what is written next.
 */
export function recogniseOperation(
  db: DatabaseSync,
  noteUse: (keyId: string, atMs: number) => void,
): Pick<Operations, 'recognise'> {
  const selectKey = db.prepare(
    'SELECT id, account_id, expires_at_ms, revoked_at_ms FROM api_key WHERE digest = ?',
  )
  const selectAdmin = db.prepare('SELECT id, account_id, revoked_at_ms FROM admin_key WHERE digest = ?')

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
        noteUse(keyId, atMs)
        return { kind: 'api_key', keyId, accountId: text(key, 'account_id') }
      }
      const admin = selectAdmin.get(digest)
      if (admin === undefined) return { kind: 'refused', reason: 'unknown_key' }
      if (admin['revoked_at_ms'] !== null) return { kind: 'refused', reason: 'revoked_key' }
      return { kind: 'admin_key', keyId: text(admin, 'id'), accountId: text(admin, 'account_id') }
    },
  }
}
