import type { DatabaseSync } from 'node:sqlite'
import type { CallBodies, LoggedBody } from '../../ledger/request-log.ts'
import { integer, number, numberOrNull, type Row, text, textOrNull } from './rows.ts'

/** What the thread that keeps bodies can be asked. */
export type BodyOperations = {
  keepBodies(bodies: CallBodies): null
  getBodies(requestId: string): CallBodies | null
  deleteBodies(beforeMs: number, limit: number): number
}

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS call_body (
    call_id            TEXT PRIMARY KEY,
    at_ms              INTEGER NOT NULL,
    request            BLOB,
    request_type       TEXT,
    request_bytes      INTEGER,
    request_truncated  INTEGER,
    response           BLOB,
    response_type      TEXT,
    response_bytes     INTEGER,
    response_truncated INTEGER
  ) STRICT;

  CREATE INDEX IF NOT EXISTS call_body_by_age ON call_body (at_ms);
`

export function bodyOperations(db: DatabaseSync): BodyOperations {
  db.exec(SCHEMA)
  const insert = db.prepare(
    `INSERT OR IGNORE INTO call_body (call_id, at_ms, request, request_type, request_bytes, request_truncated,
                                      response, response_type, response_bytes, response_truncated)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const select = db.prepare('SELECT * FROM call_body WHERE call_id = ?')
  const remove = db.prepare(
    'DELETE FROM call_body WHERE call_id IN (SELECT call_id FROM call_body WHERE at_ms < ? ORDER BY at_ms LIMIT ?)',
  )

  return {
    keepBodies({ requestId, atMs, request, response }) {
      insert.run(requestId, integer(atMs), ...columnsOf(request), ...columnsOf(response))
      return null
    },

    getBodies(requestId) {
      const row = select.get(requestId)
      if (row === undefined) return null
      return {
        requestId: text(row, 'call_id'),
        atMs: number(row, 'at_ms'),
        request: bodyIn(row, 'request'),
        response: bodyIn(row, 'response'),
      }
    },

    deleteBodies: (beforeMs, limit) => Number(remove.run(integer(beforeMs), integer(limit)).changes),
  }
}

function columnsOf(body: LoggedBody | null): (Uint8Array | string | bigint | null)[] {
  if (body === null) return [null, null, null, null]
  return [body.compressed, body.contentType, integer(body.lengthBytes), body.truncated ? 1n : 0n]
}

function bodyIn(row: Row, side: 'request' | 'response'): LoggedBody | null {
  const compressed = row[side]
  if (!(compressed instanceof Uint8Array)) return null
  return {
    compressed,
    contentType: textOrNull(row, `${side}_type`),
    lengthBytes: numberOrNull(row, `${side}_bytes`) ?? 0,
    truncated: row[`${side}_truncated`] === 1n,
  }
}
