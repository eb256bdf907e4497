import { accountObject, balanceObject, eventKey } from '../../api/objects.ts'
import type { Balance } from '../../ledger/account.ts'
import type { Budget, CallClosing, CallOwner } from '../../ledger/call.ts'
import { present } from '../rows.ts'
import { getAccount } from './accounts.ts'
import { balanceEvents, crossedPercents, type EventSettings, recordCrossing } from './budget-events.ts'
import { recordEvent } from './events.ts'
import { getKey } from './keys.ts'
import { accountCeilings, type BalanceSums, keyCeilings, type MoneyRows } from './money-rows.ts'
import type { Operation } from './operation.ts'
import { firstUnpriced, recordUnpriced } from './unpriced-events.ts'

/** Records the events of settlements. Budgets and accounts are locked, so the sums before and after are exact. */

export interface Settlement {
  readonly closing: CallClosing
  readonly call: SettledCall
  readonly model: string
  /** By the database's clock; by the closing's if the store uses the caller's clock. */
  readonly atMs: number
  readonly ceilings: readonly Budget[]
  readonly balance: Balance
  /** Whether the account is locked, because it has a ceiling or enforced credit. */
  readonly isLimited: boolean
}

/** What a settlement needs to know of a hold, or of a call that was interrupted. */
export interface SettledCall extends CallOwner {
  readonly id: string
  readonly keyId: string
  readonly startedAtMs: number
  readonly month: string
  readonly day: string
  readonly modelAsked: string | null
  readonly holdNanos: bigint
  readonly holdListNanos: bigint
  readonly requests: number
}

/** The budgets of the call's month and day, including its cost, unless the period is over. */
export function ceilingsOf(
  { budgetId, accountId, month, day }: SettledCall,
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

/** Whether other nodes may have added to the account meanwhile, and an event may depend on it. */
export function isBalanceUncertain({ closing, balance, isLimited }: Settlement): boolean {
  return closing.costNanos > 0n && balance.creditedNanos !== 0n && !isLimited
}

/** The operations that record the events of these settlements, in order. `missed`: what other nodes added meanwhile. */
export function settlementEvents(
  settlements: readonly Settlement[],
  { percents, balanceLowNanos }: EventSettings,
  missed: ReadonlyMap<string, BalanceSums> = new Map(),
): RecordEvents {
  const events: (() => Operation<void>)[] = []
  for (const settlement of settlements) {
    const { call, closing, balance } = settlement
    if (closing.costNanos === 0n) continue
    const { creditedNanos, chargedNanos } = missed.get(call.accountId) ?? {
      creditedNanos: 0n,
      chargedNanos: 0n,
    }
    const exact = {
      ...settlement,
      balance: {
        ...balance,
        creditedNanos: balance.creditedNanos + creditedNanos,
        chargedNanos: balance.chargedNanos + chargedNanos,
      },
    }
    events.push(...thresholdEvents(exact, percents), ...balanceEventsOf(exact, balanceLowNanos))
  }
  for (const { settlement, ...unpriced } of firstUnpriced(unpricedIn(settlements)))
    events.push(() => recordUnpriced(unpriced, actorOf(settlement), settlement.atMs))
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

function* actorOf(settlement: Settlement) {
  return (yield* callerOf(settlement)).actor
}

/** The settled calls that could not be priced. */
function unpricedIn(settlements: readonly Settlement[]) {
  const unpriced = settlements.filter(({ closing }) => closing.unpriced && closing.state === 'settled')
  return unpriced.map((settlement) => {
    const { call, model, closing } = settlement
    const { accountId, day } = call
    return { accountId, day, model, requestId: closing.requestId, refused: false, settlement }
  })
}
