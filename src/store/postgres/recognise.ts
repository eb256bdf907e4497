import type { Store } from '../store.ts'
import { Bound } from './bound.ts'
import type { Database } from './database.ts'
import { statusSql } from './key-record.ts'
import { text } from './rows.ts'
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
         SELECT 'api_key' AS kind, id, account_id, ${statusSql('now.at_ms')} AS status FROM api_key, now
         WHERE digest = ${asked}
         UNION ALL
         SELECT 'admin_key', id, account_id, CASE WHEN revoked_at_ms IS NULL THEN 'usable' ELSE 'revoked' END
         FROM admin_key WHERE digest = ${asked}`,
        bound.values,
      )
      if (row === undefined) return { kind: 'refused', reason: 'unknown_key' }
      const status = text(row, 'status') as 'usable' | 'revoked' | 'expired'
      if (status !== 'usable') return { kind: 'refused', reason: `${status}_key` }
      const kind = text(row, 'kind') as 'api_key' | 'admin_key'
      return { kind, keyId: text(row, 'id'), accountId: text(row, 'account_id') }
    },
  }
}
