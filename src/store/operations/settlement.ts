import { limitHold } from '../../kernel/money.ts'
import type { Balance } from '../../ledger/account.ts'
import type { CallClosing, Settled } from '../../ledger/call.ts'
import { CLOSING_NAMES, columnOf, TOKEN_COLUMNS } from '../../ledger/call-columns.ts'
import { number, present } from '../rows.ts'
import type { BatchRows, CallRow } from './batch-rows.ts'
import type { MoneyRows } from './money-rows.ts'
import { type Batch, step } from './operation.ts'
import { type BulkStatement, prepare, prepareInserts, prepareUpdates } from './prepared.ts'
import { ceilingsOf, type Settlement } from './settlement-events.ts'
import type { BoundValue } from './sql.ts'

/** Settles the calls of a batch: closes each call once, and adds its cost to the budget, the account and the day. */

const CLOSING_COLUMNS = [
  ...['state', 'ended_at_ms', 'overrun', 'lost_list_nanos', 'balance_nanos'],
  ...[...CLOSING_NAMES.map(columnOf), ...Object.values(TOKEN_COLUMNS)],
]

const CLOSE_CALLS = prepareUpdates('call', CLOSING_COLUMNS, ['id', 'state'], { mustChange: true })

/** For cached calls. A call that was deferred since may have another hold than at its admission, so it is left out. */
const CLOSE_CACHED = prepareUpdates('call', CLOSING_COLUMNS, ['id', 'state'], {
  also: 'object_id IS NULL',
  mustChange: true,
})

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
export function settleCalls(closings: readonly CallClosing[], { calls, cache, money, nowMs }: BatchRows) {
  const byCall = new Map<string, Settlement>()
  for (const [id, closing] of closingsToApply(closings, calls))
    byCall.set(id, settleCall(closing, present(calls.get(id)), money, nowMs))
  const settled = closings.map((closing): Settled | null => {
    const call = calls.get(closing.requestId)
    if (call === undefined) return null
    const settlement = byCall.get(closing.requestId)
    if (settlement !== undefined)
      return { balanceNanos: balanceOf(settlement.balance), applied: settlement.closing === closing }
    return { balanceNanos: call.balanceNanos ?? balanceOf(money.account(call.accountId)), applied: false }
  })
  const settlements = [...byCall.values()]
  const [cached, read]: [BoundValue[][], BoundValue[][]] = [[], []]
  for (const settlement of settlements)
    (cache.openCalls.has(settlement.call.id) ? cached : read).push(closingValues(settlement, nowMs))
  const writes = [addToRollups(settlements), CLOSE_CACHED(cached), CLOSE_CALLS(read)]
  return { settled, settlements, writes }
}

/** The first closing of a call is applied, but `interrupted` only if no other closing has come. */
function closingsToApply(
  closings: readonly CallClosing[],
  calls: ReadonlyMap<string, CallRow>,
): ReadonlyMap<string, CallClosing> {
  const toApply = new Map<string, CallClosing>()
  for (const closing of closings) {
    const state = calls.get(closing.requestId)?.state
    // If the cost of an interrupted call becomes known, it is charged. Interrupting the call again changes nothing.
    if (state !== 'in_flight' && (state !== 'interrupted' || closing.state === 'interrupted')) continue
    const earlier = toApply.get(closing.requestId)
    if (earlier === undefined || (earlier.state === 'interrupted' && closing.state !== 'interrupted'))
      toApply.set(closing.requestId, closing)
  }
  return toApply
}

function settleCall(closing: CallClosing, call: CallRow, money: MoneyRows, nowMs: number | null): Settlement {
  const { budgetId, accountId, month, day } = call
  // The hold of an interrupted call is already released.
  const isOpen = call.state === 'in_flight'
  money.change(budgetId, accountId, {
    month,
    day,
    heldNanos: isOpen ? -call.holdNanos : 0n,
    accountHeldNanos: isOpen ? -call.accountHoldNanos : 0n,
    costNanos: closing.costNanos,
    lostNanos: lostOf(closing, call) - call.lostListNanos,
  })
  const { creditedNanos, chargedNanos, heldNanos, creditEnforced } = money.account(accountId)
  return {
    closing,
    call,
    atMs: nowMs ?? closing.atMs,
    model: closing.modelServed ?? call.modelAsked ?? '',
    ceilings: ceilingsOf(call, money),
    balance: { creditedNanos, chargedNanos, heldNanos, creditEnforced },
  }
}

function balanceOf({ creditedNanos, chargedNanos }: Pick<Balance, 'creditedNanos' | 'chargedNanos'>): bigint {
  return creditedNanos - chargedNanos
}

/** The whole hold of an interrupted call, or the rest of the hold if upstream broke the reply. */
function lostOf({ state, listNanos, losesRest }: CallClosing, { holdListNanos }: CallRow): bigint {
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
  const values: BoundValue[] = [
    closing.state,
    endedAtMs(settlement, nowMs),
    exceedsHold(closing, call),
    lostOf(closing, call),
  ]
  values.push(balanceOf(balance))
  for (const name of CLOSING_NAMES) values.push(closing[name])
  values.push(input, output, cacheRead, cacheWrite, call.id, call.state)
  return values
}

function exceedsHold({ costNanos }: CallClosing, { holdNanos }: CallRow): boolean {
  return holdNanos < costNanos
}

/** Adds the settled calls to the rows of `rollup`. All batches use the same order, so that they do not deadlock. */
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
    const name = key.join('\0')
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

/** Maximum floors per budget and month. Clients choose the names of models, so all further models share one floor. */
export const HOLD_FLOORS_MAX = 100

const READ_HOLD_FLOORS = prepare`
  SELECT count(*) AS floors, coalesce(max(CASE WHEN endpoint = ${'text'} AND model = ${'text'} THEN 1 ELSE 0 END), 0) AS own
  FROM hold_floor WHERE budget_id = ${'text'} AND month = ${'text'}`

const RAISE_HOLD_FLOOR = prepare`
  INSERT INTO hold_floor (budget_id, month, endpoint, model, nanos, list_nanos)
  VALUES (${'text'}, ${'text'}, ${'text'}, ${'text'}, ${'bigint'}, ${'bigint'})
  ON CONFLICT (budget_id, month, endpoint, model) DO UPDATE SET
    nanos = CASE WHEN excluded.nanos > hold_floor.nanos THEN excluded.nanos ELSE hold_floor.nanos END,
    list_nanos = CASE WHEN excluded.list_nanos > hold_floor.list_nanos THEN excluded.list_nanos
      ELSE hold_floor.list_nanos END`

export function* raiseHoldFloors(settlements: readonly Settlement[], money: MoneyRows): Batch<void> {
  const overruns = settlements.filter(
    ({ closing, call }) => exceedsHold(closing, call) && call.endpoint !== null,
  )
  if (overruns.length === 0) return
  const endpointAndModel = ({ call }: Settlement) => [call.endpoint ?? '', call.modelAsked ?? '']
  const rows = yield step(
    overruns.map((overrun) =>
      READ_HOLD_FLOORS([...endpointAndModel(overrun), overrun.call.budgetId, overrun.call.month]),
    ),
  )
  const added = new Map<string, Set<string>>()
  yield step(
    overruns.map((overrun, n) => {
      const { costNanos, listNanos } = overrun.closing
      const { budgetId, month } = overrun.call
      const existing = present(rows[n]?.[0])
      const name = endpointAndModel(overrun).join('\0')
      const addedInMonth = added.get(`${budgetId} ${month}`) ?? new Set()
      added.set(`${budgetId} ${month}`, addedInMonth)
      const isKnown = number(existing, 'own') > 0 || addedInMonth.has(name)
      const hasOwn = isKnown || number(existing, 'floors') + addedInMonth.size < HOLD_FLOORS_MAX
      if (hasOwn && !isKnown) addedInMonth.add(name)
      const pair = hasOwn ? endpointAndModel(overrun) : ['', '']
      return RAISE_HOLD_FLOOR([budgetId, month, ...pair, limitHold(costNanos), limitHold(listNanos)])
    }),
  )
  for (const { call } of overruns) money.markHoldFloors(call.budgetId, call.month)
}
