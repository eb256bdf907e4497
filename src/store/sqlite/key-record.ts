import type { KeyRecord } from '../../keys/key-store.ts'
import { nanos, nanosOrNull, number, numberOrNull, type Row, text, textOrNull } from './rows.ts'

/**
 * When a key was last used. What it was admitted for says so itself, which spares every admission a page to write; the
 * column has the uses that no call came of.
 */
export const LAST_USED_AT_MS = `nullif(max(coalesce(last_used_at_ms, 0),
  coalesce((SELECT started_at_ms FROM call WHERE key_id = api_key.id ORDER BY started_at_ms DESC LIMIT 1), 0)), 0)`

/** The record's columns and its source. `:month` says of which month the figures are. */
export const KEY_COLUMNS = `id, account_id, name, prefix, last4, monthly_budget_nanos, allowed_models, log_requests,
  created_at_ms, expires_at_ms, revoked_at_ms, ${LAST_USED_AT_MS} AS last_used_at_ms, rotated_from,
  coalesce(spent_nanos, 0) AS spent_nanos, coalesce(held_nanos, 0) AS held_nanos,
  coalesce(lost_nanos, 0) AS lost_nanos`

export const KEY_SOURCE = 'api_key LEFT JOIN key_month ON key_month.key_id = api_key.id AND month = :month'

export function keyRecord(row: Row): KeyRecord {
  return {
    id: text(row, 'id'),
    accountId: text(row, 'account_id'),
    name: text(row, 'name'),
    prefix: text(row, 'prefix'),
    last4: text(row, 'last4'),
    monthlyBudgetNanos: nanosOrNull(row, 'monthly_budget_nanos'),
    allowedModels: modelsFromJson(textOrNull(row, 'allowed_models')),
    logRequests: row['log_requests'] === 1n,
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

export function modelsToJson(models: readonly string[] | null): string | null {
  return models === null ? null : JSON.stringify(models)
}

export function modelsFromJson(json: string | null): readonly string[] | null {
  return json === null ? null : (JSON.parse(json) as string[])
}
