import type { RefusedCall } from '../../ledger/request-log.ts'
import { number, type Operation, text } from './operation.ts'
import { FOR_DELETE, join, type Sql, sql } from './sql.ts'

export function* keepRefused(calls: readonly RefusedCall[]): Operation<void> {
  if (calls.length === 0) return
  // Of two that are told at once the first counts, as it does of two that are told one after the other.
  const first = new Map(calls.toReversed().map((call) => [call.requestId, call]))
  const rows = [...first.values()].map(
    (call) => sql`(${call.requestId}, ${call.digest}, ${call.startedAtMs}, ${call.endedAtMs}, ${call.method},
      ${call.path}, ${call.surface}, ${call.modelAsked}, ${call.status}, ${call.code}, ${call.clientIp},
      ${call.userAgent})`,
  )
  yield sql`
    WITH refused (request_id, digest, started_at_ms, ended_at_ms, method, path, surface, model_asked, status, code,
      client_ip, user_agent) AS (VALUES ${join(rows)})
    INSERT INTO refused_call (id, account_id, key_id, started_at_ms, ended_at_ms, method, path, surface, model_asked,
      status, code, client_ip, user_agent)
    SELECT request_id, account_id, id, started_at_ms, ended_at_ms, method, path, surface, model_asked, status, code,
      client_ip, user_agent
    FROM refused JOIN api_key ON api_key.digest = refused.digest WHERE true
    ON CONFLICT DO NOTHING`
}

export function* deleteRefused(beforeMs: number, callsMax: number, limit: number): Operation<number> {
  let left = limit
  for (const total of yield sql`SELECT account_id, calls FROM refused_total`) {
    const account = text(total, 'account_id')
    const aged = (yield deleteOldest(account, sql`started_at_ms < ${beforeMs}`, left)).length
    left -= aged
    const beyond = Math.min(number(total, 'calls') - aged - callsMax, left)
    if (beyond > 0) left -= (yield deleteOldest(account, sql`true`, beyond)).length
  }
  return limit - left
}

function deleteOldest(account: string, those: Sql, limit: number): Sql {
  return sql`
    WITH oldest AS MATERIALIZED (
      SELECT id FROM refused_call WHERE account_id = ${account} AND ${those}
      ORDER BY started_at_ms, id LIMIT ${limit} ${FOR_DELETE}
    )
    DELETE FROM refused_call WHERE id IN (SELECT id FROM oldest) RETURNING 1 AS deleted`
}
