import type { DatabaseSync } from 'node:sqlite'
import type { KeyMeans } from '../../keys/identity.ts'
import { keyStatus } from '../../keys/key-store.ts'
import { monthOf } from '../../ledger/calendar.ts'
import type { Operations } from './operations.ts'
import { nanos, nanosOrNull, numberOrNull, type Row, text } from './rows.ts'

/**
 * Writes nothing itself, so that nobody waits for the disk before a large body is taken in: that a key was used goes
 * with what is written next.
 */
export function recogniseOperation(
  db: DatabaseSync,
  noteUse: (keyId: string, atMs: number) => void,
): Pick<Operations, 'recognise'> {
  const selectKey = db.prepare(
    `SELECT k.id, k.account_id, k.expires_at_ms, k.revoked_at_ms, k.monthly_budget_nanos,
            coalesce(m.spent_nanos, 0) AS spent_nanos, coalesce(m.held_nanos, 0) AS held_nanos,
            a.credit_enforced, a.credited_nanos - a.charged_nanos AS balance_nanos
     FROM api_key k JOIN account a ON a.id = k.account_id
     LEFT JOIN key_month m ON m.key_id = k.id AND m.month = ? WHERE k.digest = ?`,
  )
  const selectAdmin = db.prepare('SELECT id, account_id, revoked_at_ms FROM admin_key WHERE digest = ?')

  return {
    recognise(digest, atMs) {
      const key = selectKey.get(monthOf(atMs), digest)
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
        return { kind: 'api_key', keyId, accountId: text(key, 'account_id'), means: meansOf(key) }
      }
      const admin = selectAdmin.get(digest)
      if (admin === undefined) return { kind: 'refused', reason: 'unknown_key' }
      if (admin['revoked_at_ms'] !== null) return { kind: 'refused', reason: 'revoked_key' }
      return { kind: 'admin_key', keyId: text(admin, 'id'), accountId: text(admin, 'account_id') }
    },
  }
}

/** Without what the calls of this batch move: it decides nothing. */
function meansOf(key: Row): KeyMeans {
  return {
    capNanos: nanosOrNull(key, 'monthly_budget_nanos'),
    spentNanos: nanos(key, 'spent_nanos'),
    heldNanos: nanos(key, 'held_nanos'),
    creditEnforced: key['credit_enforced'] === 1n,
    balanceNanos: nanos(key, 'balance_nanos'),
  }
}
