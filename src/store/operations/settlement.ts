import type { CallClosing, Settled } from '../../ledger/call.ts'
import { CLOSING_NAMES, columnOf, TOKEN_COLUMNS } from '../../ledger/call-columns.ts'
import { HOLD_NANOS_MAX } from '../../ledger/decide-admission.ts'
import { nanos, nanosOrNull, number, present, type Row, text, textOrNull } from '../rows.ts'
import type { BatchRows } from './batch-rows.ts'
import type { MoneyRows } from './money-rows.ts'
import { type Batch, step } from './operation.ts'
import { type Booking, ceilingsOf } from './settlement-events.ts'
import { type Filled, prepare, prepareInsert, prepareUpdate } from './sql.ts'

/** Settles the calls of a batch: each is closed once, and its cost is booked to the budget, the account and the day. */

const CLOSE_CALL = prepareUpdate(
  'call',
  [
    ...['state', 'ended_at_ms', 'overrun', 'lost_list_nanos', 'balance_nanos'],
    ...[...CLOSING_NAMES.map(columnOf), ...Object.values(TOKEN_COLUMNS)],
  ],
  ['id', 'state'],
)

const DAY = ['account_id', 'day', 'model', 'key_id']
const DAY_SUMS = [
  ...['requests', ...Object.values(TOKEN_COLUMNS)],
  ...['cost_nanos', 'list_nanos', 'unpriced_requests', 'estimated_requests'],
]

const ADD_TO_DAY = prepareInsert(
  'rollup',
  [...DAY, ...DAY_SUMS],
  `ON CONFLICT (${DAY.join(', ')})
   DO UPDATE SET ${DAY_SUMS.map((sum) => `${sum} = rollup.${sum} + excluded.${sum}`).join(', ')}`,
)

/** Applies the closings to `rows.money`. Null for a closing whose call does not exist. */
export function settleCalls(
  closings: readonly CallClosing[],
  { calls, money, nowMs }: BatchRows,
): {
  readonly settled: readonly (Settled | null)[]
  readonly bookings: readonly Booking[]
  readonly writes: readonly Filled[]
} {
  const booked = choose(closings, calls)
  const bookings = booked.map((closing) => book(closing, present(calls.get(closing.requestId)), money, nowMs))
  const balances = new Map(bookings.map((booking) => [booking.closing.requestId, balanceOf(booking)]))
  const settled = closings.map((closing): Settled | null => {
    const call = calls.get(closing.requestId)
    if (call === undefined) return null
    const balanceNanos = balances.get(closing.requestId) ?? nanosOrNull(call, 'balance_nanos')
    const { creditedNanos, chargedNanos } = money.account(text(call, 'account_id'))
    return { balanceNanos: balanceNanos ?? creditedNanos - chargedNanos, booked: booked.includes(closing) }
  })
  const closes = bookings.map((booking) => closeCall(booking, endOf(booking, nowMs)))
  return { settled, bookings, writes: [...addToDays(bookings), ...closes] }
}

/** The first closing of a call wins. `interrupted` counts only if there is no other. */
function choose(closings: readonly CallClosing[], calls: ReadonlyMap<string, Row>): readonly CallClosing[] {
  const chosen = new Map<string, CallClosing>()
  for (const closing of closings) {
    const state = calls.get(closing.requestId)?.['state']
    // An interrupted call whose cost becomes known is booked. Interrupting it again changes nothing.
    if (state !== 'in_flight' && (state !== 'interrupted' || closing.state === 'interrupted')) continue
    const before = chosen.get(closing.requestId)
    if (before === undefined || (before.state === 'interrupted' && closing.state !== 'interrupted'))
      chosen.set(closing.requestId, closing)
  }
  return [...chosen.values()]
}

function book(closing: CallClosing, call: Row, money: MoneyRows, nowMs: number | null): Booking {
  const [budgetId, accountId] = [text(call, 'budget_id'), text(call, 'account_id')]
  const account = money.account(accountId)
  // The hold of an interrupted call is already released.
  const isOpen = call['state'] === 'in_flight'
  money.move(budgetId, accountId, {
    ...{ month: text(call, 'month'), day: text(call, 'day'), costNanos: closing.costNanos },
    heldNanos: isOpen ? -nanos(call, 'hold_nanos') : 0n,
    accountHeldNanos: isOpen ? -nanos(call, 'account_hold_nanos') : 0n,
    lostNanos: lostOf(closing, call) - nanos(call, 'lost_list_nanos'),
  })
  const { creditedNanos, chargedNanos, heldNanos, creditEnforced } = account
  return {
    ...{ closing, call, budgetId, accountId, atMs: nowMs ?? closing.atMs },
    model: closing.modelServed ?? textOrNull(call, 'model_asked') ?? '',
    ceilings: ceilingsOf(call, budgetId, accountId, money),
    balance: { creditedNanos, chargedNanos, heldNanos, enforced: creditEnforced },
  }
}

const balanceOf = ({ balance }: Booking) => balance.creditedNanos - balance.chargedNanos

/** The operator's loss at list price: the whole hold of an interrupted call, or the rest of it if upstream broke off. */
function lostOf({ state, listNanos, losesRest }: CallClosing, call: Row): bigint {
  const holdNanos = nanos(call, 'hold_list_nanos')
  if (state === 'interrupted') return holdNanos
  return state === 'settled' && losesRest === true && listNanos < holdNanos ? holdNanos - listNanos : 0n
}

/** Nodes only estimate the database's clock, so clamp the end of a call between its start and now. */
function endOf({ closing, call }: Booking, nowMs: number | null): number {
  return Math.max(number(call, 'started_at_ms'), Math.min(closing.atMs, nowMs ?? closing.atMs))
}

function closeCall(booking: Booking, endedAtMs: number): Filled {
  const { closing, call } = booking
  const { input, output, cacheRead, cacheWrite } = closing.tokens
  return CLOSE_CALL(
    ...[closing.state, endedAtMs, isOverrun(closing, call), lostOf(closing, call), balanceOf(booking)],
    ...CLOSING_NAMES.map((name) => closing[name]),
    ...[input, output, cacheRead, cacheWrite],
    ...[closing.requestId, text(call, 'state')],
  )
}

function isOverrun({ costNanos }: CallClosing, call: Row): boolean {
  return nanos(call, 'hold_nanos') < costNanos
}

function addToDays(bookings: readonly Booking[]): readonly Filled[] {
  const days = new Map<string, { of: readonly string[]; sums: bigint[] }>()
  for (const { closing, call, accountId, model } of bookings) {
    const requests = BigInt(number(call, 'requests'))
    if (closing.state !== 'settled' || requests === 0n) continue
    const of = [accountId, text(call, 'day'), model, text(call, 'key_id')]
    const { tokens, costNanos, listNanos, unpriced, estimated } = closing
    const { input, output, cacheRead, cacheWrite } = tokens
    const added = [
      ...[requests, ...[input, output, cacheRead, cacheWrite].map(BigInt), costNanos, listNanos],
      ...[unpriced ? requests : 0n, estimated ? requests : 0n],
    ]
    const name = of.join('\0')
    const known = days.get(name)
    if (known === undefined) days.set(name, { of, sums: added })
    else known.sums = known.sums.map((sum, i) => sum + (added[i] ?? 0n))
  }
  const inOrder = [...days].sort(([a], [b]) => (a < b ? -1 : 1))
  return inOrder.map(([, { of, sums }]) => ADD_TO_DAY(...of, ...sums))
}

/** Floors of a budget in a month. Clients choose the names of models, so all further ones share one floor. */
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
  const over = bookings.filter(({ closing, call }) => isOverrun(closing, call) && call['endpoint'] !== null)
  if (over.length === 0) return
  const pairOf = ({ call }: Booking) => [text(call, 'endpoint'), textOrNull(call, 'model_asked') ?? '']
  const rows = yield step(
    over.map((booking) => READ_FLOORS(...pairOf(booking), booking.budgetId, text(booking.call, 'month'))),
  )
  const made = new Map<string, Set<string>>()
  yield step(
    over.map((booking, n) => {
      const { budgetId, call, closing } = booking
      const month = text(call, 'month')
      const found = present(rows[n]?.[0])
      const name = pairOf(booking).join('\0')
      const ofMonth = made.get(`${budgetId} ${month}`) ?? new Set()
      made.set(`${budgetId} ${month}`, ofMonth)
      const isKnown = number(found, 'own') > 0 || ofMonth.has(name)
      const hasOwn = isKnown || number(found, 'floors') + ofMonth.size < HOLD_FLOORS_MAX
      if (hasOwn && !isKnown) ofMonth.add(name)
      const pair = hasOwn ? pairOf(booking) : ['', '']
      return RAISE_FLOOR(budgetId, month, ...pair, atMost(closing.costNanos), atMost(closing.listNanos))
    }),
  )
  for (const { budgetId, call } of over) money.markFloors(budgetId, text(call, 'month'))
}

function atMost(nanos: bigint): bigint {
  return nanos < HOLD_NANOS_MAX ? nanos : HOLD_NANOS_MAX
}
