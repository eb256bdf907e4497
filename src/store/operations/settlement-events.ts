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

export interface Settlement {
  readonly closing: CallClosing
  readonly call: CallRow
  readonly model: string
  /** By the database's clock; by the closing's if the store uses the caller's clock. */
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

type RecordEvents = readonly (() => Operation<void>)[]

/** The operations that record the events of these settlements, in order. Most batches have no events. */
export function settlementEvents(
  settlements: readonly Settlement[],
  { percents, balanceLowNanos }: EventSettings,
): RecordEvents {
  const events: (() => Operation<void>)[] = []
  for (const settlement of settlements)
    if (settlement.closing.costNanos > 0n)
      events.push(...thresholdEvents(settlement, percents), ...balanceEventsOf(settlement, balanceLowNanos))
  for (const settlement of firstUnpriced(settlements)) events.push(() => recordUnpriced(settlement))
  return events
}

function thresholdEvents(settlement: Settlement, thresholds: readonly number[]): RecordEvents {
  const { ceilings, closing, atMs } = settlement
  const { accountId, budgetId } = settlement.call
  return ceilings.flatMap((ceiling) =>
    crossedPercents(ceiling, closing.costNanos, thresholds).map(
      (percent) =>
        function* () {
          const { actor, key } = yield* callerOf(settlement)
          const isKey = ceiling.scope === 'key'
          const subject = isKey
            ? { key }
            : { account: accountObject(present(yield* getAccount(accountId, atMs)), atMs) }
          const crossing = { accountId, budgetId: isKey ? budgetId : accountId, actor, subject }
          yield* recordCrossing({ ...crossing, ceiling, percent, requestId: closing.requestId }, atMs)
        },
    ),
  )
}

function balanceEventsOf(settlement: Settlement, lowNanos: bigint | null): RecordEvents {
  const { call, balance, closing, atMs } = settlement
  // An account that never had credit gets no balance events.
  if (balance.creditedNanos === 0n) return []
  return balanceEvents(balance, -closing.costNanos, lowNanos).map(
    (type) =>
      function* () {
        const { actor } = yield* callerOf(settlement)
        yield* recordEvent(
          { accountId: call.accountId, type, actor, data: { balance: balanceObject(balance) } },
          atMs,
        )
      },
  )
}

function* callerOf({ call, atMs }: Settlement) {
  const key = present(yield* getKey(call.accountId, call.keyId, atMs))
  const actor = { kind: 'api_key', id: key.id, name: key.name } as const
  return { actor, key: eventKey(key, atMs) }
}

/** A digest of the model, because an entry of a PostgreSQL index has at most 2,704 bytes. */
const unpricedEventOnce = ({ call, model }: Settlement) =>
  `${unpricedPrefix(call)}${createHash('sha256').update(model).digest('base64url')}`
const unpricedPrefix = ({ day }: CallRow) => `unpriced/${day}/`

/** The first unpriced call of each account, day and model, in a fixed order, so that batches do not deadlock. */
function firstUnpriced(settlements: readonly Settlement[]): readonly Settlement[] {
  const firsts = new Map<string, Settlement>()
  for (const settlement of settlements) {
    const { closing, call } = settlement
    if (!closing.unpriced || closing.state !== 'settled') continue
    const name = `${call.accountId} ${unpricedEventOnce(settlement)}`
    if (!firsts.has(name)) firsts.set(name, settlement)
  }
  return [...firsts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, settlement]) => settlement)
}

function* recordUnpriced(settlement: Settlement): Operation<void> {
  const { call, model, closing, atMs } = settlement
  const { accountId } = call
  const [prefix, once] = [unpricedPrefix(call), unpricedEventOnce(settlement)]
  const [row] = yield sql`
    SELECT count(*) AS models, coalesce(max(CASE WHEN once = ${once} THEN 1 ELSE 0 END), 0) AS known FROM event
    WHERE account_id = ${accountId} AND once >= ${prefix} AND once < ${`${prefix}\u{10ffff}`}`
  const isKnown = number(present(row), 'known') > 0
  if (isKnown || number(present(row), 'models') >= limits.unpricedModelsMax) return
  const { actor } = yield* callerOf(settlement)
  const data = { model: model === '' ? null : model, request_id: closing.requestId }
  yield* recordEvent({ accountId, type: 'call.unpriced', actor, data, once }, atMs)
}
