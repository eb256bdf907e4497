import type { ObjectKind, Surface } from '../../kernel/vocabulary.ts'
import type { CallRecord } from '../../ledger/call.ts'
import type {
  CallOfObject,
  ChildCall,
  Deferral,
  DeferredObject,
  ObjectName,
  OpenChild,
} from '../../ledger/deferred.ts'
import { nanos, number, present, type Row, recordOf, text } from '../rows.ts'
import { atomic, type Operation } from './operation.ts'
import { callRecord } from './request-log.ts'
import { byStore, FOR_UPDATE, join, now, raw, type Sql, sql } from './sql.ts'

/** A deferred call is in flight without a node. Its row in `deferred_object` has the next poll and the claim. */

/** The call of a fenced node is `interrupted` and has no hold, but its cost is still charged when it becomes known. */
const IS_OPEN = raw("state IN ('in_flight', 'interrupted')")
const CALL_IS_OPEN = sql`EXISTS (SELECT 1 FROM call WHERE call.id = deferred_object.call_id AND ${IS_OPEN})`

/** How long a claim lasts. A poll takes seconds, but reading the results of a batch may take minutes. */
const CLAIM_MS = raw("CASE kind WHEN 'response' THEN 60000 ELSE 600000 END")

/** A batch itself does not count as a request; its children count its lines. */
const BATCH_COLUMNS = sql`, requests = 0, children = coalesce(children, 0), children_nanos = coalesce(children_nanos, 0)`

const deferCall = atomic(function* (deferral: Deferral) {
  const { requestId, surface, scope, objectId, kind, dueInMs, atMs } = deferral
  const ofAnotherCall = sql`
    SELECT 1 FROM call AS other WHERE other.object_id = ${objectId} AND other.surface = ${surface} AND other.id <> ${requestId}
      ${scope === '' ? sql`` : sql`AND other.account_id = ${scope}`}`
  // Insert the object first: if two calls get the same object at once, the second waits here.
  yield sql`
    INSERT INTO deferred_object (surface, scope, object_id, call_id, key_id, kind, due_at_ms, claimed_until_ms)
    SELECT ${surface}, ${scope}, ${objectId}, id, key_id, ${kind}, ${now(atMs)} + ${dueInMs}, 0
    FROM call WHERE id = ${requestId} AND ${IS_OPEN} AND NOT EXISTS (${ofAnotherCall})
    ON CONFLICT (surface, scope, object_id) DO UPDATE SET due_at_ms = excluded.due_at_ms
    WHERE deferred_object.call_id = excluded.call_id AND deferred_object.due_at_ms > excluded.due_at_ms`
  const [other] = yield ofAnotherCall
  if (other !== undefined) return 'paid_by_other'
  const [call] = yield sql`
    UPDATE call SET object_id = ${objectId}, status = ${deferral.status}, streamed = ${deferral.streamed},
      upstream_ms = ${deferral.upstreamMs}, overhead_ms = ${deferral.overheadMs},
      upstream_request_id = ${deferral.upstreamRequestId}, bytes_in = ${deferral.bytesIn},
      bytes_out = ${deferral.bytesOut}, node_id = '' ${kind === 'response' ? sql`` : BATCH_COLUMNS}
    WHERE id = ${requestId} AND ${IS_OPEN} RETURNING id`
  return call === undefined ? 'closed' : 'deferred'
})

const SELECT_OBJECTS = sql`
  SELECT o.surface AS object_surface, o.scope, o.object_id AS deferred_object_id, o.kind, call.*
  FROM deferred_object o JOIN call ON call.id = o.call_id`

function isObject({ surface, scope, objectId }: ObjectName): Sql {
  return sql`surface = ${surface} AND scope = ${scope} AND object_id = ${objectId}`
}

function* findDeferred({ surface, scope, objectId }: ObjectName): Operation<DeferredObject | null> {
  const [row] = yield sql`
    ${SELECT_OBJECTS} WHERE o.surface = ${surface} AND o.scope = ${scope} AND o.object_id = ${objectId} AND ${IS_OPEN}`
  return row === undefined ? null : deferredObject(row)
}

const claimDeferred = atomic(function* (
  surfaces: readonly Surface[],
  { max, perKeyMax, perAccountMax }: Readonly<Record<'max' | 'perKeyMax' | 'perAccountMax', number>>,
  atMs: number,
): Operation<readonly DeferredObject[]> {
  if (surfaces.length === 0) return []
  const isDue = sql`due_at_ms <= ${now(atMs)}`
  const isFree = sql`claimed_until_ms <= ${now(atMs)}`
  // Claimed objects sort first, because their polls count against the limits.
  const isClaimed = sql`CASE WHEN ${isFree} THEN 1 ELSE 0 END`
  // The calls of these rows are closed, for example by a process that ended before it deleted the row.
  yield sql`DELETE FROM deferred_object WHERE ${isDue} AND NOT ${CALL_IS_OPEN}`
  const rows = yield sql`
    SELECT o.surface AS object_surface, o.scope, o.object_id AS deferred_object_id, o.kind, call.* FROM (
      SELECT *, row_number() OVER (PARTITION BY account_id ORDER BY ${isClaimed}, turn, due_at_ms) AS account_turn FROM (
        SELECT deferred_object.*, account_id,
          row_number() OVER (PARTITION BY key_id ORDER BY ${isClaimed}, due_at_ms) AS turn
        FROM deferred_object JOIN api_key ON api_key.id = key_id WHERE ${isDue} AND surface IN (${join(surfaces)})) due) o
    JOIN call ON call.id = o.call_id
    WHERE ${isFree} AND turn <= ${perKeyMax} AND account_turn <= ${perAccountMax}
    ORDER BY turn, due_at_ms LIMIT ${max}`
  const objects = rows.map(deferredObject)
  if (objects.length === 0) return []
  const claimed = yield sql`
    UPDATE deferred_object SET claimed_until_ms = ${now(atMs)} + ${CLAIM_MS}
    WHERE surface IN (${join(surfaces)}) AND object_id IN (${join(objects.map(({ objectId }) => objectId))})
      AND ${isFree} RETURNING scope, object_id`
  const ids = new Set(claimed.map((row) => `${text(row, 'scope')} ${text(row, 'object_id')}`))
  return objects.filter(({ scope, objectId }) => ids.has(`${scope} ${objectId}`))
})

function* claimDeferredObject(name: ObjectName, atMs: number): Operation<boolean> {
  const rows = yield sql`
    UPDATE deferred_object SET claimed_until_ms = ${now(atMs)} + ${CLAIM_MS}
    WHERE ${isObject(name)} AND claimed_until_ms <= ${now(atMs)} AND ${CALL_IS_OPEN}
    RETURNING object_id`
  return rows.length > 0
}

function* postponeDeferred(name: ObjectName, inMs: number, atMs: number): Operation<void> {
  yield sql`
    UPDATE deferred_object SET due_at_ms = ${now(atMs)} + ${inMs}, claimed_until_ms = 0
    WHERE ${isObject(name)}`
}

function* deleteDeferred(name: ObjectName): Operation<void> {
  yield sql`DELETE FROM deferred_object WHERE ${isObject(name)}`
}

function* makeDeferredDue(surface: Surface, objectId: string, digest: Uint8Array): Operation<boolean> {
  const rows = yield sql`
    UPDATE deferred_object SET due_at_ms = 0
    WHERE surface = ${surface} AND object_id = ${objectId} AND scope = ${scopeOf(surface, digest)}
      AND ${CALL_IS_OPEN} RETURNING object_id`
  return rows.length > 0
}

/** The paths of DELETEs with this credential that started after the call and may have succeeded. */
function* listDeletes({ requestId, surface, scope }: CallOfObject): Operation<readonly string[]> {
  const rows = yield sql`
    SELECT path FROM call WHERE account_id IN (${scope === '' ? sql`SELECT id FROM account` : sql`${scope}`})
      AND started_at_ms >= (SELECT started_at_ms FROM call WHERE id = ${requestId})
      AND method = 'DELETE' AND surface = ${surface} AND state <> 'released'
      AND (status IS NULL OR status BETWEEN 200 AND 299)`
  return rows.map((row) => text(row, 'path'))
}

function scopeOf(surface: Surface, digest: Uint8Array): Sql {
  return sql`(
    SELECT CASE WHEN ${raw(`${surface}_url`)} IS NULL THEN '' ELSE a.id END
    FROM account a JOIN api_key k ON k.account_id = a.id WHERE k.digest = ${digest})`
}

const mayBeBatchResults = atomic(function* (surface: Surface, fileId: string, digest: Uint8Array) {
  const isBatch = sql`surface = ${surface} AND scope = ${scopeOf(surface, digest)} AND kind = 'batch' AND ${CALL_IS_OPEN}`
  const rows = yield sql`
    SELECT 1 FROM deferred_object WHERE ${isBatch}
      AND NOT EXISTS (SELECT 1 FROM batch_file WHERE file_id = ${fileId}) LIMIT 1`
  if (rows.length === 0) return false
  yield sql`
    UPDATE deferred_object SET due_at_ms = 0
    WHERE ${isBatch} AND key_id = (SELECT id FROM api_key WHERE digest = ${digest})`
  return true
})

/** Each child takes its cost from the batch's hold, until that is used up. So the sum of holds does not change. */
const openChildren = atomic(function* (children: readonly ChildCall[]) {
  for (const { requestId, parentId, model, rating, requests, costNanos, listNanos } of children) {
    const [opened] = yield sql`
      INSERT INTO call (id, parent_id, requests, model_asked, state, hold_nanos, hold_list_nanos, account_hold_nanos,
        account_id, key_id, started_at_ms, month, day, method, path, surface, endpoint, price_version, rating,
        client_ip, user_agent)
      SELECT ${requestId}, id, ${requests}, ${model}, 'in_flight', ${leastOf(openHold('hold_nanos'), costNanos)},
        ${leastOf(openHold('hold_list_nanos'), listNanos)}, ${leastOf(openHold('account_hold_nanos'), costNanos)},
        account_id, key_id, started_at_ms, month, day,
        method, path, surface, endpoint, price_version, ${rating}, client_ip, user_agent
      FROM call WHERE id = ${parentId} ${FOR_UPDATE}
      ON CONFLICT DO NOTHING RETURNING hold_nanos, hold_list_nanos, account_hold_nanos`
    if (opened === undefined) continue
    yield sql`
      UPDATE call SET hold_nanos = hold_nanos - ${nanos(opened, 'hold_nanos')},
        hold_list_nanos = hold_list_nanos - ${nanos(opened, 'hold_list_nanos')},
        account_hold_nanos = account_hold_nanos - ${nanos(opened, 'account_hold_nanos')},
        children = children + 1, children_nanos = children_nanos + ${costNanos} WHERE id = ${parentId}`
  }
})

/** Children have their parent's start time, so the index on key and start finds them. */
function* listOpenChildren({
  requestId,
  keyId,
  startedAtMs,
}: Pick<CallRecord, 'requestId' | 'keyId' | 'startedAtMs'>): Operation<readonly OpenChild[]> {
  const rows = yield sql`
    SELECT id AS request_id, hold_nanos, hold_list_nanos FROM call WHERE key_id = ${keyId} AND started_at_ms = ${startedAtMs}
      AND parent_id = ${requestId} AND state = 'in_flight' ORDER BY id`
  return rows.map(recordOf<OpenChild>)
}

function openHold(column: string): Sql {
  return sql`CASE WHEN state = 'in_flight' THEN ${raw(column)} ELSE 0 END`
}

function leastOf(column: Sql, limit: bigint): Sql {
  return byStore({ sqlite: sql`min(${column}, ${limit})`, postgres: sql`least(${column}, ${limit}::bigint)` })
}

/** A batch does not count as a request and is in no rollup, unless it is charged itself. */
function* countBatchAsRequest({ requestId }: Pick<CallRecord, 'requestId'>): Operation<void> {
  yield sql`UPDATE call SET requests = 1 WHERE id = ${requestId} AND ${IS_OPEN}`
}

function* countDeferred(): Operation<number> {
  const [row] = yield sql`SELECT count(*) AS objects FROM deferred_object WHERE ${CALL_IS_OPEN}`
  return number(present(row), 'objects')
}

function deferredObject(row: Row): DeferredObject {
  return {
    surface: text(row, 'object_surface') as Surface,
    scope: text(row, 'scope'),
    objectId: text(row, 'deferred_object_id'),
    kind: text(row, 'kind') as ObjectKind,
    call: callRecord(row),
  }
}

export const DEFERRED = {
  brief: {
    deferCall,
    findDeferred,
    claimDeferred,
    claimDeferredObject,
    postponeDeferred,
    deleteDeferred,
    makeDeferredDue,
    mayBeBatchResults,
    openChildren,
    listOpenChildren,
    countBatchAsRequest,
  },
  reads: { countDeferred, listDeletes },
}
