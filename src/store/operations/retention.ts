import { firstUlid } from '../../kernel/ids.ts'
import { TOKEN_COLUMNS } from '../../ledger/call-columns.ts'
import type { RemoveCalls, RemovedCalls } from '../../ledger/request-log.ts'
import { present, text } from '../rows.ts'
import { takeLease } from './lease.ts'
import { atomic, type Operation } from './operation.ts'
import { FOR_DELETE, join, raw, type Sql, sql } from './sql.ts'

/** Removes the calls of old months in portions. Their sums, and what was credited for them, stay. */

const LEASE = 'removes_calls'

const KEY = 'account_id, day, model, key_id'
const SETTLED_SUMS = ['requests', ...Object.values(TOKEN_COLUMNS), 'cost_nanos', 'list_nanos']
const SUMS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(SETTLED_SUMS.map((name) => [name, name])),
  unpriced_requests: 'CASE WHEN unpriced THEN requests ELSE 0 END',
  estimated_requests: 'CASE WHEN estimated THEN requests ELSE 0 END',
}
const NAMES = [...Object.keys(SUMS), 'lost_list_nanos', 'credited_nanos']

/** As the rollups count: settled calls, without batches whose lines are counted. */
const SELECT_SUMS = Object.values(SUMS).map(
  (value) => `coalesce(sum(CASE WHEN state = 'settled' AND requests > 0 THEN ${value} ELSE 0 END), 0)`,
)

const CREDITED = '(SELECT coalesce(sum(amount_nanos), 0) FROM credit_call WHERE call_id = call.id)'

const removeCalls = atomic(function* ({
  beforeMs,
  after,
  limit,
  node,
  atMs,
}: RemoveCalls): Operation<RemovedCalls> {
  if (!(yield* takeLease(LEASE, node, atMs))) return { kind: 'other_node' }
  const month = new Date(beforeMs).toISOString().slice(0, 7)
  // An id is older than its call: a body may be slow, or the call waits. A call with a younger id is removed later.
  const rows = yield sql`
    SELECT id, month, state FROM call WHERE id > ${after} AND id < ${`req_${firstUlid(beforeMs)}`}
    ORDER BY id LIMIT ${limit} ${FOR_DELETE}`
  const ids = rows
    .filter((row) => text(row, 'state') !== 'interrupted' && text(row, 'month') < month)
    .map((row) => text(row, 'id'))
  if (ids.length > 0) yield* remove(sql`IN (${join(ids)})`)
  return {
    kind: 'removed',
    calls: ids.length,
    next: rows.length < limit ? null : text(present(rows.at(-1)), 'id'),
  }
})

function* remove(chosen: Sql): Operation<void> {
  yield sql`
    INSERT INTO removed_total (${raw([KEY, ...NAMES].join(', '))})
    SELECT account_id, day, coalesce(model_served, model_asked, ''), key_id,
      ${raw([...SELECT_SUMS, 'sum(lost_list_nanos)', `sum(${CREDITED})`].join(', '))}
    FROM call WHERE id ${chosen} GROUP BY 1, 2, 3, 4
    ON CONFLICT (${raw(KEY)}) DO UPDATE
    SET ${raw(NAMES.map((name) => `${name} = removed_total.${name} + excluded.${name}`).join(', '))}`
  yield sql`
    UPDATE credit SET removed_nanos = removed_nanos + moved.nanos FROM (
      SELECT credit_id, CAST(sum(amount_nanos) AS bigint) AS nanos FROM credit_call
      WHERE call_id ${chosen} GROUP BY credit_id) AS moved
    WHERE credit.id = moved.credit_id`
  yield sql`
    UPDATE api_key SET last_used_at_ms = last.at_ms FROM (
      SELECT key_id, max(started_at_ms) AS at_ms FROM call WHERE id ${chosen} GROUP BY key_id) AS last
    WHERE api_key.id = last.key_id AND coalesce(last_used_at_ms, 0) < last.at_ms`
  yield sql`DELETE FROM credit_call WHERE call_id ${chosen}`
  yield sql`DELETE FROM call WHERE id ${chosen}`
}

/** Records of uploaded files. Returns the number of deleted rows. */
function* pruneFiles(beforeMs: number, limit: number): Operation<number> {
  const deleted = yield sql`
    DELETE FROM batch_file WHERE (account_id, file_id) IN (
      SELECT account_id, file_id FROM batch_file WHERE at_ms < ${beforeMs} ORDER BY at_ms LIMIT ${limit} ${FOR_DELETE})
    RETURNING 1 AS deleted`
  return deleted.length
}

export const RETENTION = { brief: { removeCalls, pruneFiles }, reads: {} }
