import type { Clock } from '../../kernel/clock.ts'
import { StoreRefused } from '../../kernel/errors.ts'
import type { CallClosing, CallRecord, Settled } from '../../ledger/call.ts'
import { CLOSING_COLUMNS } from '../../ledger/call-columns.ts'
import { callRecord, refusedRecord } from '../call-record.ts'
import type { StoreClock } from '../operations/sql.ts'
import { toKeptJson } from './any-text.ts'
import type { Outcome } from './batcher.ts'
import type { Database } from './database.ts'

export interface SettlementParts {
  readonly db: Database
  readonly clock: StoreClock
  /** The clock of this node: it tells how long ago a call ended, never when. */
  readonly nodeClock: Clock
}

type Answer = { readonly booked: boolean; readonly balanceNanos: string } | null

/** Settlement of a batch: the statement is a function of the database, see functions/settlement.ts. */
export async function settleCalls(
  parts: SettlementParts,
  closings: readonly CallClosing[],
): Promise<readonly Outcome<Settled>[]> {
  const { db, nodeClock } = parts
  const nowMs = nodeClock.nowMs()
  const json = toKeptJson(closings.map((closing, n) => ({ n, ...toJson(closing, parts.clock, nowMs) })))
  const [row] = await db.query('SELECT settle_calls($1::jsonb) AS answers', [json])
  const answers = (row?.['answers'] ?? []) as readonly Answer[]
  return closings.map(({ requestId }, n) => {
    const answer = answers[n]
    if (!answer) return { ok: false, error: new StoreRefused(`there is no call ${requestId} to settle`) }
    return { ok: true, value: { balanceNanos: BigInt(answer.balanceNanos), booked: answer.booked } }
  })
}

function toJson(closing: CallClosing, clock: StoreClock, nowMs: number) {
  const { requestId, state, atMs } = closing
  return {
    ...{ requestId, state },
    // The call ended as long ago by the database's clock as by this node's.
    ...(clock === 'caller' ? { atMs: Math.trunc(atMs) } : { agoMs: Math.max(0, Math.trunc(nowMs - atMs)) }),
    ...Object.fromEntries(CLOSING_COLUMNS.map(({ name, of }) => [name, jsonOf(of(closing))])),
  }
}

/** Amounts travel as text: as JSON numbers they would pass through doubles. */
function jsonOf(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  return typeof value === 'number' ? Math.trunc(value) : value
}

export async function getCall(db: Database, requestId: string): Promise<CallRecord | null> {
  const [row] = await db.query('SELECT * FROM call WHERE id = $1', [requestId])
  if (row !== undefined) return callRecord(row)
  const [refused] = await db.query('SELECT * FROM refused_call WHERE id = $1', [requestId])
  return refused === undefined ? null : refusedRecord(refused)
}
