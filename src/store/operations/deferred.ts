import { limits } from '../../kernel/limits.ts'
import type { ObjectKind, Surface } from '../../kernel/surface.ts'
import type { CallRecord } from '../../ledger/call.ts'
import type { ChildCall, Deferral, DeferredObject, ObjectName } from '../../ledger/deferred.ts'
import { callRecord } from '../call-record.ts'
import { nanos, number, present, type Row, text } from '../rows.ts'
import { takeLease } from './lease.ts'
import { atomic, type Operation } from './operation.ts'
import { byStore, FOR_UPDATE, join, now, onPostgres, raw, type Sql, sql } from './sql.ts'

/**
 * A deferred call is a call in flight that has an object: its hold counts as before, and settlement closes it like any other.
 * A deferred call belongs to no node, so that the end of a node does not interrupt it.
 */

const POLLER = 'deferred'

/** Added to the due instant of an object when its call is closed: an object due that late is never asked for again. */
const DONE = 1_000_000_000_000_000

/**
 * A node that fell silent while upstream answered finds its call interrupted by the others. The cost of what the call has
 * made is booked all the same when it is known, as a settlement from the spool is; only the hold is gone.
 */
const AWAITED = raw("state IN ('in_flight', 'interrupted')")

/** A batch itself counts as no request: its lines are counted with its children. */
const isBatch = (kind: ObjectKind) => kind === 'message_batch' || kind === 'batch'

export const deferCall = atomic(function* (deferral: Deferral): Operation<'deferred' | 'closed' | 'known'> {
  const { requestId, surface, objectId, kind, path, dueInMs, atMs } = deferral
  // The object is inserted first: of two calls at a time that upstream names the same object to, the later waits here.
  yield sql`
    INSERT INTO deferred_object (surface, object_id, call_id, month, kind, path, polls, due_at_ms)
    SELECT ${surface}, ${objectId}, id, month, ${kind}, ${path}, 0, ${now(atMs)} + ${dueInMs}
    FROM call WHERE id = ${requestId} AND ${AWAITED}
    ON CONFLICT (surface, object_id) DO UPDATE SET due_at_ms = excluded.due_at_ms
    WHERE deferred_object.call_id = excluded.call_id AND deferred_object.due_at_ms < ${DONE}
      AND deferred_object.due_at_ms > excluded.due_at_ms`
  const [maker] = yield sql`
    SELECT call_id FROM deferred_object WHERE surface = ${surface} AND object_id = ${objectId}`
  if (maker !== undefined && text(maker, 'call_id') !== requestId) return 'known'
  const [call] = yield sql`
    UPDATE call SET object_id = ${objectId}, status = ${deferral.status}, streamed = ${deferral.streamed},
      upstream_ms = ${deferral.upstreamMs}, overhead_ms = ${deferral.overheadMs},
      upstream_request_id = ${deferral.upstreamRequestId}, bytes_in = ${deferral.bytesIn},
      bytes_out = ${deferral.bytesOut}, requests = ${isBatch(kind) ? 0 : 1} ${onPostgres(", node_id = ''")}
    WHERE id = ${requestId} AND ${AWAITED} RETURNING id`
  return call === undefined ? 'closed' : 'deferred'
})

/** Objects with their calls. A call that is closed is of a process that ended between settlement and `forgetDeferred`. */
const OBJECTS = sql`
  SELECT o.surface AS object_surface, o.object_id AS name, o.kind, o.path AS object_path, o.polls, call.*
  FROM deferred_object o JOIN call ON call.id = o.call_id AND call.month = o.month`

export function* findDeferred({ surface, objectId }: ObjectName): Operation<DeferredObject | null> {
  const [row] = yield sql`
    ${OBJECTS} WHERE o.surface = ${surface} AND o.object_id = ${objectId} AND ${AWAITED}`
  return row === undefined ? null : deferredObject(row)
}

export function* listDeferred(surface: Surface, path: string): Operation<readonly DeferredObject[]> {
  const above = `${path}/`
  // SQLite's LIKE takes letters of either case for the same, and ids differ in case.
  const rows = yield sql`
    ${OBJECTS} WHERE o.due_at_ms < ${DONE} AND o.surface = ${surface}
      AND (o.path = ${path} OR substr(o.path, 1, length(${above})) = ${above})
      AND ${AWAITED} LIMIT ${limits.deferredBelowMax}`
  return rows.map(deferredObject)
}

export const claimDeferred = atomic(function* (
  holder: string,
  surfaces: readonly Surface[],
  atMs: number,
): Operation<readonly DeferredObject[] | null> {
  if (!(yield* takeLease(POLLER, holder, atMs))) return null
  yield sql`
    UPDATE deferred_object SET due_at_ms = ${now(atMs)} + ${DONE} WHERE due_at_ms <= ${now(atMs)} AND NOT EXISTS (
      SELECT 1 FROM call WHERE call.id = call_id AND call.month = deferred_object.month AND ${AWAITED})`
  yield sql`
    DELETE FROM deferred_object WHERE due_at_ms >= ${DONE} AND due_at_ms < ${now(atMs)} + ${DONE - limits.deferredMs}`
  if (surfaces.length === 0) return []
  const rows = yield sql`
    ${OBJECTS} WHERE o.due_at_ms <= ${now(atMs)} AND o.surface IN (${join(surfaces)})
    ORDER BY o.due_at_ms LIMIT ${limits.deferredClaimMax}`
  return rows.map(deferredObject)
})

export function* postponeDeferred(
  { surface, objectId }: ObjectName,
  inMs: number,
  atMs: number,
): Operation<void> {
  yield sql`
    UPDATE deferred_object SET polls = polls + 1, due_at_ms = ${now(atMs)} + ${inMs}
    WHERE surface = ${surface} AND object_id = ${objectId}`
}

/**
 * Each child takes its cost out of the batch's hold, as far as that goes: the sum of all holds stays as it is. A batch that
 * was given up meanwhile has no hold any more.
 */
export const openChildren = atomic(function* (children: readonly ChildCall[]): Operation<void> {
  for (const { requestId, parentId, model, rating, requests, costNanos, listNanos } of children) {
    const [opened] = yield sql`
      INSERT INTO call (id, parent_id, requests, model_asked, state, hold_nanos, hold_list_nanos, account_id, key_id,
        started_at_ms, month, day, method, path, surface, endpoint, price_version, rating, client_ip, user_agent
        ${onPostgres(', node_id')})
      SELECT ${requestId}, id, ${requests}, ${model}, 'in_flight', ${lesser(held('hold_nanos'), costNanos)},
        ${lesser(held('hold_list_nanos'), listNanos)}, account_id, key_id, started_at_ms, month, day,
        method, path, surface, endpoint, price_version, ${rating}, client_ip, user_agent ${onPostgres(", ''")}
      FROM call WHERE id = ${parentId} ${FOR_UPDATE}
      ON CONFLICT DO NOTHING RETURNING hold_nanos, hold_list_nanos`
    if (opened === undefined) continue
    yield sql`
      UPDATE call SET hold_nanos = hold_nanos - ${nanos(opened, 'hold_nanos')},
        hold_list_nanos = hold_list_nanos - ${nanos(opened, 'hold_list_nanos')} WHERE id = ${parentId}`
  }
})

/** Children begin at the instant of their parent, so that the index on key and beginning finds them. */
export function* listOpenChildren({
  requestId,
  keyId,
  startedAtMs,
}: Pick<CallRecord, 'requestId' | 'keyId' | 'startedAtMs'>): Operation<readonly string[]> {
  const rows = yield sql`
    SELECT id FROM call WHERE key_id = ${keyId} AND started_at_ms = ${startedAtMs} AND parent_id = ${requestId}
      AND state = 'in_flight' ORDER BY id`
  return rows.map((row) => text(row, 'id'))
}

function held(column: string): Sql {
  return sql`CASE WHEN state = 'in_flight' THEN ${raw(column)} ELSE 0 END`
}

function lesser(column: Sql, limit: bigint): Sql {
  return byStore({ sqlite: sql`min(${column}, ${limit})`, postgres: sql`least(${column}, ${limit}::bigint)` })
}

/** The object is kept for a while: upstream may name it again, to a client that repeats its request. */
export function* forgetDeferred({ surface, objectId }: ObjectName, atMs: number): Operation<void> {
  yield sql`
    UPDATE deferred_object SET due_at_ms = ${now(atMs)} + ${DONE}
    WHERE surface = ${surface} AND object_id = ${objectId} AND due_at_ms < ${DONE}`
}

/** Asked every few seconds for as long as the gateway runs: it reads one row of an index, where counting reads them all. */
export function* hasDeferred(): Operation<boolean> {
  const rows = yield sql`SELECT 1 FROM deferred_object WHERE due_at_ms < ${DONE} LIMIT 1`
  return rows.length > 0
}

export function* countDeferred(): Operation<number> {
  const [row] = yield sql`SELECT count(*) AS objects FROM deferred_object WHERE due_at_ms < ${DONE}`
  return number(present(row), 'objects')
}

function deferredObject(row: Row): DeferredObject {
  return {
    surface: text(row, 'object_surface') as Surface,
    objectId: text(row, 'name'),
    kind: text(row, 'kind') as ObjectKind,
    path: text(row, 'object_path'),
    polls: number(row, 'polls'),
    call: callRecord(row),
  }
}
