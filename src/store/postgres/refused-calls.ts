import type { Store } from '../store.ts'
import { toKeptJson } from './any-text.ts'
import type { Database } from './database.ts'
import { number, present, text } from './rows.ts'

type RefusedOperations = Pick<Store, 'keepRefused' | 'deleteRefused'>

export function refusedCallOperations(db: Database): RefusedOperations {
  return {
    async keepRefused(calls) {
      const rows = calls.map(({ digest, startedAtMs, endedAtMs, ...rest }) => ({
        ...rest,
        digest: Buffer.from(digest).toString('hex'),
        startedAtMs: Math.trunc(startedAtMs),
        endedAtMs: Math.trunc(endedAtMs),
      }))
      await db.query(
        `INSERT INTO refused_call (id, account_id, key_id, started_at_ms, ended_at_ms, method, path, surface,
                                   model_asked, status, code, client_ip, user_agent)
         SELECT r."requestId", k.account_id, k.id, r."startedAtMs", r."endedAtMs", r.method, r.path, r.surface,
                r."modelAsked", r.status, r.code, r."clientIp", r."userAgent"
         FROM jsonb_to_recordset($1::jsonb) AS r("requestId" text, digest text, "startedAtMs" bigint,
           "endedAtMs" bigint, method text, path text, surface text, "modelAsked" text, status integer, code text,
           "clientIp" text, "userAgent" text)
         JOIN api_key k ON k.digest = decode(r.digest, 'hex')
         ON CONFLICT DO NOTHING`,
        [toKeptJson(rows)],
      )
    },

    async deleteRefused(beforeMs, callsMax, limit) {
      let left = limit
      for (const total of await db.query('SELECT account_id, calls FROM refused_total')) {
        const account = text(total, 'account_id')
        const aged = await deleteOldest(account, Math.trunc(beforeMs), left)
        left -= aged
        const beyond = Math.min(number(total, 'calls') - aged - callsMax, left)
        if (beyond > 0) left -= await deleteOldest(account, null, beyond)
      }
      return limit - left
    },
  }

  /** Several nodes may delete at once: each takes others. */
  async function deleteOldest(account: string, beforeMs: number | null, limit: number): Promise<number> {
    const [row] = await db.query(
      `WITH oldest AS MATERIALIZED (
         SELECT id FROM refused_call WHERE account_id = $1 AND started_at_ms < $2
         ORDER BY started_at_ms, id LIMIT $3 FOR UPDATE SKIP LOCKED
       ), deleted AS (
         DELETE FROM refused_call USING oldest WHERE refused_call.id = oldest.id RETURNING 1
       )
       SELECT count(*) AS count FROM deleted`,
      [account, beforeMs ?? Number.MAX_SAFE_INTEGER, limit],
    )
    return number(present(row), 'count')
  }
}
