import { COMPARED_CALLS, cachedShareOf, LATEST_CALLS } from '../../ledger/cached-share.ts'
import type { UsedContainers } from '../../ledger/call.ts'
import { recordOf } from '../rows.ts'
import type { Operation } from './operation.ts'
import { FOR_DELETE, now, sql } from './sql.ts'
import { insertInto } from './write-rows.ts'

/** What a bill depends on besides the evidence. It is the same on every node, and after every restart. */

const CONTAINER_MS = 20 * 60_000

/** Rows per deletion, so that no bill waits for many. */
const FORGOTTEN_MAX = 100

/**
 * One fee pays for a container for 20 minutes. Returns how many of these the call pays for. Billing the same call again
 * gives the same answer.
 */
function* chargeContainers({ callId, scope, ids }: UsedContainers, atMs: number): Operation<number> {
  const paidAtMs = sql`${now(atMs)}`
  const rows = ids.toSorted().map((id) => ({ scope, id, callId, paidAtMs }))
  const paid = yield insertInto(
    'container_fee',
    rows,
    sql`
      ON CONFLICT (scope, id) DO UPDATE SET call_id = excluded.call_id, paid_at_ms = excluded.paid_at_ms
      WHERE container_fee.paid_at_ms <= excluded.paid_at_ms - ${CONTAINER_MS}
        OR container_fee.call_id = excluded.call_id
      RETURNING id`,
  )
  yield sql`
    DELETE FROM container_fee WHERE (scope, id) IN (
      SELECT scope, id FROM container_fee WHERE paid_at_ms <= ${now(atMs)} - ${CONTAINER_MS} LIMIT ${FORGOTTEN_MAX} ${FOR_DELETE})`
  return paid.length
}

/** The share of input that upstream read from its cache in the key's latest calls of a model, for estimates. */
function* readCachedShare(keyId: string, model: string): Operation<number> {
  const rows = yield sql`
    SELECT usage FROM (
      SELECT id, model_asked, state, estimated, output_tokens, usage FROM call WHERE key_id = ${keyId}
      ORDER BY id DESC LIMIT ${LATEST_CALLS}) AS latest
    WHERE model_asked = ${model} AND state = 'settled' AND NOT estimated AND output_tokens > 0 AND usage IS NOT NULL
    ORDER BY id DESC LIMIT ${COMPARED_CALLS}`
  return cachedShareOf(rows.map((row) => recordOf<{ readonly usage: string }>(row).usage))
}

export const BILL_FACTS = { brief: { chargeContainers, readCachedShare }, reads: {} }
