import { firstUlid } from '../../kernel/ids.ts'
import { dayOf } from '../../ledger/calendar.ts'
import { type CallRecord, unsentCall } from '../../ledger/call.ts'
import { columnOf, NOTHING_RECORDED } from '../../ledger/call-columns.ts'
import type { CallBodies, CallFilter, CallPage, LoggedBody, RefusedCall } from '../../ledger/request-log.ts'
import { bool, number, present, type Row, readValue, recordOf, text, textOrNull } from '../rows.ts'
import { tables } from '../tables.ts'
import { digestKey } from './batch-rows.ts'
import { atomic, columnsEqual, type Operation } from './operation.ts'
import { and, byStore, FOR_DELETE, FOR_UPDATE, join, onPostgres, raw, type Sql, sql } from './sql.ts'
import { startedWithin } from './start-range.ts'
import { firstUnpriced, recordUnpriced } from './unpriced-events.ts'
import { insertInto } from './write-rows.ts'

/** Maximum number of records that one query of the log scans, so that other queries can run in between. */
export const LOG_SCAN_RECORDS_MAX = 10_000

const { tokens: _tokens, code: _code, ...NO_COLUMNS } = NOTHING_RECORDED
const COLUMNS = Object.keys(NO_COLUMNS).map((name) => [name, columnOf(name)] as const)

/** A call of the log, or an open hold. */
export function callRecord(row: Row): CallRecord {
  const members: Record<string, unknown> = { ...NOTHING_RECORDED }
  for (const [name, column] of COLUMNS)
    if (row[column] !== undefined) members[name] = readValue(column, row[column])
  const count = (column: string) => Number(row[column] ?? 0)
  const tokens = {
    ...{ input: count('input_tokens'), output: count('output_tokens') },
    ...{ cacheRead: count('cache_read_tokens'), cacheWrite: count('cache_write_tokens') },
  }
  return { ...(members as unknown as CallRecord), tokens }
}

/** With another collation PostgreSQL would sort all calls, instead of merging them in the order of the index. */
const NO_TEXT = byStore({ sqlite: 'CAST(NULL AS text)', postgres: 'CAST(NULL AS text) COLLATE "C"' })
const UNKNOWN_UNTIL_END = new Set(['ended_at_ms', 'cost_nanos', 'list_nanos', 'balance_nanos', 'overhead_ms'])
const CALL_COLUMNS = tables.call.columns.filter(({ name }) => name !== 'requests')
const HOLD_COLUMNS = new Set(tables.hold.columns.map(({ name }) => name))

/** The columns of a call, and of a hold as if it was a call: what a call has only at its end is null, false or 0. */
const OF_CALL = raw(CALL_COLUMNS.map(({ name }) => name).join(', '))
const OF_HOLD = join(
  CALL_COLUMNS.map(({ name, kind, isNullable }) => {
    if (HOLD_COLUMNS.has(name)) return raw(name)
    if (kind === 'flag') return raw(`false AS ${name}`)
    if (kind === 'text') return sql`${NO_TEXT} AS ${raw(name)}`
    const isUnknown = isNullable || UNKNOWN_UNTIL_END.has(name)
    return raw(`CAST(${isUnknown ? 'NULL' : '0'} AS bigint) AS ${name}`)
  }),
)

/** A standing hold is not in the log. A call that was interrupted is in it already. */
const OPEN_STATES: ReadonlySet<string> = new Set(['in_flight', 'deferred'])
const IS_LOGGED = raw("(state = 'in_flight' OR state = 'deferred')")

function refusedRecord(row: Row): CallRecord {
  const { id, ...call } = recordOf<CallRecord & { readonly id: string }>(row)
  const overheadMs = number(row, 'ended_at_ms') - call.startedAtMs
  return unsentCall({ ...call, requestId: id, state: 'refused', costNanos: 0n, listNanos: 0n, overheadMs })
}

function* getCall(requestId: string): Operation<CallRecord | null> {
  const [call] = yield sql`
    SELECT ${OF_CALL} FROM call WHERE id = ${requestId}
    UNION ALL SELECT ${OF_HOLD} FROM hold WHERE id = ${requestId} AND state <> 'interrupted'`
  if (call !== undefined) return callRecord(call)
  const [refused] = yield sql`SELECT * FROM refused_call WHERE id = ${requestId}`
  return refused === undefined ? null : refusedRecord(refused)
}

/** With old statistics the planner sorts a month for each page: an export of 200,000 calls took six minutes. */
export const FORCE_INDEX_ORDER = onPostgres(`SELECT set_config('enable_sort', 'off', true),
  set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)`)

const listCalls = atomic(function* (
  filter: CallFilter,
  after: string | null,
  limit: number,
): Operation<CallPage> {
  const read = filter.state === 'refused' ? refusedRecord : callRecord
  const isFiltered = filterConditions(filter).length > 0
  if (isFiltered) yield FORCE_INDEX_ORDER
  const rows = yield pageSql(filter, after, limit)
  const isFull = !isFiltered || rows.filter((row) => !OPEN_STATES.has(text(row, 'state'))).length > limit
  const [end, following] = isFull ? [] : yield scanEndSql(filter, after)
  if (end === undefined || following === undefined) {
    const calls = rows.slice(0, limit).map(read)
    return { calls, next: rows.length > limit ? (calls.at(-1)?.requestId ?? null) : null }
  }
  const endId = text(end, 'id')
  const calls = rows
    .filter((row) => text(row, 'id') >= endId)
    .slice(0, limit)
    .map(read)
  return { calls, next: calls.length === limit ? (calls.at(-1)?.requestId ?? null) : endId }
})

const NEWEST_FIRST = raw('ORDER BY id DESC')

/** Selects the last call of one scan and the one after it, which shows whether to continue. */
export function scanEndSql(filter: CallFilter, after: string | null): Sql {
  const table = raw(filter.state === 'refused' ? 'refused_call' : 'call')
  return sql`SELECT id FROM ${table} WHERE ${scanned(filter, after)} ${NEWEST_FIRST} LIMIT 2 OFFSET ${LOG_SCAN_RECORDS_MAX - 1}`
}

/**
 * Open holds and closed calls, in one statement: a call that settles meanwhile is in it once. A scan is bounded, except
 * that of the holds, which are few.
 */
export function pageSql(filter: CallFilter, after: string | null, limit: number): Sql {
  const where = scanned(filter, after)
  if (filter.state === 'refused')
    return matchingSql(sql`SELECT *, 'refused' AS state FROM refused_call WHERE ${where}`, filter, limit)
  const matches = and([sql`true`, ...filterConditions(filter)])
  return sql`SELECT * FROM (
      ${matchingSql(sql`SELECT ${OF_CALL} FROM call WHERE ${where}`, filter, limit)}
      UNION ALL SELECT * FROM (
        SELECT * FROM (SELECT ${OF_HOLD} FROM hold WHERE ${where} AND ${IS_LOGGED}) AS open
        WHERE ${matches} ${NEWEST_FIRST} LIMIT ${limit + 1}) AS newest
    ) AS logged ${NEWEST_FIRST} LIMIT ${limit + 1}`
}

/** One extra row shows whether there are more. With another ORDER BY, SQLite would sort the rows of the scan again. */
function matchingSql(select: Sql, filter: CallFilter, limit: number): Sql {
  const conditions = filterConditions(filter)
  if (conditions.length === 0)
    return sql`SELECT * FROM (${select} ${NEWEST_FIRST} LIMIT ${limit + 1}) AS scanned`
  return sql`SELECT * FROM (
      SELECT * FROM (${select} ${NEWEST_FIRST} LIMIT ${LOG_SCAN_RECORDS_MAX}) AS scanned
      WHERE ${and(conditions)} ${onPostgres(NEWEST_FIRST)} LIMIT ${limit + 1}) AS matching`
}

type OwnerColumn = 'socket_id' | 'key_id' | 'person_id' | 'account_id'

/** The owner that bounds the scan, because it has an index. The others are filters. */
function scannedOwner(filter: CallFilter): OwnerColumn | null {
  const { accountId, keyId, personId = null, socketId = null, state } = filter
  if (socketId !== null && state !== 'refused') return 'socket_id'
  if (keyId !== null) return 'key_id'
  if (personId !== null) return 'person_id'
  return accountId === null ? null : 'account_id'
}

function ownersOf(filter: CallFilter): Record<OwnerColumn, string | null> {
  const { accountId, keyId, personId = null, socketId = null } = filter
  return { account_id: accountId, key_id: keyId, person_id: personId, socket_id: socketId }
}

function scanned(filter: CallFilter, after: string | null): Sql {
  const owner = scannedOwner(filter)
  const ofOwner = owner === null ? [] : columnsEqual({ [owner]: ownersOf(filter)[owner] })
  const before = after === null ? [] : [sql`id < ${after}`]
  return and([sql`true`, ...ofOwner, ...before, ...startedWithin(filter.fromMs, filter.toMs)])
}

function filterConditions(filter: CallFilter): Sql[] {
  const { model, status, state, minCostNanos, flag } = filter
  const { parentId = null, sessionId = null } = filter
  const owner = scannedOwner(filter)
  const conditions = columnsEqual({ ...ownersOf(filter), ...(owner === null ? {} : { [owner]: null }) })
  if (sessionId !== null) conditions.push(sql`session_id = ${sessionId}`)
  if (status !== null) conditions.push(sql`status = ${status}`)
  if (state === 'refused') {
    if (model !== null) conditions.push(sql`model_asked = ${model}`)
    // A refused call has no flag and cost nothing.
    if (flag !== null || parentId !== null || (minCostNanos ?? 0n) > 0n) conditions.push(sql`false`)
    return conditions
  }
  if (model !== null) conditions.push(sql`(model_asked = ${model} OR model_served = ${model})`)
  if (state !== null) conditions.push(sql`state = ${state}`)
  if (parentId !== null) conditions.push(sql`parent_id = ${parentId}`)
  if (minCostNanos !== null) conditions.push(sql`cost_nanos >= ${minCostNanos}`)
  // The name of a flag is also the name of its column.
  if (flag !== null) conditions.push(raw(flag))
  return conditions
}

const storeRefused = atomic(function* (calls: readonly RefusedCall[]) {
  const found = yield sql`
    SELECT id, account_id, person_id, name, digest FROM api_key WHERE digest IN (${join([null, ...calls.map(({ digest }) => digest)])})`
  const keys = new Map(found.map((key) => [digestKey(key['digest'] as Uint8Array), key]))
  const known = calls.flatMap(({ digest, ...call }) => {
    const key = keys.get(digestKey(digest))
    if (key === undefined) return []
    const accountId = text(key, 'account_id')
    const actor = { kind: 'api_key', id: text(key, 'id'), name: text(key, 'name') } as const
    return [
      {
        ...call,
        accountId,
        personId: textOrNull(key, 'person_id'),
        actor,
        model: call.modelAsked ?? '',
        day: dayOf(call.startedAtMs),
        refused: true,
      },
    ]
  })
  const rows = known.map(({ actor, model, day, refused, isUnpriced, ...call }) => ({
    ...call,
    keyId: actor.id,
  }))
  if (rows.length === 0) return
  const inserted = yield insertInto('refused_call', rows, sql`ON CONFLICT DO NOTHING RETURNING account_id`)
  yield* changeTotals(inserted, 1)
  for (const { actor, ...call } of firstUnpriced(known.filter(({ isUnpriced }) => isUnpriced)))
    yield* recordUnpriced(call, actor, call.startedAtMs)
})

/** One statement finds the old calls of all accounts: asking for each of ten thousand accounts would hold up calls. */
const deleteRefused = atomic(function* (beforeMs: number, callsMax: number, limit: number) {
  let left = limit - (yield* deleteOldest(sql`id < ${`req_${firstUlid(beforeMs)}`}`, limit))
  for (const total of yield sql`
    SELECT account_id, calls FROM refused_total WHERE calls > ${callsMax} ORDER BY account_id LIMIT ${left}`) {
    if (left === 0) break
    const excess = Math.min(number(total, 'calls') - callsMax, left)
    left -= yield* deleteOldest(sql`account_id = ${text(total, 'account_id')}`, excess)
  }
  return limit - left
})

function* deleteOldest(condition: Sql, limit: number): Operation<number> {
  const deleted = yield sql`
    WITH oldest AS MATERIALIZED (
      SELECT id FROM refused_call WHERE ${condition} ORDER BY id LIMIT ${limit} ${FOR_DELETE}
    )
    DELETE FROM refused_call WHERE id IN (SELECT id FROM oldest) RETURNING account_id`
  yield* changeTotals(deleted, -1)
  return deleted.length
}

/** Accounts in the order of their ids, so that nodes do not deadlock. */
function* changeTotals(calls: readonly Row[], sign: 1 | -1): Operation<void> {
  const totals = Map.groupBy(calls, (row) => text(row, 'account_id'))
  for (const [account, ofAccount] of [...totals].sort(([a], [b]) => (a < b ? -1 : 1)))
    yield sql`
      INSERT INTO refused_total (account_id, calls) VALUES (${account}, ${sign * ofAccount.length})
      ON CONFLICT (account_id) DO UPDATE SET calls = refused_total.calls + excluded.calls`
}

/** Overhead that is added to the size of each row: a body of a megabyte may compress to a hundred bytes. */
const ROW_BYTES = 256

const BYTES = raw(`coalesce(octet_length(request), 0) + coalesce(octet_length(response), 0) + ${ROW_BYTES}`)

const storeBodies = atomic(function* (bodies: CallBodies) {
  const { requestId: callId, atMs, request, response } = bodies
  const row = { callId, atMs, ...columnsOf('request', request), ...columnsOf('response', response) }
  const inserted = yield insertInto(
    'call_body',
    [row],
    sql`ON CONFLICT DO NOTHING RETURNING ${BYTES} AS bytes`,
  )
  yield* changeTotal(inserted, 1)
})

function* changeTotal(rows: readonly Row[], sign: 1 | -1): Operation<void> {
  if (rows.length === 0) return
  const bytes = rows.reduce((sum, row) => sum + number(row, 'bytes'), 0)
  yield sql`UPDATE body_total SET bytes = bytes + ${sign * bytes}`
}

function* getBodies(requestId: string): Operation<CallBodies | null> {
  const [row] = yield sql`SELECT * FROM call_body WHERE call_id = ${requestId}`
  if (row === undefined) return null
  return {
    requestId: text(row, 'call_id'),
    atMs: number(row, 'at_ms'),
    request: bodyIn(row, 'request'),
    response: bodyIn(row, 'response'),
  }
}

const deleteBodies = atomic(function* (beforeMs: number, limit: number) {
  yield* lockTotal()
  return yield* deleteBodiesIn(sql`
    SELECT call_id FROM call_body WHERE at_ms < ${beforeMs} ORDER BY at_ms LIMIT ${limit}`)
})

const trimBodies = atomic(function* (bytesMax: number, limit: number) {
  let excess = (yield* lockTotal()) - bytesMax
  if (excess <= 0) return 0
  const oldest = yield sql`
    SELECT call_id, ${BYTES} AS bytes FROM call_body ORDER BY at_ms, call_id LIMIT ${limit}`
  const ids: string[] = []
  for (const row of oldest) {
    if (excess <= 0) break
    ids.push(text(row, 'call_id'))
    excess -= number(row, 'bytes')
  }
  return yield* deleteBodiesIn(join(['', ...ids]))
})

/** Locks the total. Without this lock, nodes that delete at the same time would each delete the whole excess. */
function* lockTotal(): Operation<number> {
  const [total] = yield sql`SELECT bytes FROM body_total ${FOR_UPDATE}`
  return number(present(total), 'bytes')
}

function* deleteBodiesIn(ids: Sql): Operation<number> {
  const deleted = yield sql`DELETE FROM call_body WHERE call_id IN (${ids}) RETURNING ${BYTES} AS bytes`
  yield* changeTotal(deleted, -1)
  return deleted.length
}

function columnsOf(side: 'request' | 'response', body: LoggedBody | null): object {
  const { compressed = null, contentType = null, lengthBytes = null, truncated = null } = body ?? {}
  return {
    [side]: compressed,
    [`${side}Type`]: contentType,
    [`${side}Bytes`]: lengthBytes,
    [`${side}Truncated`]: truncated,
  }
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

export const REQUEST_LOG = {
  brief: { getCall },
  reads: { listCalls },
  refused: { storeRefused, deleteRefused },
  bodies: { storeBodies, getBodies, deleteBodies, trimBodies },
}
