import type { Clock } from '../../kernel/clock.ts'
import { StoreRefused } from '../../kernel/errors.ts'
import { requestInstantMs } from '../../kernel/ids.ts'
import { monthOf } from '../../ledger/calendar.ts'
import type { CallClosing, CallRecord, Settled } from '../../ledger/call.ts'
import { CLOSING_COLUMNS } from '../../ledger/call-columns.ts'
import { callRecord, refusedRecord } from '../call-record.ts'
import type { StoreClock } from '../operations/sql.ts'
import { toKeptJson } from './any-text.ts'
import type { Outcome } from './batcher.ts'
import { type Database, sqlState } from './database.ts'

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
  // The youngest call tells best which month they are in: calls that end together have mostly begun together.
  const youngest = closings.map(({ requestId }) => requestId).reduce((a, b) => (a > b ? a : b))
  const month = monthOf(requestInstantMs(youngest) ?? nowMs)
  const [row] = await db.query('SELECT settle_calls($1, $2::jsonb) AS answers', [month, json])
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
  const instantMs = requestInstantMs(requestId)
  if (instantMs !== null) {
    // A clock that is off by less than a day puts the call into one of two months, and no other month is searched.
    const near = [instantMs - DAY_MS, instantMs + DAY_MS].map(monthOf)
    const [row] = await db.query('SELECT * FROM call WHERE id = $1 AND month IN ($2, $3)', [
      requestId,
      ...near,
    ])
    if (row !== undefined) return callRecord(row)
  }
  const [row] = await db.query('SELECT * FROM call WHERE id = $1', [requestId])
  if (row !== undefined) return callRecord(row)
  const [refused] = await db.query('SELECT * FROM refused_call WHERE id = $1', [requestId])
  return refused === undefined ? null : refusedRecord(refused)
}

const DAY_MS = 86_400_000

/** This month and the two after it are made ahead of time. */
const MONTHS_AHEAD = 3

/** The error of an insert into a month that is not there; the constraint is the table's own, and has no name. */
const CHECK_VIOLATION = '23514'

/** Calls are kept by the month of their admission, and a month has to be made before it has its first call. */
export interface CallMonths {
  /** Makes the present month by the database's clock and those after it. */
  makeAhead(): Promise<void>
  /** Makes the month of this instant, for callers that bring their own time. */
  have(atMs: number): Promise<void>
  /** Does the work; if its month was not there, makes the months and does the work once more. */
  makingThem<T>(work: () => Promise<T>): Promise<T>
}

export function createCallMonths(db: Database): CallMonths {
  const made = new Set<string>()

  async function makeAhead(): Promise<void> {
    await db.query('SELECT make_call_months(NULL, $1)', [MONTHS_AHEAD])
  }

  return {
    makeAhead,

    async have(atMs) {
      const month = monthOf(atMs)
      if (made.has(month)) return
      await db.query('SELECT make_call_months($1, 1)', [Math.trunc(atMs)])
      made.add(month)
    },

    async makingThem(work) {
      try {
        return await work()
      } catch (error) {
        if (sqlState(error) !== CHECK_VIOLATION) throw error
        await makeAhead()
        return await work()
      }
    },
  }
}
