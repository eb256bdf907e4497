import { limits } from '../../kernel/limits.ts'
import type { CallCursor, CallFilter, CallFlag } from '../../ledger/request-log.ts'
import { callRecord, refusedRecord } from '../call-record.ts'
import type { Store } from '../store.ts'
import { Bound } from './bound.ts'
import type { Database } from './database.ts'
import { monthRange } from './month-range.ts'
import { bool, number, type Row, text } from './rows.ts'

const FLAG_COLUMNS: Readonly<Record<CallFlag, string>> = {
  streamed: 'streamed',
  estimated: 'estimated',
  unpriced: 'unpriced',
  overrun: 'overrun',
  priced_as_requested: 'priced_as_requested',
  credited: 'credited',
}

const NEWEST_FIRST = 'ORDER BY started_at_ms DESC, id DESC'

/**
 * Left alone the planner thinks of sorting what it believes to be few. It guesses that from its statistics, which a new
 * month does not have yet, which lag behind and are lost in upgrades of PostgreSQL; a wrong guess reads and sorts all of
 * a month for each page. An export of 200,000 calls took more than six minutes so.
 */
export const IN_ORDER_OF_AN_INDEX = `SELECT set_config('enable_sort', 'off', true), set_config('enable_seqscan', 'off', true),
  set_config('enable_bitmapscan', 'off', true)`

/** Before and after every call. Nothing sorts before an empty id, so an instant alone is a place too. */
const BEGINNING: CallCursor = { startedAtMs: Number.MIN_SAFE_INTEGER, requestId: '' }
const END: CallCursor = { startedAtMs: Number.MAX_SAFE_INTEGER, requestId: '' }

export function requestLogOperation(db: Database): Pick<Store, 'listCalls'> {
  return {
    async listCalls(filter, after, limit) {
      const { sql, values, records } = lookSql(filter, after, limit)
      const rows = await db.transaction(async (tx) => {
        await tx.query(IN_ORDER_OF_AN_INDEX)
        return tx.query(sql, values)
      })
      const matching = rows.filter((row) => bool(row, 'is_matching') && number(row, 'place') <= records)
      const calls = matching.slice(0, limit).map(filter.state === 'refused' ? refusedRecord : callRecord)
      const lastShown = calls.at(-1)
      if (matching.length > limit && lastShown !== undefined) {
        return { calls, next: { startedAtMs: lastShown.startedAtMs, requestId: lastShown.requestId } }
      }
      const edge = rows.find((row) => number(row, 'place') === records)
      const goesOn = rows.some((row) => number(row, 'place') > records)
      return { calls, next: goesOn && edge !== undefined ? placeOf(edge) : null }
    },
  }
}

/**
 * One look: so many records in the order of an index and one more, of those the matching ones, and where the look
 * ends. Every month has its own index, and their beginnings are merged; nothing is sorted, and nothing is read beyond
 * the last call that is shown.
 */
export function lookSql(
  filter: CallFilter,
  after: CallCursor | null,
  limit: number,
): { sql: string; values: unknown[]; records: number } {
  const before = earlierOf(after ?? END, { ...END, startedAtMs: filter.toMs ?? END.startedAtMs })
  const from = { ...BEGINNING, startedAtMs: filter.fromMs ?? BEGINNING.startedAtMs }
  const bound = new Bound()
  const matches = matchesSql(bound, filter)
  const records = Math.min(matches === null ? limit : limits.logLookRecordsMax, limits.logLookRecordsMax)
  const isRefused = filter.state === 'refused'
  const months = isRefused ? [] : monthRange(bound, from.startedAtMs, before.startedAtMs)
  const where = [whoseSql(bound, filter), ...withinSql(bound, before, from), ...months].join(' AND ')
  const source = `${isRefused ? 'refused_call' : 'call'} WHERE ${where}`
  const look = `SELECT * FROM ${source} ${NEWEST_FIRST} LIMIT ${records + 1}`
  const sql = `
    SELECT * FROM (
      SELECT *, row_number() OVER (${NEWEST_FIRST}) AS place, coalesce(${matches ?? 'true'}, false) AS is_matching
      FROM (${look}) AS look
    ) AS numbered
    WHERE (is_matching AND place <= ${records}) OR place >= ${records}
    ${NEWEST_FIRST} LIMIT ${bound.integer(limit + 2)}`
  return { sql, values: bound.values, records }
}

/** An account's own index would serve for its key too, and be chosen for a key that has most of the calls. */
function whoseSql(bound: Bound, { accountId, keyId }: CallFilter): string {
  const account = bound.as('text', accountId)
  return keyId === null
    ? `account_id = ${account}`
    : `key_id = ${bound.as('text', keyId)} AND account_id IS NOT DISTINCT FROM ${account}`
}

/** Both indexes end in the id, so a place in the log is a place in either of them. */
function withinSql(bound: Bound, before: CallCursor, from: CallCursor): string[] {
  const place = ({ startedAtMs, requestId }: CallCursor): string =>
    `(${bound.integer(startedAtMs)}, ${bound.as('text', requestId)})`
  return [`(started_at_ms, id) < ${place(before)}`, `(started_at_ms, id) >= ${place(from)}`]
}

/** Null: all calls match. */
function matchesSql(bound: Bound, { model, status, state, minCostNanos, flag }: CallFilter): string | null {
  const parts: string[] = []
  if (status !== null) parts.push(`status = ${bound.integer(status)}`)
  if (state === 'refused') {
    if (model !== null) parts.push(`model_asked = ${bound.as('text', model)}`)
    // It has no flag and cost nothing.
    if (flag !== null || (minCostNanos ?? 0n) > 0n) parts.push('false')
    return parts.length === 0 ? null : parts.join(' AND ')
  }
  if (model !== null) {
    const name = bound.as('text', model)
    parts.push(`(model_asked = ${name} OR model_served = ${name})`)
  }
  if (state !== null) parts.push(`state = ${bound.as('text', state)}`)
  if (minCostNanos !== null) parts.push(`cost_nanos >= ${bound.as('bigint', minCostNanos)}`)
  if (flag !== null) parts.push(FLAG_COLUMNS[flag])
  return parts.length === 0 ? null : parts.join(' AND ')
}

function placeOf(row: Row): CallCursor {
  return { startedAtMs: number(row, 'started_at_ms'), requestId: text(row, 'id') }
}

/** At the same instant it is the end, which has no id. */
function earlierOf(cursor: CallCursor, end: CallCursor): CallCursor {
  return cursor.startedAtMs < end.startedAtMs ? cursor : end
}
