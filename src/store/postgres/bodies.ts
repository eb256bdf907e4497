import type { LoggedBody } from '../../ledger/request-log.ts'
import type { Store } from '../store.ts'
import type { Database } from './database.ts'
import { bool, number, present, type Row, text, textOrNull } from './rows.ts'

type BodyOperations = Pick<Store, 'keepBodies' | 'getBodies' | 'deleteBodies' | 'trimBodies'>

export function bodyOperations(db: Database): BodyOperations {
  return {
    async keepBodies({ requestId, atMs, request, response }) {
      await db.query(
        `INSERT INTO call_body (call_id, at_ms, request, request_type, request_bytes, request_truncated,
                                response, response_type, response_bytes, response_truncated)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING`,
        [requestId, Math.trunc(atMs), ...columnsOf(request), ...columnsOf(response)],
      )
    },

    async getBodies(requestId) {
      const [row] = await db.query('SELECT * FROM call_body WHERE call_id = $1', [requestId])
      if (row === undefined) return null
      return {
        requestId: text(row, 'call_id'),
        atMs: number(row, 'at_ms'),
        request: bodyIn(row, 'request'),
        response: bodyIn(row, 'response'),
      }
    },

    async deleteBodies(beforeMs, limit) {
      // Several nodes may delete at once: each takes others.
      const [row] = await db.query(
        `WITH old AS MATERIALIZED (
           SELECT call_id FROM call_body WHERE at_ms < $1 ORDER BY at_ms LIMIT $2 FOR UPDATE SKIP LOCKED
         ), deleted AS (
           DELETE FROM call_body USING old WHERE call_body.call_id = old.call_id RETURNING 1
         )
         SELECT count(*) AS count FROM deleted`,
        [Math.trunc(beforeMs), limit],
      )
      return number(present(row), 'count')
    },

    async trimBodies(bytesMax, limit) {
      const [total] = await db.query('SELECT bytes FROM body_total')
      if (number(present(total), 'bytes') <= bytesMax) return 0
      // Nodes that do this at once follow each other at the total, or each would delete as much as is beyond.
      const [row] = await db.query(
        `WITH total AS MATERIALIZED (
           SELECT bytes - $1 AS beyond FROM body_total FOR UPDATE
         ), oldest AS MATERIALIZED (
           SELECT call_id, at_ms, coalesce(octet_length(request), 0) + coalesce(octet_length(response), 0) + 256 AS bytes
           FROM call_body WHERE (SELECT beyond FROM total) > 0
           ORDER BY at_ms, call_id LIMIT $2 FOR UPDATE SKIP LOCKED
         ), doomed AS (
           SELECT call_id, sum(bytes) OVER (ORDER BY at_ms, call_id) - bytes AS older FROM oldest
         ), deleted AS (
           DELETE FROM call_body USING doomed, total
           WHERE call_body.call_id = doomed.call_id AND doomed.older < total.beyond RETURNING 1
         )
         SELECT count(*) AS count FROM deleted`,
        [bytesMax, limit],
      )
      return number(present(row), 'count')
    },
  }
}

function columnsOf(body: LoggedBody | null): (Uint8Array | string | number | boolean | null)[] {
  if (body === null) return [null, null, null, null]
  return [body.compressed, body.contentType, body.lengthBytes, body.truncated]
}

function bodyIn(row: Row, side: 'request' | 'response'): LoggedBody | null {
  const compressed = row[side]
  if (!(compressed instanceof Uint8Array)) return null
  return {
    compressed,
    contentType: textOrNull(row, `${side}_type`),
    lengthBytes: number(row, `${side}_bytes`),
    truncated: bool(row, `${side}_truncated`),
  }
}
