import type { Balance } from '../../ledger/account.ts'
import type { CallClosing, Settled } from '../../ledger/call.ts'
import { CLOSING_NAMES, columnOf, TOKEN_COLUMNS } from '../../ledger/call-columns.ts'
import { snakeCase } from '../columns.ts'
import { compileList } from '../compile-literal.ts'
import { present } from '../rows.ts'
import { type BatchRows, type ClosedCall, type HoldRow, TAKEN_OVER } from './batch-rows.ts'
import { isLimited } from './money-rows.ts'
import { type BulkStatement, prepareInserts, prepareUpdates } from './prepared.ts'
import { ceilingsOf, type SettledCall, type Settlement } from './settlement-events.ts'
import type { BoundValue } from './sql.ts'

/** Settles the calls of a batch: closes each call once, and adds its cost to the budget, the account and the day. */

const CLOSING_COLUMNS = [
  ...['state', 'ended_at_ms', 'overrun', 'lost_list_nanos', 'balance_nanos'],
  ...[...CLOSING_NAMES.map(columnOf), ...Object.values(TOKEN_COLUMNS)],
]

/** What a hold knows of an object, and what a batch adds up. */
const OBJECT_NAMES = ['objectId', 'children', 'childrenNanos', 'requests'] as const

const INSERT_CALLS = prepareInserts('call', [...CLOSING_COLUMNS, ...TAKEN_OVER.map(snakeCase)])

/** The one change of a closed call: the cost of an interrupted call has become known. */
const SETTLE_LATE = prepareUpdates('call', [...CLOSING_COLUMNS, ...OBJECT_NAMES.map(snakeCase)], ['id'])

const takenOver = compileList(TAKEN_OVER)
const closingColumns = compileList(CLOSING_NAMES)

const ROLLUP_KEY = ['account_id', 'day', 'model', 'key_id']
const ROLLUP_COUNTS = ['requests', 'unpriced_requests', 'estimated_requests', ...Object.values(TOKEN_COLUMNS)]
const ROLLUP_SUMS = [...ROLLUP_COUNTS, 'cost_nanos', 'list_nanos']

const ADD_TO_ROLLUPS = prepareInserts(
  'rollup',
  [...ROLLUP_KEY, ...ROLLUP_SUMS],
  `ON CONFLICT (${ROLLUP_KEY.join(', ')})
   DO UPDATE SET ${ROLLUP_SUMS.map((sum) => `${sum} = rollup.${sum} + excluded.${sum}`).join(', ')}`,
)

/** Applies the closings to `money`. In `settled`, null stands for a closing whose call does not exist. */
export function settleCalls(closings: readonly CallClosing[], rows: BatchRows) {
  const { holds, closed, nowMs } = rows
  const settlements: Settlement[] = []
  const bySettled = new Map<string, Settlement>()
  const [inserted, late]: [BoundValue[][], BoundValue[][]] = [[], []]
  for (const [id, closing] of closingsToApply(closings, rows)) {
    const hold = holds.get(id)
    const before = closed.get(id)
    const isLate = before !== undefined
    const call = before ?? present(hold)
    const settlement = settleCall(closing, call, before?.lostListNanos ?? 0n, rows)
    bySettled.set(id, settlement)
    // A socket on which upstream began no turn leaves no record.
    if (hold?.state === 'standing' && closing.state === 'released') continue
    settlements.push(settlement)
    const values = closingValues(settlement, nowMs)
    if (isLate) late.push([...values, ...OBJECT_NAMES.map((name) => (hold ?? before)[name]), id])
    else inserted.push([...values, ...takenOver<BoundValue>(present(hold))])
  }
  const settled = closings.map((closing): Settled | null => {
    const { requestId } = closing
    const settlement = bySettled.get(requestId)
    if (settlement !== undefined)
      return { balanceNanos: balanceOf(settlement.balance), applied: settlement.closing === closing }
    const call = closed.get(requestId)
    return call === undefined ? null : { balanceNanos: call.balanceNanos, applied: false }
  })
  return {
    settled,
    settlements,
    writes: [addToRollups(settlements), INSERT_CALLS(inserted), SETTLE_LATE(late)],
  }
}

/** The first closing of a call is applied, but `interrupted` only if no other closing has come. */
function closingsToApply(
  closings: readonly CallClosing[],
  { holds, closed }: BatchRows,
): ReadonlyMap<string, CallClosing> {
  const toApply = new Map<string, CallClosing>()
  for (const closing of closings) {
    const { requestId } = closing
    const before = closed.get(requestId)
    // If the cost of an interrupted call becomes known, it is charged. Interrupting the call again changes nothing.
    if (before === undefined ? !holds.has(requestId) : before.state !== 'interrupted') continue
    if (before !== undefined && closing.state === 'interrupted') continue
    const earlier = toApply.get(requestId)
    if (earlier === undefined || (earlier.state === 'interrupted' && closing.state !== 'interrupted'))
      toApply.set(requestId, closing)
  }
  return toApply
}

/** `call`: the open hold, or the call whose hold was released when it was interrupted. */
function settleCall(
  closing: CallClosing,
  call: HoldRow | ClosedCall,
  lostBeforeNanos: bigint,
  { money, nowMs }: BatchRows,
): Settlement {
  const { accountId, month, day } = call
  const { accountHoldNanos, shortNanos, boundNanos } = 'boundNanos' in call ? call : NO_HOLD
  const { costNanos } = closing
  money.change(call, {
    month,
    day,
    heldNanos: 'boundNanos' in call ? -call.holdNanos : 0n,
    accountHeldNanos: -accountHoldNanos,
    shortNanos: -shortNanos,
    costNanos,
    lostNanos: lostOf(closing, call) - lostBeforeNanos,
  })
  if (boundNanos > 0n && exceedsHold(closing, call))
    money.raiseOverrun(call.budgetId, month, costNanos - boundNanos)
  const account = money.account(accountId)
  const { creditedNanos, chargedNanos, heldNanos, creditEnforced } = account
  return {
    closing,
    call,
    atMs: nowMs ?? closing.atMs,
    model: closing.modelServed ?? call.modelAsked ?? '',
    ceilings: ceilingsOf(call, money),
    balance: { creditedNanos, chargedNanos, heldNanos, creditEnforced },
    isLimited: isLimited(account),
  }
}

const NO_HOLD = { accountHoldNanos: 0n, shortNanos: 0n, boundNanos: 0n }

function balanceOf({ creditedNanos, chargedNanos }: Pick<Balance, 'creditedNanos' | 'chargedNanos'>): bigint {
  return creditedNanos - chargedNanos
}

/** The whole hold of an interrupted call, or the rest of the hold if upstream broke the reply. */
function lostOf({ state, listNanos, losesRest }: CallClosing, { holdListNanos }: SettledCall): bigint {
  if (state === 'interrupted') return holdListNanos
  return state === 'settled' && losesRest === true && listNanos < holdListNanos
    ? holdListNanos - listNanos
    : 0n
}

/** Nodes only estimate the database's clock, so the end of a call is clamped between its start and now. */
function endedAtMs({ closing, call }: Settlement, nowMs: number | null): number {
  return Math.max(call.startedAtMs, Math.min(closing.atMs, nowMs ?? closing.atMs))
}

function closingValues(settlement: Settlement, nowMs: number | null): BoundValue[] {
  const { closing, call, balance } = settlement
  const { input, output, cacheRead, cacheWrite } = closing.tokens
  return [
    ...[closing.state, endedAtMs(settlement, nowMs), exceedsHold(closing, call), lostOf(closing, call)],
    ...[balanceOf(balance), ...closingColumns<BoundValue>(closing)],
    ...[input, output, cacheRead, cacheWrite],
  ]
}

function exceedsHold({ costNanos }: CallClosing, { holdNanos }: SettledCall): boolean {
  return holdNanos < costNanos
}

/** Whoever changes rollups does so in the order of these texts. */
export function rollupOrder(
  ...key: readonly [accountId: string, day: string, model: string, keyId: string]
): string {
  return key.join('\0')
}

/** Adds the settled calls to the rows of `rollup`. All use the same order, so that they do not deadlock. */
function addToRollups(settlements: readonly Settlement[]): BulkStatement {
  /** `counts` are in the order of ROLLUP_COUNTS. */
  const rollups = new Map<string, { key: string[]; counts: number[]; costNanos: bigint; listNanos: bigint }>()
  for (const { closing, call, model } of settlements) {
    const { accountId, day, keyId, requests } = call
    const { tokens, costNanos, listNanos } = closing
    if (closing.state !== 'settled' || requests === 0) continue
    const key = [accountId, day, model, keyId]
    const counts = [requests, closing.unpriced ? requests : 0, closing.estimated ? requests : 0]
    counts.push(tokens.input, tokens.output, tokens.cacheRead, tokens.cacheWrite)
    const name = rollupOrder(accountId, day, model, keyId)
    const sums = rollups.get(name)
    if (sums === undefined) {
      rollups.set(name, { key, counts, costNanos, listNanos })
      continue
    }
    for (const [i, count] of counts.entries()) sums.counts[i] = (sums.counts[i] ?? 0) + count
    sums.costNanos += costNanos
    sums.listNanos += listNanos
  }
  const inOrder = [...rollups].sort(([a], [b]) => (a < b ? -1 : 1))
  return ADD_TO_ROLLUPS(
    inOrder.map(([, { key, counts, costNanos, listNanos }]) => [...key, ...counts, costNanos, listNanos]),
  )
}
