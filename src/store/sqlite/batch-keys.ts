import type { DatabaseSync } from 'node:sqlite'
import { inArrays } from './batch-rows.ts'

/** A key with its figures of the month, in the order of the statement's columns. */
export type KeyRow = readonly [
  id: string,
  accountId: string,
  expiresAtMs: bigint | null,
  revokedAtMs: bigint | null,
  monthlyBudgetNanos: bigint | null,
  allowedModels: string | null,
  logRequests: bigint,
  spentNanos: bigint,
  heldNanos: bigint,
  hasFloors: bigint,
]

/**
 * The keys that the calls of a batch come with. Each is read once, however many calls come with it: within a transaction
 * nobody else can change it. Nothing is kept from one batch to the next, nor past a command that may change a key.
 */
export interface BatchKeys {
  /** With the figures as they stand in the tables, without what this batch moves. */
  find(digest: Uint8Array, month: string): KeyRow | undefined
  /** Whenever the rows of the batch are written, when a month has got floors, and after a rollback. */
  forget(): void
}

export function prepareBatchKeys(db: DatabaseSync): BatchKeys {
  const select = inArrays(
    db.prepare(
      `SELECT k.id, k.account_id, k.expires_at_ms, k.revoked_at_ms, k.monthly_budget_nanos, k.allowed_models,
              k.log_requests, coalesce(m.spent_nanos, 0), coalesce(m.held_nanos, 0), coalesce(m.has_floors, 0)
       FROM api_key k LEFT JOIN key_month m ON m.key_id = k.id AND m.month = ? WHERE k.digest = ?`,
    ),
  )
  const found = new Map<string, KeyRow>()

  return {
    find(digest, month) {
      const name = `${textOf(digest)}${month}`
      const known = found.get(name)
      if (known !== undefined) return known
      const row = select.get(month, digest) as unknown as KeyRow | undefined
      if (row !== undefined) found.set(name, row)
      return row
    },
    forget: () => found.clear(),
  }
}

function textOf({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('latin1')
}
