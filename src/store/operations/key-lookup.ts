import type { KeyLookup } from '../../keys/credential.ts'
import { keyStatus } from '../../keys/key-store.ts'
import { dayOf, monthOf } from '../../ledger/calendar.ts'
import { number, numberOrNull, type Row, text } from '../rows.ts'
import { ADMIN_CALLER, adminCaller } from './admin-keys.ts'
import {
  ACCOUNT_COLUMNS,
  accountCeilings,
  accountState,
  BUDGET_COLUMNS,
  budgetState,
  keyCeilings,
} from './money-rows.ts'
import type { Operation } from './operation.ts'
import { now, onPostgres, sql } from './sql.ts'

/**
 * Looks up a key before a large body is taken in. SQLite's thread records the use later, together with another write, so
 * that the look-up does not wait for the disk.
 */
export function* lookUpKey(digest: Uint8Array, atMs: number): Operation<KeyLookup> {
  const [key] = yield sql`
    SELECT id, account_id, budget_id, name, expires_at_ms, revoked_at_ms, ${now(atMs)} AS now_ms FROM api_key
    WHERE digest = ${digest}`
  if (key === undefined) return yield* lookUpAdminKey(digest)
  const nowMs = number(key, 'now_ms')
  const status = keyStatus(
    { revokedAtMs: numberOrNull(key, 'revoked_at_ms'), expiresAtMs: numberOrNull(key, 'expires_at_ms') },
    nowMs,
  )
  if (status !== 'usable') return { kind: 'refused', reason: `${status}_key` }
  const [keyId, accountId] = [text(key, 'id'), text(key, 'account_id')]
  yield onPostgres(sql`
    UPDATE api_key SET last_used_at_ms = ${nowMs} WHERE id = ${keyId} AND coalesce(last_used_at_ms, 0) < ${nowMs}`)
  const [budget] = yield sql`SELECT ${BUDGET_COLUMNS} FROM budget b WHERE b.id = ${text(key, 'budget_id')}`
  const [account] = yield sql`SELECT ${ACCOUNT_COLUMNS} FROM account a WHERE a.id = ${accountId}`
  if (budget === undefined || account === undefined) return { kind: 'refused', reason: 'unknown_key' }
  const name = text(key, 'name')
  return { kind: 'api_key', keyId, name, accountId, means: meansOf(budget, account, nowMs) }
}

function meansOf(budgetRow: Row, accountRow: Row, nowMs: number) {
  const account = accountState(accountRow)
  return {
    keyCeilings: keyCeilings(budgetState(budgetRow), monthOf(nowMs), dayOf(nowMs), nowMs),
    accountCeilings: accountCeilings(account, monthOf(nowMs), nowMs),
    creditEnforced: account.creditEnforced,
    balanceNanos: account.creditedNanos - account.chargedNanos,
  }
}

function* lookUpAdminKey(digest: Uint8Array): Operation<KeyLookup> {
  const [admin] = yield sql`SELECT ${ADMIN_CALLER}, revoked_at_ms FROM admin_key k WHERE digest = ${digest}`
  if (admin === undefined) return { kind: 'refused', reason: 'unknown_key' }
  if (admin['revoked_at_ms'] !== null) return { kind: 'refused', reason: 'revoked_key' }
  return adminCaller(admin)
}

/** Records uses of keys by their last instants. */
export function* markUses(uses: ReadonlyMap<string, number>): Operation<void> {
  for (const [keyId, atMs] of uses)
    yield sql`
      UPDATE api_key SET last_used_at_ms = ${atMs} WHERE id = ${keyId} AND coalesce(last_used_at_ms, 0) < ${atMs}`
}
