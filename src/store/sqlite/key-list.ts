import type { DatabaseSync } from 'node:sqlite'
import { monthOf } from '../../ledger/calendar.ts'
import { KEY_COLUMNS, KEY_SOURCE, keyRecord } from './key-record.ts'
import type { ReadOperations } from './operations.ts'
import { integer } from './rows.ts'

/** Sorts after every id, so that a list from its start is the same statement. */
const AFTER_ALL_IDS = '\u{10ffff}'

/** As `keyStatus` says it. */
const STATUS = `
  CASE WHEN revoked_at_ms IS NOT NULL THEN 'revoked' WHEN expires_at_ms <= :at THEN 'expired' ELSE 'usable' END`

/**
 * SQLite's own upper() knows ASCII only, and a function of ours costs a microsecond per key: a million names took
 * 1.9 s with it and 0.7 s without. So it is called for those names alone that need it.
 */
const NAME_IN_UPPER_CASE = 'iif(octet_length(name) = length(name), upper(name), upper_case(name))'

/** `instr` gives no character a meaning, as LIKE would. */
const FOUND = `
  (instr(${NAME_IN_UPPER_CASE}, :search_upper) OR instr(id, :search) OR instr(prefix, :search) OR instr(last4, :search))`

export function keyListOperation(db: DatabaseSync): Pick<ReadOperations, 'listKeys'> {
  db.function('upper_case', { deterministic: true }, (value) => String(value).toUpperCase())
  const select = db.prepare(
    `SELECT ${KEY_COLUMNS} FROM ${KEY_SOURCE}
     WHERE account_id = :account AND id < :after AND (:status IS NULL OR ${STATUS} = :status)
       AND (:search IS NULL OR ${FOUND})
     ORDER BY id DESC LIMIT :limit`,
  )

  return {
    listKeys({ accountId, status, search, after, limit, atMs }) {
      const rows = select.all({
        account: accountId,
        after: after ?? AFTER_ALL_IDS,
        status,
        search,
        search_upper: search?.toUpperCase() ?? null,
        month: monthOf(atMs),
        at: integer(atMs),
        // One more than asked for tells whether there are more.
        limit: integer(limit + 1),
      })
      return { rows: rows.slice(0, limit).map(keyRecord), more: rows.length > limit }
    },
  }
}
