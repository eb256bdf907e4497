import { formatInstant, usd } from '../../api/field-names.ts'
import { balanceObject } from '../../api/objects.ts'
import type { Actor } from '../../kernel/actor.ts'
import { DEFAULT_THRESHOLDS } from '../../kernel/limits.ts'
import type { Nanos } from '../../kernel/money.ts'
import type { Balance } from '../../ledger/account.ts'
import { dayOf, monthOf } from '../../ledger/calendar.ts'
import type { Budget } from '../../ledger/call.ts'
import { type Row, text } from '../rows.ts'
import { BALANCE_LOW, BUDGET_THRESHOLDS, readBalanceLow, recordEvent } from './events.ts'
import type { Operation } from './operation.ts'

const CAP_PERCENT = 100

function thresholdsOf(percents: readonly number[]): readonly number[] {
  return [...new Set([...percents, CAP_PERCENT])].sort((a, b) => a - b)
}

export type EventSettings = ReturnType<typeof eventSettings>

export function eventSettings(settings: readonly Row[]) {
  const byName = new Map(settings.map((row) => [text(row, 'name'), text(row, 'value')]))
  const thresholds = byName.get(BUDGET_THRESHOLDS)
  const low = byName.get(BALANCE_LOW)
  return {
    /** Percentages of a cap in ascending order, with 100. */
    percents: thresholdsOf(
      thresholds === undefined ? DEFAULT_THRESHOLDS : (JSON.parse(thresholds) as number[]),
    ),
    balanceLowNanos: low === undefined ? null : BigInt(low),
  }
}

/** The thresholds that a cost crosses. Spend only grows, so each is crossed once per period and cap. */
export function crossedPercents(
  { spentNanos, capNanos }: Budget,
  costNanos: Nanos,
  thresholds: readonly number[],
): readonly number[] {
  const before = (spentNanos - costNanos) * 100n
  const after = spentNanos * 100n
  const crossed: number[] = []
  for (const percent of thresholds) {
    const threshold = capNanos * BigInt(percent)
    if (threshold > after) break
    if (before < threshold) crossed.push(percent)
  }
  return crossed
}

interface Crossing {
  readonly accountId: string
  /** After the crossing. */
  readonly ceiling: Budget
  readonly percent: number
  readonly budgetId: string
  /** The API object of the key or account, under its name in `data`. */
  readonly subject: Readonly<Record<string, unknown>>
  readonly actor: Actor
  /** The call whose cost crossed the threshold; null if the cap was lowered. */
  readonly requestId: string | null
}

export function* recordCrossing(crossing: Crossing, atMs: number): Operation<void> {
  const { accountId, ceiling, percent, budgetId, subject, actor, requestId } = crossing
  const { scope, period, spentNanos, heldNanos, capNanos, resetsAtMs } = ceiling
  const periodName = period === 'month' ? monthOf(resetsAtMs - 1) : dayOf(resetsAtMs - 1)
  const data = {
    ...subject,
    period,
    threshold_percent: percent,
    spent_usd: usd(spentNanos),
    cap_usd: usd(capNanos),
    held_usd: usd(heldNanos),
    resets_at: formatInstant(resetsAtMs),
    request_id: requestId,
  }
  const type = `${scope}.budget.${percent === CAP_PERCENT ? 'exceeded' : 'threshold'}` as const
  const once = `budget/${budgetId}/${periodName}/${capNanos}/${percent}`
  yield* recordEvent({ accountId, type, actor, data, once }, atMs)
}

/** Records an event if a cap was set at or below the spend. `ceilings`: the budgets whose cap was set. */
export function* recordCapChange(
  edit: Omit<Crossing, 'ceiling' | 'percent' | 'requestId'>,
  ceilings: readonly Budget[],
  atMs: number,
): Operation<void> {
  for (const ceiling of ceilings)
    if (ceiling.spentNanos >= ceiling.capNanos)
      yield* recordCrossing({ ...edit, ceiling, percent: CAP_PERCENT, requestId: null }, atMs)
}

/** `changeNanos` is negative for a charge. */
export function balanceEvents(
  { creditedNanos, chargedNanos }: Balance,
  changeNanos: Nanos,
  lowNanos: Nanos | null,
): readonly ('balance.low' | 'balance.exhausted')[] {
  const balance = creditedNanos - chargedNanos
  const fellBelow = (nanos: Nanos) => balance < nanos && nanos <= balance - changeNanos
  return [
    ...(lowNanos !== null && fellBelow(lowNanos) ? (['balance.low'] as const) : []),
    // Amounts are whole nanodollars: a balance below 1 is exhausted.
    ...(fellBelow(1n) ? (['balance.exhausted'] as const) : []),
  ]
}

/** Records the events of a command that changes the balance. Settlements have `settlementEvents`. */
export function* recordBalanceChange(
  accountId: string,
  after: Balance,
  changeNanos: Nanos,
  actor: Actor,
  atMs: number,
): Operation<void> {
  const data = { balance: balanceObject(after) }
  for (const type of balanceEvents(after, changeNanos, yield* readBalanceLow()))
    yield* recordEvent({ accountId, type, actor, data }, atMs)
}
