import type { DatabaseSync } from 'node:sqlite'
import type { Operations } from './operations.ts'
import { integer, number, text } from './rows.ts'

type RefusedOperations = Pick<Operations, 'keepRefused' | 'deleteRefused'>

export function refusedCallOperations(db: DatabaseSync): RefusedOperations {
  const insert = db.prepare(
    `INSERT OR IGNORE INTO refused_call (id, account_id, key_id, started_at_ms, ended_at_ms, method, path, surface,
                                         model_asked, status, code, client_ip, user_agent)
     SELECT ?, account_id, id, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM api_key WHERE digest = ?`,
  )
  const totals = db.prepare('SELECT account_id, calls FROM refused_total')
  const oldest = (those: string) =>
    db.prepare(
      `DELETE FROM refused_call WHERE id IN (
         SELECT id FROM refused_call WHERE account_id = ? AND ${those} ORDER BY started_at_ms, id LIMIT ?)`,
    )
  const deleteBefore = oldest('started_at_ms < ?')
  const deleteOldest = oldest('true')

  return {
    keepRefused(calls) {
      for (const call of calls) {
        insert.run(
          call.requestId,
          integer(call.startedAtMs),
          integer(call.endedAtMs),
          call.method,
          call.path,
          call.surface,
          call.modelAsked,
          integer(call.status),
          call.code,
          call.clientIp,
          call.userAgent,
          call.digest,
        )
      }
    },

    deleteRefused(beforeMs, callsMax, limit) {
      let left = limit
      for (const total of totals.all()) {
        const account = text(total, 'account_id')
        const aged = Number(deleteBefore.run(account, integer(beforeMs), integer(left)).changes)
        left -= aged
        const beyond = Math.min(number(total, 'calls') - aged - callsMax, left)
        if (beyond > 0) left -= Number(deleteOldest.run(account, integer(beyond)).changes)
      }
      return limit - left
    },
  }
}
