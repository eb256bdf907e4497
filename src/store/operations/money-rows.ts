import type { AccountStatus, BudgetMode, OwnUpstream, Surface } from '../../kernel/vocabulary.ts'
import type { OverLimit } from '../../keys/key-store.ts'
import type { AccountRecord } from '../../ledger/account.ts'
import { monthOf, nextDayMs, nextMonthMs, startOfDayMs } from '../../ledger/calendar.ts'
import type { Budget } from '../../ledger/call.ts'
import { present, type Row, recordOf, text } from '../rows.ts'
import { type BulkStatement, prepareUpdates } from './prepared.ts'
import { raw } from './sql.ts'

/** The budgets and accounts of a batch. They are locked (budgets, then accounts, each by id), read and written once. */

export const BUDGET_COLUMNS = `b.id, b.account_id, b.monthly_budget_nanos, b.daily_budget_nanos, b.requests_per_minute,
  b.budget_mode, b.month, b.spent_nanos, b.held_nanos, b.lost_nanos, b.has_floors, b.day, b.day_spent_nanos, b.minute,
  b.minute_requests`

export const ACCOUNT_COLUMNS = `a.id, a.credited_nanos, a.charged_nanos, a.held_nanos, a.credit_enforced,
  a.monthly_budget_nanos, a.month, a.spent_nanos, a.status, a.has_others, a.discount_billionths,
  a.messages_url, a.messages_key, a.chat_url, a.chat_key`

export interface BudgetState {
  readonly id: string
  readonly accountId: string
  readonly monthlyBudgetNanos: bigint | null
  readonly dailyBudgetNanos: bigint | null
  readonly requestsPerMinute: number | null
  readonly budgetMode: BudgetMode | null
  month: string
  spentNanos: bigint
  heldNanos: bigint
  lostNanos: bigint
  hasFloors: boolean
  day: string
  daySpentNanos: bigint
  minute: number
  minuteRequests: number
}

export interface AccountState {
  readonly id: string
  readonly creditedNanos: bigint
  readonly creditEnforced: boolean
  readonly status: AccountStatus
  readonly hasOthers: boolean
  readonly discountBillionths: number | null
  readonly messagesUrl: string | null
  readonly messagesKey: string | null
  readonly chatUrl: string | null
  readonly chatKey: string | null
  readonly monthlyBudgetNanos: bigint | null
  month: string
  spentNanos: bigint
  chargedNanos: bigint
  heldNanos: bigint
}

type AccountSums = Pick<AccountState, 'monthlyBudgetNanos' | 'month' | 'spentNanos' | 'heldNanos'>
type KeySums = AccountSums & Pick<BudgetState, 'dailyBudgetNanos' | 'day' | 'daySpentNanos'>

/** Amounts by which a call changes the sums of the month and day of its admission. */
interface MoneyChange {
  readonly month: string
  readonly day: string
  readonly heldNanos: bigint
  readonly accountHeldNanos: bigint
  readonly costNanos: bigint
  readonly lostNanos: bigint
}

export class MoneyRows {
  readonly budgets: ReadonlyMap<string, BudgetState>
  readonly accounts: ReadonlyMap<string, AccountState>
  readonly #changedBudgets = new Set<BudgetState>()
  readonly #changedAccounts = new Set<AccountState>()

  constructor(budgets: readonly Row[], accounts: readonly Row[]) {
    this.budgets = new Map(budgets.map((row) => [text(row, 'id'), budgetState(row)]))
    this.accounts = new Map(accounts.map((row) => [text(row, 'id'), accountState(row)]))
  }

  budget(id: string): BudgetState {
    return present(this.budgets.get(id))
  }

  account(id: string): AccountState {
    return present(this.accounts.get(id))
  }

  change(budgetId: string, accountId: string, change: MoneyChange): void {
    const { heldNanos, accountHeldNanos, costNanos, lostNanos } = change
    if (heldNanos !== 0n || costNanos !== 0n || lostNanos !== 0n) {
      const budget = this.budget(budgetId)
      changeBudget(budget, change)
      this.#changedBudgets.add(budget)
    }
    if (accountHeldNanos === 0n && costNanos === 0n) return
    const account = this.account(accountId)
    account.heldNanos += accountHeldNanos
    account.chargedNanos += costNanos
    resetInNewMonth(account, change.month)
    if (account.month === change.month) account.spentNanos += costNanos
    this.#changedAccounts.add(account)
  }

  /** Also counts requests of keys without a rate limit, so that a new limit applies to the current minute. */
  countRequest(budgetId: string, atMs: number): void {
    const budget = this.budget(budgetId)
    const minute = minuteOf(budget, atMs)
    budget.minuteRequests = budget.minute === minute ? budget.minuteRequests + 1 : 1
    budget.minute = minute
    this.#changedBudgets.add(budget)
  }

  markHoldFloors(budgetId: string, month: string): void {
    const budget = this.budget(budgetId)
    if (budget.month === month) budget.hasFloors = true
  }

  /** Writes sums, not differences, because the rows have been locked since they were read. */
  writes(): BulkStatement[] {
    const budgets = [...this.#changedBudgets].map((b) => [
      ...[b.month, b.spentNanos, b.heldNanos, b.lostNanos, b.hasFloors],
      ...[b.day, b.daySpentNanos, b.minute, b.minuteRequests, b.id],
    ])
    const accounts = [...this.#changedAccounts].map((a) => [
      ...[a.heldNanos, a.chargedNanos, a.month, a.spentNanos, a.id],
    ])
    return [WRITE_BUDGETS(budgets), WRITE_ACCOUNTS(accounts)]
  }
}

const WRITE_BUDGETS = prepareUpdates(
  'budget',
  [
    ...['month', 'spent_nanos', 'held_nanos', 'lost_nanos', 'has_floors', 'day', 'day_spent_nanos'],
    ...['minute', 'minute_requests'],
  ],
  ['id'],
)

const WRITE_ACCOUNTS = prepareUpdates(
  'account',
  ['held_nanos', 'charged_nanos', 'month', 'spent_nanos'],
  ['id'],
)

function resetInNewMonth(sums: Pick<AccountState, 'month' | 'spentNanos'>, month: string): boolean {
  if (sums.month >= month) return false
  sums.month = month
  sums.spentNanos = 0n
  return true
}

/** Changes the sums of the current month and day. Amounts of an earlier period are ignored. */
function changeBudget(budget: BudgetState, change: MoneyChange): void {
  const { month, day, costNanos } = change
  if (resetInNewMonth(budget, month)) {
    budget.heldNanos = 0n
    budget.lostNanos = 0n
    budget.hasFloors = false
  }
  if (budget.month > month) return
  budget.heldNanos += change.heldNanos
  budget.lostNanos += change.lostNanos
  budget.spentNanos += costNanos
  if (budget.day < day) {
    budget.day = day
    budget.daySpentNanos = 0n
  }
  if (budget.day === day) budget.daySpentNanos += costNanos
}

/** `atMs` may be before this day if the clock was set back; the reset is always after it. */
export function keyCeilings(budget: KeySums, day: string, atMs = startOfDayMs(day)): Budget[] {
  const { monthlyBudgetNanos, dailyBudgetNanos } = budget
  if (monthlyBudgetNanos === null && dailyBudgetNanos === null) return []
  const isCurrentMonth = budget.month === day.slice(0, 7)
  const heldNanos = isCurrentMonth ? budget.heldNanos : 0n
  const ceilings: Budget[] = []
  if (monthlyBudgetNanos !== null)
    ceilings.push({
      scope: 'key',
      period: 'month',
      spentNanos: isCurrentMonth ? budget.spentNanos : 0n,
      heldNanos,
      capNanos: monthlyBudgetNanos,
      resetsAtMs: nextMonthMs(atMs),
    })
  if (dailyBudgetNanos !== null)
    ceilings.push({
      scope: 'key',
      period: 'day',
      spentNanos: budget.day === day ? budget.daySpentNanos : 0n,
      heldNanos,
      capNanos: dailyBudgetNanos,
      resetsAtMs: nextDayMs(atMs),
    })
  return ceilings
}

/** Why another request would exceed the rate limit now; null if it would not. */
export function overLimit(budget: BudgetState, atMs: number): OverLimit | null {
  const { requestsPerMinute: limit, minute, minuteRequests } = budget
  if (limit === null || minute !== minuteOf(budget, atMs) || minuteRequests < limit) return null
  const retryAfterSeconds = Math.ceil(((minute + 1) * MINUTE_MS - atMs) / 1_000)
  const message = `This key has reached its limit of ${limit} requests per minute. Retry in ${retryAfterSeconds} s, or ask the operator for a higher requests_per_minute.`
  return { reason: 'over_limit', code: 'rate_limit_exceeded', message, retryAfterSeconds }
}

const MINUTE_MS = 60_000

/** The minute of a time. If the clock was set back by less than a minute, the current minute continues. */
function minuteOf({ minute }: BudgetState, atMs: number): number {
  const now = Math.floor(atMs / MINUTE_MS)
  return now === minute - 1 ? minute : now
}

export function accountCeilings(account: AccountSums, day: string, atMs = startOfDayMs(day)): Budget[] {
  const { monthlyBudgetNanos: capNanos, heldNanos } = account
  if (capNanos === null) return []
  const spentNanos = account.month === day.slice(0, 7) ? account.spentNanos : 0n
  const resetsAtMs = nextMonthMs(atMs)
  return [{ scope: 'account', period: 'month', spentNanos, heldNanos, capNanos, resetsAtMs }]
}

export const budgetState = recordOf<BudgetState>
export const accountState = recordOf<AccountState>

export function upstreamOf(account: AccountState, surface: Surface): OwnUpstream | null {
  const isChat = surface === 'chat'
  const url = isChat ? account.chatUrl : account.messagesUrl
  return url === null ? null : { url, sealedKey: isChat ? account.chatKey : account.messagesKey }
}

/** The columns of `account a` for a record; the caller adds `now_ms`. */
export const ACCOUNT_RECORD = raw(`${ACCOUNT_COLUMNS}, a.name, a.created_at_ms, a.metadata`)

export function accountRecord(row: Row): AccountRecord {
  const account = recordOf<AccountState & AccountRecord & { readonly nowMs: number }>(row)
  const { id, name, status, monthlyBudgetNanos, heldNanos, creditEnforced, discountBillionths } = account
  return {
    ...{ id, name, status, monthlyBudgetNanos, heldNanos, creditEnforced, discountBillionths },
    spentNanos: account.month === monthOf(account.nowMs) ? account.spentNanos : 0n,
    balanceNanos: account.creditedNanos - account.chargedNanos,
    upstreams: { messages: upstreamOf(account, 'messages'), chat: upstreamOf(account, 'chat') },
    metadata: account.metadata ?? {},
    createdAtMs: account.createdAtMs,
  }
}
