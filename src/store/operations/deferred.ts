import type { ObjectKind, Surface } from '../../kernel/vocabulary.ts'
import type { CallRecord } from '../../ledger/call.ts'
import type { ChildCall, Deferral, DeferredObject, ObjectName, OpenChild } from '../../ledger/deferred.ts'
import { nanos, number, present, type Row, recordOf, text } from '../rows.ts'
import { atomic, type Operation } from './operation.ts'
import { callRecord } from './request-log.ts'
import { byStore, FOR_UPDATE, join, now, onPostgres, raw, type Sql, sql } from './sql.ts'

/** A deferred call is a hold without a node, with its object, its next poll and the claim of the node that polls it. */

/** How long a claim lasts. A poll takes seconds, but reading the results of a batch may take minutes. */
const CLAIM_MS = raw("CASE kind WHEN 'response' THEN 60000 ELSE 600000 END")

const IS_OBJECT = raw('due_at_ms IS NOT NULL')

const deferCall = atomic(function* (deferral: Deferral) {
  const { requestId, surface, scope, objectId, kind } = deferral
  // If two calls get the same object at once, the second waits here.
  yield onPostgres(
    sql`SELECT pg_advisory_xact_lock(hashtextextended(${`${surface} ${scope} ${objectId}`}, 0))`,
  )
  const isSame = sql`other.object_id = ${objectId} AND other.surface = ${surface} AND other.id <> ${requestId}`
  const [other] = yield sql`
    SELECT id FROM hold AS other WHERE ${isSame} AND other.scope = ${scope}
    UNION ALL SELECT id FROM call AS other WHERE ${isSame} AND other.method <> 'DELETE'
      ${scope === '' ? sql`` : sql`AND other.account_id = ${scope}`}`
  if (other !== undefined) return 'paid_by_other'
  const dueAtMs = sql`${now(deferral.atMs)} + ${deferral.dueInMs}`
  // A batch itself does not count as a request; its children count its lines.
  const ofBatch =
    kind === 'response'
      ? sql``
      : sql`, requests = 0, children = coalesce(children, 0), children_nanos = coalesce(children_nanos, 0)`
  const update = sql`
    UPDATE hold SET state = CASE state WHEN 'interrupted' THEN state ELSE 'deferred' END, node_id = '',
      kind = ${kind}, scope = ${scope}, object_id = ${objectId},
      due_at_ms = CASE WHEN due_at_ms < ${dueAtMs} THEN due_at_ms ELSE ${dueAtMs} END,
      claimed_until_ms = coalesce(claimed_until_ms, 0), status = ${deferral.status}, streamed = ${deferral.streamed},
      upstream_ms = ${deferral.upstreamMs}, overhead_ms = ${deferral.overheadMs},
      upstream_request_id = ${deferral.upstreamRequestId}, bytes_in = ${deferral.bytesIn},
      bytes_out = ${deferral.bytesOut} ${ofBatch}
    WHERE id = ${requestId} RETURNING id`
  if ((yield update).length > 0) return 'deferred'
  // The node was fenced meanwhile: the call holds nothing, but its cost is still charged when it becomes known.
  const reopened = yield sql`
    INSERT INTO hold (${OF_CALL}, state, budget_id, hold_nanos, hold_list_nanos)
    SELECT ${OF_CALL_AS_C}, 'interrupted', k.budget_id, 0, 0
    FROM call c JOIN api_key k ON k.id = c.key_id WHERE c.id = ${requestId} AND c.state = 'interrupted' RETURNING id`
  if (reopened.length === 0) return 'closed'
  yield update
  return 'deferred'
})

/** What a hold and a call have in common before the call ends. */
const SHARED = [
  ...([
    'id',
    'account_id',
    'key_id',
    'person_id',
    'started_at_ms',
    'month',
    'day',
    'method',
    'path',
  ] as const),
  ...(['surface', 'model_asked', 'price_version', 'rating', 'client_ip', 'user_agent'] as const),
  ...(['socket_id', 'session_id'] as const),
]
const OF_CALL = raw(SHARED.join(', '))
const OF_CALL_AS_C = raw(SHARED.map((column) => `c.${column}`).join(', '))

function isObject({ surface, scope, objectId }: ObjectName): Sql {
  return sql`surface = ${surface} AND scope = ${scope} AND object_id = ${objectId} AND ${IS_OBJECT}`
}

function* findDeferred(name: ObjectName): Operation<DeferredObject | null> {
  const [row] = yield sql`SELECT * FROM hold WHERE ${isObject(name)}`
  return row === undefined ? null : deferredObject(row)
}

const claimDeferred = atomic(function* (
  surfaces: readonly Surface[],
  { max, perKeyMax, perAccountMax }: Readonly<Record<'max' | 'perKeyMax' | 'perAccountMax', number>>,
  atMs: number,
): Operation<readonly DeferredObject[]> {
  if (surfaces.length === 0) return []
  const isFree = sql`claimed_until_ms <= ${now(atMs)}`
  // Claimed objects sort first, because their polls count against the limits.
  const isClaimed = sql`CASE WHEN ${isFree} THEN 1 ELSE 0 END`
  const chosen = yield sql`
    SELECT id FROM (
      SELECT id, claimed_until_ms, turn, due_at_ms,
        row_number() OVER (PARTITION BY account_id ORDER BY ${isClaimed}, turn, due_at_ms) AS account_turn FROM (
        SELECT id, account_id, claimed_until_ms, due_at_ms,
          row_number() OVER (PARTITION BY key_id ORDER BY ${isClaimed}, due_at_ms) AS turn
        FROM hold WHERE due_at_ms <= ${now(atMs)} AND surface IN (${join(surfaces)})) due) o
    WHERE ${isFree} AND turn <= ${perKeyMax} AND account_turn <= ${perAccountMax}
    ORDER BY turn, due_at_ms LIMIT ${max}`
  if (chosen.length === 0) return []
  const ids = chosen.map((row) => text(row, 'id'))
  const claimed = yield sql`
    UPDATE hold SET claimed_until_ms = ${now(atMs)} + ${CLAIM_MS} WHERE id IN (${join(ids)}) AND ${isFree} RETURNING *`
  const objects = new Map(claimed.map((row) => [text(row, 'id'), deferredObject(row)]))
  return ids.flatMap((id) => objects.get(id) ?? [])
})

function* claimDeferredObject(name: ObjectName, atMs: number): Operation<boolean> {
  const rows = yield sql`
    UPDATE hold SET claimed_until_ms = ${now(atMs)} + ${CLAIM_MS}
    WHERE ${isObject(name)} AND claimed_until_ms <= ${now(atMs)} RETURNING id`
  return rows.length > 0
}

function* postponeDeferred(name: ObjectName, inMs: number, atMs: number): Operation<void> {
  yield sql`UPDATE hold SET due_at_ms = ${now(atMs)} + ${inMs}, claimed_until_ms = 0 WHERE ${isObject(name)}`
}

function* makeDeferredDue(surface: Surface, objectId: string, digest: Uint8Array): Operation<boolean> {
  const rows = yield sql`
    UPDATE hold SET due_at_ms = 0
    WHERE surface = ${surface} AND object_id = ${objectId} AND scope = ${scopeOf(surface, digest)} AND ${IS_OBJECT}
    RETURNING id`
  return rows.length > 0
}

/** Whether a DELETE of the object with this credential may have succeeded, or still runs. */
function* wasDeleted({ surface, scope, objectId }: ObjectName): Operation<boolean> {
  const isDelete = sql`object_id = ${objectId} AND surface = ${surface} AND method = 'DELETE'
    ${scope === '' ? sql`` : sql`AND account_id = ${scope}`}`
  const rows = yield sql`
    SELECT id FROM hold WHERE ${isDelete}
    UNION ALL SELECT id FROM call WHERE ${isDelete} AND state <> 'released'
      AND (status IS NULL OR status BETWEEN 200 AND 299) LIMIT 1`
  return rows.length > 0
}

function scopeOf(surface: Surface, digest: Uint8Array): Sql {
  return sql`(
    SELECT CASE WHEN ${raw(`${surface}_url`)} IS NULL THEN '' ELSE a.id END
    FROM account a JOIN api_key k ON k.account_id = a.id WHERE k.digest = ${digest})`
}

const mayBeBatchResults = atomic(function* (surface: Surface, fileId: string, digest: Uint8Array) {
  const isBatch = sql`surface = ${surface} AND scope = ${scopeOf(surface, digest)} AND kind = 'batch' AND ${IS_OBJECT}`
  const rows = yield sql`
    SELECT 1 FROM hold WHERE ${isBatch}
      AND NOT EXISTS (SELECT 1 FROM batch_file WHERE file_id = ${fileId}) LIMIT 1`
  if (rows.length === 0) return false
  yield sql`
    UPDATE hold SET due_at_ms = 0
    WHERE ${isBatch} AND key_id = (SELECT id FROM api_key WHERE digest = ${digest})`
  return true
})

/** Each child takes its cost from the batch's hold, until that is used up. So the sum of holds does not change. */
const openChildren = atomic(function* (children: readonly ChildCall[]) {
  for (const { requestId, parentId, model, rating, requests, costNanos, listNanos } of children) {
    const [opened] = yield sql`
      INSERT INTO hold (id, parent_id, requests, model_asked, rating, hold_nanos, bound_nanos, hold_list_nanos,
        account_hold_nanos, account_id, key_id, person_id, budget_id, started_at_ms, month, day, method, path, surface, price_version, client_ip,
        user_agent, session_id)
      SELECT ${requestId}, id, ${requests}, ${model}, ${rating}, ${leastOf('hold_nanos', costNanos)},
        ${leastOf('bound_nanos', costNanos)}, ${leastOf('hold_list_nanos', listNanos)}, ${leastOf('account_hold_nanos', costNanos)},
        account_id, key_id, person_id, budget_id, started_at_ms, month, day, method, path, surface, price_version, client_ip,
        user_agent, session_id
      FROM hold WHERE id = ${parentId} AND NOT EXISTS (SELECT 1 FROM call WHERE id = ${requestId}) ${FOR_UPDATE}
      ON CONFLICT DO NOTHING RETURNING hold_nanos, hold_list_nanos, account_hold_nanos`
    if (opened === undefined) continue
    yield sql`
      UPDATE hold SET hold_nanos = hold_nanos - ${nanos(opened, 'hold_nanos')},
        hold_list_nanos = hold_list_nanos - ${nanos(opened, 'hold_list_nanos')},
        account_hold_nanos = account_hold_nanos - ${nanos(opened, 'account_hold_nanos')},
        children = children + 1, children_nanos = children_nanos + ${costNanos} WHERE id = ${parentId}`
  }
})

function* listOpenChildren({ requestId }: Pick<CallRecord, 'requestId'>): Operation<readonly OpenChild[]> {
  const rows = yield sql`
    SELECT id AS request_id, hold_nanos, hold_list_nanos FROM hold WHERE parent_id = ${requestId} ORDER BY id`
  return rows.map(recordOf<OpenChild>)
}

function leastOf(column: string, limit: bigint): Sql {
  const held = raw(column)
  return byStore({ sqlite: sql`min(${held}, ${limit})`, postgres: sql`least(${held}, ${limit}::bigint)` })
}

/** A batch does not count as a request and is in no rollup, unless it is charged itself. */
function* countBatchAsRequest({ requestId }: Pick<CallRecord, 'requestId'>): Operation<void> {
  yield sql`UPDATE hold SET requests = 1 WHERE id = ${requestId}`
}

function* countDeferred(): Operation<number> {
  const [row] = yield sql`SELECT count(*) AS objects FROM hold WHERE ${IS_OBJECT}`
  return number(present(row), 'objects')
}

function deferredObject(row: Row): DeferredObject {
  return {
    surface: text(row, 'surface') as Surface,
    scope: text(row, 'scope'),
    objectId: text(row, 'object_id'),
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
    makeDeferredDue,
    mayBeBatchResults,
    openChildren,
    listOpenChildren,
    countBatchAsRequest,
  },
  reads: { countDeferred, wasDeleted },
}
