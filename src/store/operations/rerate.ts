import { COMMAND_LINE } from '../../kernel/vocabulary.ts'
import { type ChangedCall, CREDIT_BACK, creditOf, RERATE, type RerateCandidate } from '../../ledger/rerate.ts'
import { recordOf, text } from '../rows.ts'
import { bookForCalls, PAID_NANOS } from './credits.ts'
import { nextUlid } from './events.ts'
import { atomic, currentTime, type Operation } from './operation.ts'
import { FOR_UPDATE, join, onPostgres, type Sql, sql } from './sql.ts'

const BATCH_CALLS = 2_000

/** The settled calls after an id, ordered by id. An empty id starts at the beginning. */
function* readSettledCalls(afterId: string): Operation<readonly RerateCandidate[]> {
  const rows = yield sql`
    SELECT id, account_id, key_id, day, coalesce(model_served, model_asked, '') AS model, model_asked, started_at_ms,
      unpriced, usage, rating, ${PAID_NANOS} AS paid_nanos, credited,
      (SELECT string_agg(once, ${'\n'}) FROM credit_call WHERE call_id = call.id AND once <> ${CREDIT_BACK}) AS rerates
    FROM call WHERE id > ${afterId} AND state = 'settled' ORDER BY id LIMIT ${BATCH_CALLS}`
  return rows.map(recordOf<RerateCandidate>)
}

/** Skips calls that got these prices before, or that have changed since. The record of the call stays as billed. */
const bookRerates = atomic(function* (changed: readonly ChangedCall[], atMs: number) {
  if (changed.length === 0) return { calls: 0, nanos: 0n }
  yield onPostgres(sql`
    SELECT 1 FROM call WHERE id IN (${join(changed.map(({ call }) => call.id))}) ORDER BY id ${FOR_UPDATE}`)
  const nowMs = yield* currentTime(atMs)
  const accountIds = [...new Set(changed.map(({ call }) => call.accountId))].sort()
  const creditIds = new Map(accountIds.map((accountId) => [accountId, `crd_${nextUlid(nowMs)}`]))
  const inserted = yield insertCalls(changed, creditIds)
  const ids = new Set(inserted.map((row) => text(row, 'call_id')))
  const booked = changed.filter(({ call }) => ids.has(call.id))
  for (const [accountId, id] of creditIds) {
    const parts = booked
      .filter(({ call }) => call.accountId === accountId)
      .map((one) => ({ ...one.call, callId: one.call.id, amountNanos: creditOf(one) }))
    if (parts.length === 0) continue
    const reason = `${parts.length} calls priced again`
    yield* bookForCalls({ id, accountId, kind: 'correction', reason, actor: COMMAND_LINE, atMs }, parts)
  }
  return { calls: booked.length, nanos: booked.reduce((sum, one) => sum + creditOf(one), 0n) }
})

/** The condition skips calls that were credited since they were read; the primary key prevents a second run. */
function insertCalls(changed: readonly ChangedCall[], creditIds: ReadonlyMap<string, string>): Sql {
  const rows = changed.map((one) => {
    const { id, accountId, paidNanos } = one.call
    return sql`(${id}, ${RERATE + one.versionId}, ${creditIds.get(accountId) ?? ''}, ${creditOf(one)}, ${paidNanos})`
  })
  return sql`
    WITH one (call_id, once, credit_id, nanos, paid) AS (VALUES ${join(rows)})
    INSERT INTO credit_call (call_id, once, credit_id, amount_nanos)
    SELECT call_id, once, credit_id, nanos FROM one JOIN call ON call.id = one.call_id
    WHERE NOT credited AND ${PAID_NANOS} = paid
    ON CONFLICT DO NOTHING RETURNING call_id`
}

export const RERATES = { brief: { bookRerates }, reads: { readSettledCalls } }
