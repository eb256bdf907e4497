import { COMMAND_LINE } from '../../kernel/actor.ts'
import { type ChangedCall, CREDIT_BACK, creditOf, RERATE, type RerateCandidate } from '../../ledger/rerate.ts'
import { recordOf, text } from '../rows.ts'
import { creditCalls, PAID_NANOS } from './credits.ts'
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
const applyRerates = atomic(function* (changed: readonly ChangedCall[], atMs: number) {
  if (changed.length === 0) return { calls: 0, nanos: 0n }
  yield onPostgres(sql`
    SELECT 1 FROM call WHERE id IN (${join(changed.map(({ call }) => call.id))}) ORDER BY id ${FOR_UPDATE}`)
  const nowMs = yield* currentTime(atMs)
  const accountIds = [...new Set(changed.map(({ call }) => call.accountId))].sort()
  const creditIds = new Map(accountIds.map((accountId) => [accountId, `crd_${nextUlid(nowMs)}`]))
  const inserted = yield insertCreditCalls(changed, creditIds)
  const ids = new Set(inserted.map((row) => text(row, 'call_id')))
  const applied = changed.filter(({ call }) => ids.has(call.id))
  for (const [accountId, id] of creditIds) {
    const callCredits = applied
      .filter(({ call }) => call.accountId === accountId)
      .map((change) => ({ ...change.call, callId: change.call.id, amountNanos: creditOf(change) }))
    if (callCredits.length === 0) continue
    const reason = `${callCredits.length} calls priced again`
    yield* creditCalls({ id, accountId, kind: 'correction', reason, actor: COMMAND_LINE, atMs }, callCredits)
  }
  return { calls: applied.length, nanos: applied.reduce((sum, change) => sum + creditOf(change), 0n) }
})

/** The condition skips calls that were credited since they were read; the primary key prevents a second run. */
function insertCreditCalls(changed: readonly ChangedCall[], creditIds: ReadonlyMap<string, string>): Sql {
  const rows = changed.map((change) => {
    const { id, accountId, paidNanos } = change.call
    return sql`(${id}, ${RERATE + change.versionId}, ${creditIds.get(accountId) ?? ''}, ${creditOf(change)}, ${paidNanos})`
  })
  return sql`
    WITH change (call_id, once, credit_id, nanos, paid) AS (VALUES ${join(rows)})
    INSERT INTO credit_call (call_id, once, credit_id, amount_nanos)
    SELECT call_id, once, credit_id, nanos FROM change JOIN call ON call.id = change.call_id
    WHERE NOT credited AND ${PAID_NANOS} = paid
    ON CONFLICT DO NOTHING RETURNING call_id`
}

export const RERATES = { brief: { applyRerates }, reads: { readSettledCalls } }
