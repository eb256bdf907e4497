import type { Balance } from '../../ledger/account.ts'
import type { CallClosing, Settled } from '../../ledger/call.ts'
import { CLOSING_NAMES, columnOf, TOKEN_COLUMNS } from '../../ledger/call-columns.ts'
import { HOLD_NANOS_MAX } from '../../ledger/decide-admission.ts'
import { number, present } from '../rows.ts'
import type { BatchRows, CallRow } from './batch-rows.ts'
import type { MoneyRows } from './money-rows.ts'
import { type Batch, step } from './operation.ts'
import { type ForEach, prepare, prepareInserts, prepareUpdates } from './prepared.ts'
import { type Booking, ceilingsOf } from './settlement-events.ts'
import type { BoundValue } from './sql.ts'

/** Settles the calls of a batch: closes each call once, and adds its cost to the budget, the account and the day. */

const CLOSED_COLUMNS = [
  ...['state', 'ended_at_ms', 'overrun', 'lost_list_nanos', 'balance_nanos'],
  ...[...CLOSING_NAMES.map(columnOf), ...Object.values(TOKEN_COLUMNS)],
]

const CLOSE_CALLS = prepareUpdates('call', CLOSED_COLUMNS, ['id', 'state'], { mustChange: true })

/** For calls that were not read again: a deferred call may have another hold than it had at its admission. */
const CLOSE_REMEMBERED = prepareUpdates('call', CLOSED_COLUMNS, ['id', 'state'], {
  also: 'object_id IS NULL',
  mustChange: true,
})

const DAY = ['account_id', 'day', 'model', 'key_id']
const DAY_COUNTS = ['requests', 'unpriced_requests', 'estimated_requests', ...Object.values(TOKEN_COLUMNS)]
const DAY_SUMS = [...DAY_COUNTS, 'cost_nanos', 'list_nanos']

const ADD_TO_DAYS = prepareInserts(
  'rollup',
  [...DAY, ...DAY_SUMS],
  `ON CONFLICT (${DAY.join(', ')})
   DO UPDATE SET ${DAY_SUMS.map((sum) => `${sum} = rollup.${sum} + excluded.${sum}`).join(', ')}`,
)

/** Applies the closings to `money`. In `settled`, null stands for a closing whose call does not exist. */
export function settleCalls(
  closings: readonly CallClosing[],
  { calls, memory, money, nowMs }: BatchRows,
): {
  readonly settled: readonly (Settled | null)[]
  readonly bookings: readonly Booking[]
  readonly writes: readonly ForEach[]
} {
  const booked = new Map<string, Booking>()
  for (const [id, closing] of choose(closings, calls))
    booked.set(id, book(closing, present(calls.get(id)), money, nowMs))
  const settled = closings.map((closing): Settled | null => {
    const call = calls.get(closing.requestId)
    if (call === undefined) return null
    const booking = booked.get(closing.requestId)
    if (booking !== undefined)
      return { balanceNanos: balanceOf(booking.balance), booked: booking.closing === closing }
    return { balanceNanos: call.balanceNanos ?? balanceOf(money.account(call.accountId)), booked: false }
  })
  const bookings = [...booked.values()]
  const [remembered, read]: [BoundValue[][], BoundValue[][]] = [[], []]
  for (const booking of bookings)
    (memory.openCalls.has(booking.call.id) ? remembered : read).push(closedRow(booking, nowMs))
  const writes = [addToDays(bookings), CLOSE_REMEMBERED(remembered), CLOSE_CALLS(read)]
  return { settled, bookings, writes }
}

/** The first closing of a call wins. `interrupted` counts only if there is no other. */
function choose(
  closings: readonly CallClosing[],
  calls: ReadonlyMap<string, CallRow>,
): ReadonlyMap<string, CallClosing> {
  const chosen = new Map<string, CallClosing>()
  for (const closing of closings) {
    const state = calls.get(closing.requestId)?.state
    // If the cost of an interrupted call becomes known, it is charged. Interrupting the call again changes nothing.
    if (state !== 'in_flight' && (state !== 'interrupted' || closing.state === 'interrupted')) continue
    const before = chosen.get(closing.requestId)
    if (before === undefined || (before.state === 'interrupted' && closing.state !== 'interrupted'))
      chosen.set(closing.requestId, closing)
  }
  return chosen
}

function book(closing: CallClosing, call: CallRow, money: MoneyRows, nowMs: number | null): Booking {
  const { budgetId, accountId, month, day } = call
  // The hold of an interrupted call is already released.
  const isOpen = call.state === 'in_flight'
  money.move(budgetId, accountId, {
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

/** Nodes only estimate the database's clock, so clamp the end of a call between its start and now. */
function endOf({ closing, call }: Booking, nowMs: number | null): number {
  return Math.max(call.startedAtMs, Math.min(closing.atMs, nowMs ?? closing.atMs))
}

function closedRow(booking: Booking, nowMs: number | null): BoundValue[] {
  const { closing, call, balance } = booking
  const { input, output, cacheRead, cacheWrite } = closing.tokens
  const values: BoundValue[] = [
    closing.state,
    endOf(booking, nowMs),
    isOverrun(closing, call),
    lostOf(closing, call),
  ]
  values.push(balanceOf(balance))
  for (const name of CLOSING_NAMES) values.push(closing[name])
  values.push(input, output, cacheRead, cacheWrite, call.id, call.state)
  return values
}

function isOverrun({ costNanos }: CallClosing, { holdNanos }: CallRow): boolean {
  return holdNanos < costNanos
}

/** Adds the settled calls to the rows of `rollup`, in one order in all batches. */
function addToDays(bookings: readonly Booking[]): ForEach {
  /** `counts` are in the order of DAY_COUNTS. */
  const days = new Map<string, { of: string[]; counts: number[]; costNanos: bigint; listNanos: bigint }>()
  for (const { closing, call, model } of bookings) {
    const { accountId, day, keyId, requests } = call
    const { tokens, costNanos, listNanos } = closing
    if (closing.state !== 'settled' || requests === 0) continue
    const of = [accountId, day, model, keyId]
    const counts = [requests, closing.unpriced ? requests : 0, closing.estimated ? requests : 0]
    counts.push(tokens.input, tokens.output, tokens.cacheRead, tokens.cacheWrite)
    const name = of.join('\0')
    const sums = days.get(name)
    if (sums === undefined) {
      days.set(name, { of, counts, costNanos, listNanos })
      continue
    }
    for (const [i, count] of counts.entries()) sums.counts[i] = (sums.counts[i] ?? 0) + count
    sums.costNanos += costNanos
    sums.listNanos += listNanos
  }
  const inOrder = [...days].sort(([a], [b]) => (a < b ? -1 : 1))
  return ADD_TO_DAYS(
    inOrder.map(([, { of, counts, costNanos, listNanos }]) => [...of, ...counts, costNanos, listNanos]),
  )
}

/** Per budget and month. Clients choose the names of models, so all further models share one floor. */
export const HOLD_FLOORS_MAX = 100

const READ_FLOORS = prepare`
  SELECT count(*) AS floors, coalesce(max(CASE WHEN endpoint = ${'text'} AND model = ${'text'} THEN 1 ELSE 0 END), 0) AS own
  FROM hold_floor WHERE budget_id = ${'text'} AND month = ${'text'}`

const RAISE_FLOOR = prepare`
  INSERT INTO hold_floor (budget_id, month, endpoint, model, nanos, list_nanos)
  VALUES (${'text'}, ${'text'}, ${'text'}, ${'text'}, ${'bigint'}, ${'bigint'})
  ON CONFLICT (budget_id, month, endpoint, model) DO UPDATE SET
    nanos = CASE WHEN excluded.nanos > hold_floor.nanos THEN excluded.nanos ELSE hold_floor.nanos END,
    list_nanos = CASE WHEN excluded.list_nanos > hold_floor.list_nanos THEN excluded.list_nanos
      ELSE hold_floor.list_nanos END`

/** Raises the hold floors of calls that cost more than their hold. */
export function* raiseFloors(bookings: readonly Booking[], money: MoneyRows): Batch<void> {
  const over = bookings.filter(({ closing, call }) => isOverrun(closing, call) && call.endpoint !== null)
  if (over.length === 0) return
  const pairOf = ({ call }: Booking) => [call.endpoint ?? '', call.modelAsked ?? '']
  const rows = yield step(
    over.map((booking) => READ_FLOORS([...pairOf(booking), booking.call.budgetId, booking.call.month])),
  )
  const made = new Map<string, Set<string>>()
  yield step(
    over.map((booking, n) => {
      const { closing } = booking
      const { budgetId, month } = booking.call
      const found = present(rows[n]?.[0])
      const name = pairOf(booking).join('\0')
      const ofMonth = made.get(`${budgetId} ${month}`) ?? new Set()
      made.set(`${budgetId} ${month}`, ofMonth)
      const isKnown = number(found, 'own') > 0 || ofMonth.has(name)
      const hasOwn = isKnown || number(found, 'floors') + ofMonth.size < HOLD_FLOORS_MAX
      if (hasOwn && !isKnown) ofMonth.add(name)
      const pair = hasOwn ? pairOf(booking) : ['', '']
      return RAISE_FLOOR([budgetId, month, ...pair, atMost(closing.costNanos), atMost(closing.listNanos)])
    }),
  )
  for (const { call } of over) money.markFloors(call.budgetId, call.month)
}

function atMost(nanos: bigint): bigint {
  return nanos < HOLD_NANOS_MAX ? nanos : HOLD_NANOS_MAX
}
