import { createHash } from 'node:crypto'
import { accountObject, balanceObject, eventKey } from '../../api/objects.ts'
import { limits } from '../../kernel/limits.ts'
import type { Balance } from '../../ledger/account.ts'
import type { Budget, CallClosing } from '../../ledger/call.ts'
import { number, present } from '../rows.ts'
import { getAccount } from './accounts.ts'
import type { CallRow } from './batch-rows.ts'
import { balanceEvents, crossedPercents, type EventSettings, recordCrossing } from './budget-events.ts'
import { recordEvent } from './events.ts'
import { getKey } from './keys.ts'
import { accountCeilings, keyCeilings, type MoneyRows } from './money-rows.ts'
import type { Operation } from './operation.ts'
import { sql } from './sql.ts'

/** Records the events of settlements. Budgets and accounts are locked, so the sums before and after are exact. */

export interface Booking {
  readonly closing: CallClosing
  readonly call: CallRow
  readonly model: string
  /** The time by the database's clock, or the closing's own time if the store has no clock. */
  readonly atMs: number
  readonly ceilings: readonly Budget[]
  readonly balance: Balance
}

/** The budgets of the call's month and day, including its cost, unless the period is over. */
export function ceilingsOf(
  { budgetId, accountId, month, day }: CallRow,
  money: MoneyRows,
): readonly Budget[] {
  const budget = money.budget(budgetId)
  const account = money.account(accountId)
  const ceilings = keyCeilings(budget, day).filter(({ period }) =>
    period === 'month' ? budget.month === month : budget.day === day,
  )
  return account.month === month ? ceilings.concat(accountCeilings(account, day)) : ceilings
}

/** The operations that record the events of these settlements, in order. Nearly always there are none. */
export function settlementEvents(
  bookings: readonly Booking[],
  { percents, balanceLowNanos }: EventSettings,
): readonly (() => Operation<void>)[] {
  const events: (() => Operation<void>)[] = []
  for (const booking of bookings)
    if (booking.closing.costNanos > 0n)
      events.push(...crossings(booking, percents), ...balanceCrossings(booking, balanceLowNanos))
  for (const booking of firstUnpriced(bookings)) events.push(() => recordUnpriced(booking))
  return events
}

function crossings(booking: Booking, thresholds: readonly number[]): readonly (() => Operation<void>)[] {
  const { ceilings, closing, atMs } = booking
  const { accountId, budgetId } = booking.call
  return ceilings.flatMap((ceiling) =>
    crossedPercents(ceiling, closing.costNanos, thresholds).map(
      (percent) =>
        function* () {
          const { actor, key } = yield* callerOf(booking)
          const isKey = ceiling.scope === 'key'
          const subject = isKey ? { key } : { account: yield* accountOf(accountId, atMs) }
          const of = { accountId, budgetId: isKey ? budgetId : accountId, actor, subject }
          yield* recordCrossing({ ...of, ceiling, percent, requestId: closing.requestId }, atMs)
        },
    ),
  )
}

function balanceCrossings(booking: Booking, lowNanos: bigint | null): readonly (() => Operation<void>)[] {
  const { call, balance, closing, atMs } = booking
  // An account that never had credit gets no balance events.
  if (balance.creditedNanos === 0n) return []
  return balanceEvents(balance, -closing.costNanos, lowNanos).map(
    (type) =>
      function* () {
        const { actor } = yield* callerOf(booking)
        yield* recordEvent(
          { accountId: call.accountId, type, actor, data: { balance: balanceObject(balance) } },
          atMs,
        )
      },
  )
}

function* accountOf(id: string, atMs: number) {
  const account = yield* getAccount(id, atMs)
  if (account === null) throw new Error(`there is no account ${id}`)
  return accountObject(account, atMs)
}

function* callerOf({ call, atMs }: Booking) {
  const key = yield* getKey(call.accountId, call.keyId, atMs)
  if (key === null) throw new Error(`there is no key ${call.keyId}`)
  const actor = { kind: 'api_key', id: key.id, name: key.name } as const
  return { actor, key: eventKey(key, atMs) }
}

/** A digest of the model, because an entry of a PostgreSQL index has at most 2,704 bytes. */
const unpricedOnce = ({ call, model }: Booking) =>
  `${unpricedPrefix(call)}${createHash('sha256').update(model).digest('base64url')}`
const unpricedPrefix = ({ day }: CallRow) => `unpriced/${day}/`

/** The first unpriced call of each account, day and model. Their order is fixed, so that batches do not deadlock. */
function firstUnpriced(bookings: readonly Booking[]): readonly Booking[] {
  const firsts = new Map<string, Booking>()
  for (const booking of bookings) {
    const { closing, call } = booking
    if (!closing.unpriced || closing.state !== 'settled') continue
    const name = `${call.accountId} ${unpricedOnce(booking)}`
    if (!firsts.has(name)) firsts.set(name, booking)
  }
  return [...firsts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, booking]) => booking)
}

function* recordUnpriced(booking: Booking): Operation<void> {
  const { call, model, closing, atMs } = booking
  const { accountId } = call
  const [prefix, once] = [unpricedPrefix(call), unpricedOnce(booking)]
  const [row] = yield sql`
    SELECT count(*) AS models, coalesce(max(CASE WHEN once = ${once} THEN 1 ELSE 0 END), 0) AS known FROM event
    WHERE account_id = ${accountId} AND once >= ${prefix} AND once < ${`${prefix}\u{10ffff}`}`
  const isKnown = number(present(row), 'known') > 0
  if (isKnown || number(present(row), 'models') >= limits.unpricedModelsMax) return
  const { actor } = yield* callerOf(booking)
  const data = { model: model === '' ? null : model, request_id: closing.requestId }
  yield* recordEvent({ accountId, type: 'call.unpriced', actor, data, once }, atMs)
}
