import type { DatabaseSync } from 'node:sqlite'
import type { CallBodies, LoggedBody } from '../../ledger/request-log.ts'
import { integer, number, numberOrNull, present, type Row, text, textOrNull } from './rows.ts'

/** What the thread that keeps bodies can be asked. */
export type BodyOperations = {
  keepBodies(bodies: CallBodies): void
  getBodies(requestId: string): CallBodies | null
  deleteBodies(beforeMs: number, limit: number): number
  trimBodies(bytesMax: number, limit: number): number
}

/** What a row takes besides its bodies: a megabyte of zeros is compressed to a hundred bytes. */
const ROW_BYTES = 256

const bytesOf = (row: string) =>
  `coalesce(length(${row}request), 0) + coalesce(length(${row}response), 0) + ${ROW_BYTES}`

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

  -- What all bodies take, kept with every change: adding them up would read the whole file.
  CREATE TABLE IF NOT EXISTS body_total (bytes INTEGER NOT NULL) STRICT;

  CREATE TRIGGER IF NOT EXISTS call_body_added AFTER INSERT ON call_body BEGIN
    UPDATE body_total SET bytes = bytes + ${bytesOf('NEW.')};
  END;

  CREATE TRIGGER IF NOT EXISTS call_body_deleted AFTER DELETE ON call_body BEGIN
    UPDATE body_total SET bytes = bytes - (${bytesOf('OLD.')});
  END;
`

/** A file of before has bodies and no total yet. */
function makeSchema(db: DatabaseSync): void {
  db.exec('BEGIN IMMEDIATE')
  db.exec(SCHEMA)
  if (db.prepare('SELECT 1 FROM body_total').get() === undefined)
    db.exec(`INSERT INTO body_total SELECT coalesce(sum(${bytesOf('')}), 0) FROM call_body`)
  db.exec('COMMIT')
}

export function bodyOperations(db: DatabaseSync): BodyOperations {
  makeSchema(db)
  const insert = db.prepare(
    `INSERT OR IGNORE INTO call_body (call_id, at_ms, request, request_type, request_bytes, request_truncated,
                                      response, response_type, response_bytes, response_truncated)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const select = db.prepare('SELECT * FROM call_body WHERE call_id = ?')
  const remove = db.prepare(
    'DELETE FROM call_body WHERE call_id IN (SELECT call_id FROM call_body WHERE at_ms < ? ORDER BY at_ms LIMIT ?)',
  )

  const total = db.prepare('SELECT bytes FROM body_total')
  const oldest = db.prepare(
    `SELECT call_id, ${bytesOf('')} AS bytes FROM call_body ORDER BY at_ms, call_id LIMIT ?`,
  )
  const removeOne = db.prepare('DELETE FROM call_body WHERE call_id = ?')

  return {
    keepBodies({ requestId, atMs, request, response }) {
      insert.run(requestId, integer(atMs), ...columnsOf(request), ...columnsOf(response))
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

    trimBodies(bytesMax, limit) {
      let beyond = number(present(total.get()), 'bytes') - bytesMax
      if (beyond <= 0) return 0
      let deleted = 0
      db.exec('BEGIN IMMEDIATE')
      for (const row of oldest.all(integer(limit))) {
        if (beyond <= 0) break
        removeOne.run(text(row, 'call_id'))
        beyond -= number(row, 'bytes')
        deleted += 1
      }
      db.exec('COMMIT')
      return deleted
    },
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
