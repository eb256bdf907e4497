import { dayOf } from '../../ledger/calendar.ts'
import { type CallRecord, unsentCall } from '../../ledger/call.ts'
import { columnOf, NOTHING_RECORDED } from '../../ledger/call-columns.ts'
import type {
  CallBodies,
  CallCursor,
  CallFilter,
  CallPage,
  LoggedBody,
  RefusedCall,
} from '../../ledger/request-log.ts'
import { bool, number, present, type Row, readValue, recordOf, text, textOrNull } from '../rows.ts'
import { tables } from '../tables.ts'
import { digestKey } from './batch-rows.ts'
import { atomic, type Operation } from './operation.ts'
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

/** Lists are ordered by start, but over all accounts by id, because no index has the start times of all accounts. */
function newestFirst(filter: CallFilter): Sql {
  return raw(isById(filter) ? 'ORDER BY id DESC' : 'ORDER BY started_at_ms DESC, id DESC')
}

function isById({ accountId, keyId, personId = null, socketId = null, state }: CallFilter): boolean {
  return (
    accountId === null && keyId === null && personId === null && (socketId === null || state === 'refused')
  )
}

/** With old statistics the planner sorts a month for each page: an export of 200,000 calls took six minutes. */
export const FORCE_INDEX_ORDER = onPostgres(`SELECT set_config('enable_sort', 'off', true),
  set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)`)

/** Cursors before and after all calls. An empty id sorts first, so a time alone is a cursor too. */
const START: CallCursor = { startedAtMs: Number.MIN_SAFE_INTEGER, requestId: '' }
const END: CallCursor = { startedAtMs: Number.MAX_SAFE_INTEGER, requestId: '' }

const listCalls = atomic(function* (
  filter: CallFilter,
  after: CallCursor | null,
  limit: number,
): Operation<CallPage> {
  yield FORCE_INDEX_ORDER
  const before = earlierOf(after ?? END, {
    ...END,
    startedAtMs: filter.toMs ?? END.startedAtMs,
  })
  const from = { ...START, startedAtMs: filter.fromMs ?? START.startedAtMs }
  const rows = yield filteredSql(filter, before, from, limit)
  const calls = rows.slice(0, limit).map(filter.state === 'refused' ? refusedRecord : callRecord)
  const lastShown = calls.at(-1)
  if (rows.length > limit && lastShown !== undefined)
    return { calls, next: { startedAtMs: lastShown.startedAtMs, requestId: lastShown.requestId } }
  const [last, following] = (yield scanEndSql(filter, before, from)).map(cursorOf)
  return { calls, next: following === undefined ? null : (last ?? null) }
})

/** Selects the last record of one scan and the one after it, which shows whether to continue. */
export function scanEndSql(filter: CallFilter, before: CallCursor, from: CallCursor): Sql {
  return sql`SELECT started_at_ms, id FROM ${scanSql(filter, before, from)} ${newestFirst(filter)}
    LIMIT 2 OFFSET ${LOG_SCAN_RECORDS_MAX - 1}`
}

/** One extra row shows whether there are more. With an ORDER BY, SQLite would sort the rows of the scan again. */
export function filteredSql(filter: CallFilter, before: CallCursor, from: CallCursor, limit: number): Sql {
  return sql`SELECT * FROM (
      SELECT * FROM ${scanSql(filter, before, from)} ${newestFirst(filter)} LIMIT ${LOG_SCAN_RECORDS_MAX}) AS scanned
    WHERE ${and([sql`true`, ...filterConditions(filter)])} ${onPostgres(newestFirst(filter))} LIMIT ${limit + 1}`
}

/** Open holds and closed calls, in one statement: a call that settles meanwhile is in it once. */
function scanSql(filter: CallFilter, before: CallCursor, from: CallCursor): Sql {
  if (filter.state === 'refused') return tableSql('refused_call', filter, before, from)
  return sql`(
    SELECT ${OF_CALL} FROM ${tableSql('call', filter, before, from)}
    UNION ALL SELECT ${OF_HOLD} FROM ${tableSql('hold', filter, before, from)} AND ${IS_LOGGED}
    ${newestFirst(filter)}) AS logged`
}

/** Without the hints SQLite may read the whole table, and PostgreSQL the index of the account for a key. */
function tableSql(
  table: 'call' | 'hold' | 'refused_call',
  filter: CallFilter,
  before: CallCursor,
  from: CallCursor,
): Sql {
  const { accountId, keyId, personId = null, socketId = null } = filter
  if (isById(filter)) return scanByIdSql(table, filter, before, from)
  const ofSocket = socketId !== null && table !== 'refused_call'
  const index = raw(
    `${table}_by_${ofSocket ? 'socket' : keyId !== null ? 'key' : personId === null ? 'start' : 'person'}`,
  )
  const ofAccount = accountId === null ? sql`true` : sql`account_id IS NOT DISTINCT FROM ${accountId}`
  const ofKey = keyId === null ? sql`` : sql`AND key_id IS NOT DISTINCT FROM ${keyId}`
  const hint = table === 'hold' ? sql`` : byStore({ sqlite: sql`INDEXED BY ${index}`, postgres: '' })
  const ofOwner = ofSocket
    ? sql`socket_id = ${socketId} AND ${ofAccount} ${ofKey}`
    : keyId !== null
      ? sql`key_id = ${keyId} AND ${ofAccount}`
      : personId === null
        ? sql`account_id = ${accountId}`
        : sql`person_id = ${personId} AND ${ofAccount}`
  return sql`${raw(table)} ${hint} WHERE ${ofOwner}
    AND (started_at_ms, id) < (${before.startedAtMs}, ${before.requestId})
    AND (started_at_ms, id) >= (${from.startedAtMs}, ${from.requestId})`
}

function scanByIdSql(table: string, { fromMs, toMs }: CallFilter, before: CallCursor, from: CallCursor): Sql {
  const where = [sql`id >= ${from.requestId}`]
  if (before.requestId !== '') where.push(sql`id < ${before.requestId}`)
  return sql`${raw(table)} WHERE ${and([...where, ...startedWithin(fromMs, toMs)])}`
}

function filterConditions(filter: CallFilter): Sql[] {
  const { model, status, state, minCostNanos, flag } = filter
  const { personId = null, parentId = null, socketId = null, sessionId = null } = filter
  const conditions: Sql[] = []
  if (personId !== null) conditions.push(sql`person_id = ${personId}`)
  if (sessionId !== null) conditions.push(sql`session_id = ${sessionId}`)
  if (status !== null) conditions.push(sql`status = ${status}`)
  if (state === 'refused') {
    if (model !== null) conditions.push(sql`model_asked = ${model}`)
    if (socketId !== null) conditions.push(sql`socket_id = ${socketId}`)
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

function cursorOf(row: Row): CallCursor {
  return { startedAtMs: number(row, 'started_at_ms'), requestId: text(row, 'id') }
}

/** The earlier of a cursor and the end of a period. If both have the same time, it is the end, which has no id. */
function earlierOf(cursor: CallCursor, end: CallCursor): CallCursor {
  return cursor.startedAtMs < end.startedAtMs ? cursor : end
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
  const totals = Map.groupBy(inserted, (row) => text(row, 'account_id'))
  for (const [account, ofAccount] of [...totals].sort(([a], [b]) => (a < b ? -1 : 1)))
    yield sql`
      INSERT INTO refused_total (account_id, calls) VALUES (${account}, ${ofAccount.length})
      ON CONFLICT (account_id) DO UPDATE SET calls = refused_total.calls + excluded.calls`
  for (const { actor, ...call } of firstUnpriced(known.filter(({ isUnpriced }) => isUnpriced)))
    yield* recordUnpriced(call, actor, call.startedAtMs)
})

const deleteRefused = atomic(function* (beforeMs: number, callsMax: number, limit: number) {
  let left = limit
  for (const total of yield sql`SELECT account_id, calls FROM refused_total ORDER BY account_id`) {
    const account = text(total, 'account_id')
    const aged = yield* deleteOldest(account, sql`started_at_ms < ${beforeMs}`, left)
    left -= aged
    const excess = Math.min(number(total, 'calls') - aged - callsMax, left)
    if (excess > 0) left -= yield* deleteOldest(account, sql`true`, excess)
  }
  return limit - left
})

function* deleteOldest(account: string, condition: Sql, limit: number): Operation<number> {
  const deleted = yield sql`
    WITH oldest AS MATERIALIZED (
      SELECT id FROM refused_call WHERE account_id = ${account} AND ${condition}
      ORDER BY started_at_ms, id LIMIT ${limit} ${FOR_DELETE}
    )
    DELETE FROM refused_call WHERE id IN (SELECT id FROM oldest) RETURNING 1 AS deleted`
  if (deleted.length > 0)
    yield sql`UPDATE refused_total SET calls = calls - ${deleted.length} WHERE account_id = ${account}`
  return deleted.length
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
