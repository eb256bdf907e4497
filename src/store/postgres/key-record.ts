import type { KeyRecord } from '../../keys/key-store.ts'
import {
  bool,
  jsonOrNull,
  nanos,
  nanosOrNull,
  number,
  numberOrNull,
  type Row,
  text,
  textOrNull,
} from './rows.ts'

/** The columns of a record that the key itself has. */
export const OWN_KEY_COLUMNS = `id, account_id, name, prefix, last4, monthly_budget_nanos, allowed_models, log_requests,
  created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, rotated_from`

export const KEY_COLUMNS = `${OWN_KEY_COLUMNS}, coalesce(spent_nanos, 0) AS spent_nanos,
  coalesce(held_nanos, 0) AS held_nanos, coalesce(lost_nanos, 0) AS lost_nanos`

/** Keys, from the table or from what has been read of it, with the figures of a month. */
export function keySource(keys: string, month: string): string {
  return `${keys} AS k LEFT JOIN key_month ON key_month.key_id = k.id AND key_month.month = ${month}`
}

/** Keys that this statement has locked, with the figures that their months have since. */
export function lockedKeySource(keys: string, month: string): string {
  return `${keys} AS k CROSS JOIN LATERAL key_month_now(k.id, ${month}) AS key_month`
}

/** As `keyStatus` says it. */
export function statusSql(at: string): string {
  return `CASE WHEN revoked_at_ms IS NOT NULL THEN 'revoked' WHEN expires_at_ms <= ${at} THEN 'expired' ELSE 'usable' END`
}

export function keyRecord(row: Row): KeyRecord {
  return {
    id: text(row, 'id'),
    accountId: text(row, 'account_id'),
    name: text(row, 'name'),
    prefix: text(row, 'prefix'),
    last4: text(row, 'last4'),
    monthlyBudgetNanos: nanosOrNull(row, 'monthly_budget_nanos'),
    allowedModels: jsonOrNull<readonly string[]>(row, 'allowed_models'),
    logRequests: bool(row, 'log_requests'),
    createdAtMs: number(row, 'created_at_ms'),
    expiresAtMs: numberOrNull(row, 'expires_at_ms'),
    revokedAtMs: numberOrNull(row, 'revoked_at_ms'),
    lastUsedAtMs: numberOrNull(row, 'last_used_at_ms'),
    rotatedFrom: textOrNull(row, 'rotated_from'),
    month: {
      spentNanos: nanos(row, 'spent_nanos'),
      heldNanos: nanos(row, 'held_nanos'),
      lostNanos: nanos(row, 'lost_nanos'),
    },
  }
}
