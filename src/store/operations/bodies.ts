import type { CallBodies, LoggedBody } from '../../ledger/request-log.ts'
import { bool, number, present, type Row, text, textOrNull } from '../rows.ts'
import { atomic, type Operation } from './operation.ts'
import { FOR_DELETE, join, onPostgres, raw, type SqlValue, sql } from './sql.ts'

/** The bytes of a row besides its bodies, which count too: a megabyte of zeros is compressed to a hundred bytes. */
const ROW_BYTES = 256

const BYTES = raw(`coalesce(octet_length(request), 0) + coalesce(octet_length(response), 0) + ${ROW_BYTES}`)

export const storeBodies = atomic(function* (bodies: CallBodies): Operation<void> {
  const { requestId, atMs, request, response } = bodies
  const kept = yield sql`
    INSERT INTO call_body (call_id, at_ms, request, request_type, request_bytes, request_truncated,
      response, response_type, response_bytes, response_truncated)
    VALUES (${join([requestId, atMs, ...columnsOf(request), ...columnsOf(response)])}) ON CONFLICT DO NOTHING
    RETURNING ${BYTES} AS bytes`
  yield* moveTotal(kept, 1)
})

/** The sum of all bodies moves with the rows that were written or deleted. */
function* moveTotal(rows: readonly Row[], sign: 1 | -1): Operation<void> {
  if (rows.length === 0) return
  const bytes = rows.reduce((sum, row) => sum + number(row, 'bytes'), 0)
  yield sql`UPDATE body_total SET bytes = bytes + ${sign * bytes}`
}

export function* getBodies(requestId: string): Operation<CallBodies | null> {
  const [row] = yield sql`SELECT * FROM call_body WHERE call_id = ${requestId}`
  if (row === undefined) return null
  return {
    requestId: text(row, 'call_id'),
    atMs: number(row, 'at_ms'),
    request: bodyIn(row, 'request'),
    response: bodyIn(row, 'response'),
  }
}

export const deleteBodies = atomic(function* (beforeMs: number, limit: number): Operation<number> {
  const deleted = yield sql`
    WITH old AS MATERIALIZED (
      SELECT call_id FROM call_body WHERE at_ms < ${beforeMs} ORDER BY at_ms LIMIT ${limit} ${FOR_DELETE}
    )
    DELETE FROM call_body WHERE call_id IN (SELECT call_id FROM old) RETURNING ${BYTES} AS bytes`
  yield* moveTotal(deleted, -1)
  return deleted.length
})

export const trimBodies = atomic(function* (bytesMax: number, limit: number): Operation<number> {
  const [total] = yield sql`SELECT bytes FROM body_total`
  if (number(present(total), 'bytes') <= bytesMax) return 0
  // Nodes that trim at once wait for each other at the row of the total, or each would delete all that is beyond.
  const deleted = yield sql`
    WITH total AS MATERIALIZED (
      SELECT bytes - ${bytesMax} AS beyond FROM body_total ${onPostgres('FOR UPDATE')}
    ), oldest AS MATERIALIZED (
      SELECT call_id, at_ms, ${BYTES} AS bytes FROM call_body WHERE (SELECT beyond FROM total) > 0
      ORDER BY at_ms, call_id LIMIT ${limit} ${FOR_DELETE}
    ), older AS (
      SELECT call_id, sum(bytes) OVER (ORDER BY at_ms, call_id) - bytes AS older_bytes FROM oldest
    )
    DELETE FROM call_body
    WHERE call_id IN (SELECT call_id FROM older WHERE older_bytes < (SELECT beyond FROM total))
    RETURNING ${BYTES} AS bytes`
  yield* moveTotal(deleted, -1)
  return deleted.length
})

function columnsOf(body: LoggedBody | null): SqlValue[] {
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
