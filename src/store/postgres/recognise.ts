import { statusSql } from '../operations/keys.ts'
import { now, sql } from '../operations/sql.ts'
import type { Store } from '../store.ts'
import type { Database } from './database.ts'
import { bool, nanos, nanosOrNull, text } from './rows.ts'
import { dialectOf, runStatement } from './run-operation.ts'
import type { StoreClock } from './store-clock.ts'

const STATUS = statusSql(sql`now.at_ms`)

export function recogniseOperation(db: Database, clock: StoreClock): Pick<Store, 'recognise'> {
  const dialect = dialectOf(clock)
  return {
    async recognise(digest, atMs) {
      // A key that is not in force is only read: whoever goes on trying one writes nothing. Requests may be recognised
      // in another order than that in which they came.
      const statement = sql`
        WITH now AS MATERIALIZED (SELECT ${now(atMs)} AS at_ms),
        used AS (
          UPDATE api_key SET last_used_at_ms = now.at_ms FROM now
          WHERE digest = ${digest} AND ${STATUS} = 'usable' AND coalesce(last_used_at_ms, now.at_ms - 1) < now.at_ms
        )
        SELECT 'api_key' AS kind, k.id, k.account_id, ${STATUS} AS status,
          k.monthly_budget_nanos, coalesce(m.spent_nanos, 0) AS spent_nanos,
          coalesce(m.held_nanos, 0) AS held_nanos, a.credit_enforced,
          a.credited_nanos - a.charged_nanos AS balance_nanos
        FROM api_key k CROSS JOIN now JOIN account a ON a.id = k.account_id
        LEFT JOIN key_month m ON m.key_id = k.id AND m.month = month_of(now.at_ms)
        WHERE digest = ${digest}
        UNION ALL
        SELECT 'admin_key', id, account_id, CASE WHEN revoked_at_ms IS NULL THEN 'usable' ELSE 'revoked' END,
          NULL, NULL, NULL, NULL, NULL
        FROM admin_key WHERE digest = ${digest}`
      const [row] = await runStatement(db, statement, dialect)
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
