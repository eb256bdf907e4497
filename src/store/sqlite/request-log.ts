import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { limits } from '../../kernel/limits.ts'
import type { CallRecord } from '../../ledger/call.ts'
import type { CallCursor, CallFilter, CallFlag, CallPage } from '../../ledger/request-log.ts'
import { callRecord, refusedRecord } from '../call-record.ts'
import type { ReadOperations } from './operations.ts'
import { integer, integerOrNull, number, type Row, text } from './rows.ts'

const FLAG_COLUMNS: Readonly<Record<CallFlag, string>> = {
  streamed: 'streamed',
  estimated: 'estimated',
  unpriced: 'unpriced',
  overrun: 'overrun',
  priced_as_requested: 'priced_as_requested',
  credited: 'credited',
}

const HAS_FLAG = Object.entries(FLAG_COLUMNS)
  .map(([name, column]) => `WHEN '${name}' THEN ${column}`)
  .join(' ')

const MATCHES = `
  (:model IS NULL OR model_asked = :model OR model_served = :model)
  AND (:status IS NULL OR status = :status)
  AND (:state IS NULL OR state = :state)
  AND (:min_cost IS NULL OR cost_nanos >= :min_cost)
  AND (:flag IS NULL OR CASE :flag ${HAS_FLAG} END = 1)`

/** A refused call has no flag and cost nothing. */
const REFUSED_MATCHES = `
  (:model IS NULL OR model_asked = :model)
  AND (:status IS NULL OR status = :status)
  AND :state = 'refused'
  AND (:min_cost IS NULL OR :min_cost <= 0)
  AND :flag IS NULL`

/** Both indexes end in the id, so a place in the log is a place in either of them. */
const WITHIN =
  '(started_at_ms, id) < (:before_ms, :before_id) AND (started_at_ms, id) >= (:from_ms, :from_id)'
const NEWEST_FIRST = 'ORDER BY started_at_ms DESC, id DESC'

/** Before and after every call. Nothing sorts before an empty id, so an instant alone is a place too. */
const BEGINNING: CallCursor = { startedAtMs: Number.MIN_SAFE_INTEGER, requestId: '' }
const END: CallCursor = { startedAtMs: Number.MAX_SAFE_INTEGER, requestId: '' }

interface Statements {
  /** How far a stride goes: the last record in it, and one more if there is one. */
  readonly edge: StatementSync
  readonly matching: StatementSync
}

/** The planner has no statistics and would have to guess; a wrong guess reads the whole table. */
function prepareStatements(
  db: DatabaseSync,
  table: 'call' | 'refused_call',
  index: string,
  whose: string,
): Statements {
  const source = `${table} INDEXED BY ${table}_by_${index} WHERE ${whose} AND ${WITHIN}`
  const matches = table === 'call' ? MATCHES : REFUSED_MATCHES
  return {
    edge: db.prepare(`SELECT started_at_ms, id FROM ${source} ${NEWEST_FIRST} LIMIT 2 OFFSET :skip`),
    matching: db.prepare(`SELECT * FROM ${source} AND ${matches} ${NEWEST_FIRST} LIMIT :limit`),
  }
}

/**
 * A look goes in strides, each of four times as many records as the one before; the first, of four times as many as
 * calls are wanted. Most looks find enough there, and need not know where ten thousand records end.
 */
const FIRST_STRIDE = 4
const STRIDE_GROWTH = 4

export function requestLogOperation(db: DatabaseSync): Pick<ReadOperations, 'listCalls'> {
  const prepare = (table: 'call' | 'refused_call') => ({
    ofAccount: prepareStatements(db, table, 'start', 'account_id = :account'),
    ofKey: prepareStatements(db, table, 'key', 'key_id = :key AND account_id = :account'),
  })
  const admitted = prepare('call')
  const refused = prepare('refused_call')

  /** At most `limit` of the calls that match among the next so many records, and where to go on. */
  function stride(filter: CallFilter, before: CallCursor, records: number, limit: number): CallPage {
    const isRefused = filter.state === 'refused'
    const { ofAccount, ofKey } = isRefused ? refused : admitted
    const { edge, matching } = filter.keyId === null ? ofAccount : ofKey
    const whose = { account: filter.accountId, ...(filter.keyId === null ? {} : { key: filter.keyId }) }
    const from = { ...BEGINNING, startedAtMs: filter.fromMs ?? BEGINNING.startedAtMs }
    const edges = edge.all({ ...whose, ...within(before, from), skip: integer(records - 1) })
    const [last, beyond] = edges.map(placeOf)
    const goesOnAfter = beyond === undefined ? null : (last ?? null)

    const rows = matching.all({
      ...whose,
      ...within(before, goesOnAfter ?? from),
      model: filter.model,
      status: integerOrNull(filter.status),
      state: filter.state,
      min_cost: filter.minCostNanos,
      flag: filter.flag,
      // One more than asked for tells whether there are more before the edge.
      limit: integer(limit + 1),
    })
    const calls = rows.slice(0, limit).map(isRefused ? refusedRecord : callRecord)
    const lastShown = calls.at(-1)
    if (rows.length <= limit || lastShown === undefined) return { calls, next: goesOnAfter }
    return { calls, next: { startedAtMs: lastShown.startedAtMs, requestId: lastShown.requestId } }
  }

  return {
    listCalls(filter, after, limit) {
      const calls: CallRecord[] = []
      let before = earlierOf(after ?? END, { ...END, startedAtMs: filter.toMs ?? END.startedAtMs })
      let left: number = limits.logLookRecordsMax
      for (let records = takesAll(filter) ? limit : limit * FIRST_STRIDE; ; records *= STRIDE_GROWTH) {
        const taken = Math.min(records, left)
        const found = stride(filter, before, taken, limit - calls.length)
        calls.push(...found.calls)
        left -= taken
        if (found.next === null || calls.length === limit || left === 0) return { calls, next: found.next }
        before = found.next
      }
    },
  }
}

function within(before: CallCursor, from: CallCursor) {
  return {
    before_ms: integer(before.startedAtMs),
    before_id: before.requestId,
    from_ms: integer(from.startedAtMs),
    from_id: from.requestId,
  }
}

function placeOf(row: Row): CallCursor {
  return { startedAtMs: number(row, 'started_at_ms'), requestId: text(row, 'id') }
}

/** At the same instant it is the end, which has no id. */
function earlierOf(cursor: CallCursor, end: CallCursor): CallCursor {
  return cursor.startedAtMs < end.startedAtMs ? cursor : end
}

function takesAll({ model, status, state, minCostNanos, flag }: CallFilter): boolean {
  return model === null && status === null && state === null && minCostNanos === null && flag === null
}
