import { DEFAULT_THRESHOLDS, limits } from '../../kernel/limits.ts'
import type { WebhookEventType } from '../../kernel/vocabulary.ts'
import { budgetCrossings, CAP_PERCENT } from '../../ledger/budget-crossings.ts'
import type { CallClosing } from '../../ledger/call.ts'
import { type Row, text } from '../rows.ts'
import type { MoneyRows } from './money-rows.ts'
import { type Batch, step } from './operation.ts'
import {
  BALANCE_LOW,
  BUDGET_THRESHOLDS,
  exceededMark,
  keptBalance,
  lowMark,
  MARK_MS,
  type OutboxFacts,
  unpricedMarks,
} from './outbox.ts'
import { type Filled, json, prepare } from './sql.ts'

/**
 * The events of a settlement, written in its transaction, only where the account has a webhook that is enabled. A budget
 * with a cap and an account with enforced credit are locked, so the sums before and after each call are exact.
 */

/** A closing that is booked, with the call that it closes. */
export interface Booking {
  readonly closing: CallClosing
  readonly call: Row
  readonly budgetId: string
  readonly accountId: string
  readonly model: string
  /** Where the clock is the database's, its instant; else the closing's own. */
  readonly atMs: number
  readonly spentBeforeNanos: bigint
  readonly heldAfterNanos: bigint
  readonly balanceNanos: bigint
  readonly accountHeldNanos: bigint
}

const READ_SETTING = prepare`SELECT value FROM setting WHERE name = ${'text'}`

const INSERT_EVENT = prepare`
  INSERT INTO webhook_outbox (account_id, type, key_id, at_ms, facts)
  VALUES (${'text'}, ${'text'}, ${'text'}, ${'bigint'}, ${'jsonb'})`

const MARK = prepare`INSERT INTO webhook_mark (name, until_ms) VALUES (${'text'}, ${'bigint'}) ON CONFLICT DO NOTHING`

/** Makes the mark of a model of a day, unless it is there or the day has too many. */
const MARK_MODEL = prepare`
  INSERT INTO webhook_mark (name, until_ms) SELECT ${'text'}, ${'bigint'}
  WHERE (SELECT count(*) FROM webhook_mark WHERE name >= ${'text'} AND name < ${'text'}) < ${'bigint'}
  ON CONFLICT DO NOTHING RETURNING name`

export function* tellSettled(bookings: readonly Booking[], money: MoneyRows): Batch<readonly Filled[]> {
  const told = bookings.filter(({ accountId }) => money.account(accountId).isTold)
  const spending = told.filter(({ closing }) => closing.costNanos > 0n)
  const unpriced = firstOfModels(told)
  if (spending.length === 0 && unpriced.length === 0) return []
  const marks = unpriced.map((booking) => {
    const prefix = markPrefix(booking)
    const until = booking.atMs + MARK_MS
    return MARK_MODEL(
      prefix + booking.model,
      until,
      prefix,
      `${prefix}\u{10ffff}`,
      limits.webhookUnpricedModelsMax,
    )
  })
  const [thresholds = [], low = [], ...marked] = yield step([
    ...[READ_SETTING(BUDGET_THRESHOLDS), READ_SETTING(BALANCE_LOW)],
    ...marks,
  ])
  const percents =
    thresholds[0] === undefined ? DEFAULT_THRESHOLDS : (JSON.parse(text(thresholds[0], 'value')) as number[])
  const lowNanos = low[0] === undefined ? null : BigInt(text(low[0], 'value'))
  const firsts = unpriced.filter((_, n) => (marked[n]?.length ?? 0) > 0)
  return [
    ...spending.flatMap((booking) => [
      ...crossed(booking, money, percents),
      ...balancePassed(booking, money, lowNanos),
    ]),
    ...firsts.map(({ accountId, model, closing, atMs }) =>
      event(accountId, 'call.unpriced', null, atMs, {
        model: model === '' ? null : model,
        requestId: closing.requestId,
      }),
    ),
  ]
}

function crossed(booking: Booking, money: MoneyRows, percents: readonly number[]): readonly Filled[] {
  const { closing, call, accountId, budgetId, atMs, spentBeforeNanos, heldAfterNanos } = booking
  const { monthlyNanos: capNanos, month } = money.budget(budgetId)
  if (capNanos === null || month !== text(call, 'month')) return []
  const { requestId, costNanos } = closing
  const crossings = budgetCrossings(capNanos, spentBeforeNanos, [{ requestId, costNanos, atMs }], percents)
  return crossings.flatMap(({ percent, spentNanos }) => {
    const isCap = percent === CAP_PERCENT
    const type = isCap ? 'key.budget.exceeded' : 'key.budget.threshold'
    const budget = {
      ...{ percent, spent: String(spentNanos), held: String(heldAfterNanos), cap: String(capNanos), month },
      requestId,
    }
    // An edit that brings this very cap back must not report its crossing again.
    const mark = isCap ? [MARK(exceededMark(budgetId, month, capNanos), atMs + MARK_MS)] : []
    return [...mark, event(accountId, type, text(call, 'key_id'), atMs, { budget })]
  })
}

function balancePassed(booking: Booking, money: MoneyRows, lowNanos: bigint | null): readonly Filled[] {
  const { accountId, atMs, balanceNanos, accountHeldNanos, closing } = booking
  const { creditEnforced, creditedNanos } = money.account(accountId)
  if (!creditEnforced) return []
  const passes = (nanos: bigint) => balanceNanos < nanos && nanos <= balanceNanos + closing.costNanos
  const isLow = lowNanos !== null && passes(lowNanos)
  // Amounts are whole nanodollars: a balance below 1 is exhausted.
  const isExhausted = passes(1n)
  const chargedNanos = creditedNanos - balanceNanos
  const balance = keptBalance({ creditedNanos, chargedNanos, heldNanos: accountHeldNanos, enforced: true })
  return [
    ...(lowNanos !== null && (isLow || isExhausted) ? [MARK(lowMark(accountId), null)] : []),
    ...(isLow ? [event(accountId, 'balance.low', null, atMs, { balance })] : []),
    ...(isExhausted ? [event(accountId, 'balance.exhausted', null, atMs, { balance })] : []),
  ]
}

/** The first unpriced call of each account, day and model, in the order of their marks. */
function firstOfModels(told: readonly Booking[]): readonly Booking[] {
  const firsts = new Map<string, Booking>()
  for (const booking of told) {
    const { closing, model } = booking
    if (!closing.unpriced || closing.state !== 'settled') continue
    const name = markPrefix(booking) + model
    if (!firsts.has(name)) firsts.set(name, booking)
  }
  return [...firsts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, booking]) => booking)
}

function markPrefix({ accountId, call }: Booking): string {
  return unpricedMarks(accountId, text(call, 'day'))
}

function event(
  accountId: string,
  type: WebhookEventType,
  keyId: string | null,
  atMs: number,
  facts: OutboxFacts,
): Filled {
  return INSERT_EVENT(accountId, type, keyId, atMs, json(facts))
}
