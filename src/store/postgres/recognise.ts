import type { Store } from '../store.ts'
import { Bound } from './bound.ts'
import type { Database } from './database.ts'
import { statusSql } from './key-record.ts'
import { bool, nanos, nanosOrNull, text } from './rows.ts'
import { nowSql, type StoreClock } from './store-clock.ts'

export function recogniseOperation(db: Database, clock: StoreClock): Pick<Store, 'recognise'> {
  return {
    async recognise(digest, atMs) {
      const bound = new Bound()
      const asked = bound.as('bytea', digest)
      // A key that is not in force is only read: whoever goes on trying one writes nothing. Requests may be recognised
      // in another order than that in which they came.
      const [row] = await db.query(
        `WITH now AS MATERIALIZED (SELECT ${nowSql(clock, bound, atMs)} AS at_ms),
         used AS (
           UPDATE api_key SET last_used_at_ms = now.at_ms FROM now
           WHERE digest = ${asked} AND ${statusSql('now.at_ms')} = 'usable'
             AND coalesce(last_used_at_ms, now.at_ms - 1) < now.at_ms
         )
         SELECT 'api_key' AS kind, k.id, k.account_id, ${statusSql('now.at_ms')} AS status,
           k.monthly_budget_nanos, coalesce(m.spent_nanos, 0) AS spent_nanos,
           coalesce(m.held_nanos, 0) AS held_nanos, a.credit_enforced,
           a.credited_nanos - a.charged_nanos AS balance_nanos
         FROM api_key k CROSS JOIN now JOIN account a ON a.id = k.account_id
         LEFT JOIN key_month m ON m.key_id = k.id AND m.month = month_of(now.at_ms)
         WHERE digest = ${asked}
         UNION ALL
         SELECT 'admin_key', id, account_id, CASE WHEN revoked_at_ms IS NULL THEN 'usable' ELSE 'revoked' END,
           NULL, NULL, NULL, NULL, NULL
         FROM admin_key WHERE digest = ${asked}`,
        bound.values,
      )
      if (row === undefined) return { kind: 'refused', reason: 'unknown_key' }
      const status = text(row, 'status') as 'usable' | 'revoked' | 'expired'
      if (status !== 'usable') return { kind: 'refused', reason: `${status}_key` }
      const caller = { keyId: text(row, 'id'), accountId: text(row, 'account_id') }
      if (text(row, 'kind') === 'admin_key') return { kind: 'admin_key', ...caller }
      const means = {
        capNanos: nanosOrNull(row, 'monthly_budget_nanos'),
        spentNanos: nanos(row, 'spent_nanos'),
        heldNanos: nanos(row, 'held_nanos'),
        creditEnforced: bool(row, 'credit_enforced'),
        balanceNanos: nanos(row, 'balance_nanos'),
      }
      return { kind: 'api_key', ...caller, means }
    },
  }
}
