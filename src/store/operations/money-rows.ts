import { limitHold } from '../../kernel/money.ts'
import type { AccountStatus, BudgetMode, OwnUpstream, Surface } from '../../kernel/vocabulary.ts'
import type { OverLimit } from '../../keys/key-store.ts'
import type { AccountRecord } from '../../ledger/account.ts'
import { monthOf, nextDayMs, nextMonthMs, startOfDayMs } from '../../ledger/calendar.ts'
import type { Budget, CallOwner } from '../../ledger/call.ts'
import { nanos, present, type Row, recordOf, text } from '../rows.ts'
import { type BulkStatement, NO_STATEMENT, prepare, prepareLine, prepareUpdates } from './prepared.ts'
import { onPostgres, raw } from './sql.ts'

/** The budgets and accounts of a batch. They are locked (budgets, then accounts, each by id), read and written once. */

export const BUDGET_COLUMNS = `b.id, b.account_id, b.monthly_budget_nanos, b.daily_budget_nanos, b.requests_per_minute,
  b.budget_mode, b.month, b.spent_nanos, b.held_nanos, b.lost_nanos, b.overrun_nanos, b.day, b.day_spent_nanos, b.minute,
  b.minute_requests`

export const ACCOUNT_COLUMNS = `a.id, a.credited_nanos, a.charged_nanos, a.held_nanos, a.short_nanos, a.terms_version, a.credit_enforced,
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
  overrunNanos: bigint
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
  shortNanos: bigint
  readonly termsVersion: number
}

type AccountSums = Pick<AccountState, 'monthlyBudgetNanos' | 'month' | 'spentNanos' | 'heldNanos'>
type KeySums = AccountSums & Pick<BudgetState, 'dailyBudgetNanos' | 'day' | 'daySpentNanos'>

/** Amounts by which a call changes the sums of the month and day of its admission. */
interface MoneyChange {
  readonly month: string
  readonly day: string
  readonly heldNanos: bigint
  readonly accountHeldNanos: bigint
  readonly shortNanos: bigint
  readonly costNanos: bigint
  readonly lostNanos: bigint
}

/** What a batch adds to an account. Other nodes may add to it meanwhile, unless it is limited and so locked. */
interface AccountAdditions {
  heldNanos: bigint
  shortNanos: bigint
  chargedNanos: bigint
  /** The latest month of these calls, and their costs in it. */
  month: string
  spentNanos: bigint
}

export class MoneyRows {
  readonly #budgets: ReadonlyMap<string, BudgetState>
  readonly #accounts: ReadonlyMap<string, AccountState>
  readonly #changedBudgets = new Set<BudgetState>()
  readonly #added = new Map<AccountState, AccountAdditions>()

  constructor(budgets: ReadonlyMap<string, BudgetState>, accounts: ReadonlyMap<string, AccountState>) {
    this.#budgets = budgets
    this.#accounts = accounts
  }

  budget(id: string): BudgetState {
    return present(this.#budgets.get(id))
  }

  account(id: string): AccountState {
    return present(this.#accounts.get(id))
  }

  change({ budgetId, accountId }: CallOwner, change: MoneyChange): void {
    const { heldNanos, accountHeldNanos, shortNanos, costNanos, lostNanos } = change
    if (heldNanos !== 0n || costNanos !== 0n || lostNanos !== 0n) {
      const budget = this.budget(budgetId)
      changeBudget(budget, change)
      this.#changedBudgets.add(budget)
    }
    if (accountHeldNanos !== 0n || costNanos !== 0n || shortNanos !== 0n) this.#addTo(accountId, change)
  }

  #addTo(accountId: string, { month, accountHeldNanos, shortNanos, costNanos }: MoneyChange): void {
    const account = this.account(accountId)
    account.heldNanos += accountHeldNanos
    account.shortNanos += shortNanos
    account.chargedNanos += costNanos
    resetInNewMonth(account, month)
    if (account.month === month) account.spentNanos += costNanos
    const added = this.#added.get(account) ?? { ...NOTHING_ADDED }
    this.#added.set(account, added)
    added.heldNanos += accountHeldNanos
    added.shortNanos += shortNanos
    added.chargedNanos += costNanos
    resetInNewMonth(added, month)
    if (added.month === month) added.spentNanos += costNanos
  }

  /** Also counts requests of keys without a rate limit, so that a new limit applies to the current minute. */
  countRequest(budgetId: string, atMs: number): void {
    const budget = this.budget(budgetId)
    const minute = minuteOf(budget, atMs)
    budget.minuteRequests = budget.minute === minute ? budget.minuteRequests + 1 : 1
    budget.minute = minute
    this.#changedBudgets.add(budget)
  }

  /** Later holds of the month are larger by the largest overrun. */
  raiseOverrun(budgetId: string, month: string, overrunNanos: bigint): void {
    const budget = this.budget(budgetId)
    if (budget.month === month && budget.overrunNanos < overrunNanos)
      budget.overrunNanos = limitHold(overrunNanos)
  }

  /** Writes sums, not differences, because the rows have been locked since they were read. */
  budgetWrites(): BulkStatement {
    return WRITE_BUDGETS(
      [...this.#changedBudgets].map((b) => [
        ...[b.month, b.spentNanos, b.heldNanos, b.lostNanos, b.overrunNanos],
        ...[b.day, b.daySpentNanos, b.minute, b.minuteRequests, b.id],
      ]),
    )
  }

  /** Waits in line for the accounts that are not locked yet. */
  accountLine(): BulkStatement {
    const shared = [...this.#added.keys()].filter((account) => !isLimited(account))
    return shared.length === 0 ? NO_STATEMENT : LINE_UP_TO_ADD(shared.map(({ id }) => id))
  }

  /** Adds to the accounts, in the order of their ids. Nothing may follow but the commit: nodes wait for these rows. */
  accountWrites(): readonly BulkStatement[] {
    const inOrder = [...this.#added].sort(([a], [b]) => (a.id < b.id ? -1 : 1))
    return inOrder.map(([{ id, termsVersion }, { heldNanos, shortNanos, chargedNanos, month, spentNanos }]) =>
      ADD_TO_ACCOUNT([
        ...[heldNanos, shortNanos, chargedNanos, month, spentNanos, month, spentNanos, month, month],
        ...[id, termsVersion],
      ]),
    )
  }

  /** What other nodes have added to these accounts since they were read: the rows are those that `accountWrites` returns. */
  missedBy(written: readonly Row[]): ReadonlyMap<string, BalanceSums> {
    return new Map(
      written.map((row) => {
        const { creditedNanos, chargedNanos } = this.account(text(row, 'id'))
        const missed = {
          creditedNanos: nanos(row, 'credited_nanos') - creditedNanos,
          chargedNanos: nanos(row, 'charged_nanos') - chargedNanos,
        }
        return [text(row, 'id'), missed]
      }),
    )
  }
}

export type BalanceSums = Pick<AccountState, 'creditedNanos' | 'chargedNanos'>

const NOTHING_ADDED: AccountAdditions = {
  heldNanos: 0n,
  shortNanos: 0n,
  chargedNanos: 0n,
  month: '',
  spentNanos: 0n,
}

const WRITE_BUDGETS = prepareUpdates(
  'budget',
  [
    ...['month', 'spent_nanos', 'held_nanos', 'lost_nanos', 'overrun_nanos', 'day', 'day_spent_nanos'],
    ...['minute', 'minute_requests'],
  ],
  ['id'],
)

const LINE_UP_TO_ADD = prepareLine(["SELECT 'add to ' || unnest(", ')'])

/** Fails if the account's terms have changed since they were read, so that the batch runs again. */
const ADD_TO_ACCOUNT = prepare`${onPostgres('WITH added AS (')}
  UPDATE account SET held_nanos = held_nanos + ${'bigint'}, short_nanos = short_nanos + ${'bigint'},
    charged_nanos = charged_nanos + ${'bigint'},
    spent_nanos = CASE WHEN month = ${'text'} THEN spent_nanos + ${'bigint'} WHEN month < ${'text'} THEN ${'bigint'}
      ELSE spent_nanos END,
    month = CASE WHEN month < ${'text'} THEN ${'text'} ELSE month END
  WHERE id = ${'text'} AND terms_version = ${'bigint'}
  RETURNING id, credited_nanos, charged_nanos
  ${onPostgres(`) SELECT must_match(count(*) = 1), max(id) AS id, max(credited_nanos) AS credited_nanos,
    max(charged_nanos) AS charged_nanos FROM added`)}`

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
    budget.overrunNanos = 0n
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

export function isLimited({ creditEnforced, monthlyBudgetNanos }: AccountState): boolean {
  return creditEnforced || monthlyBudgetNanos !== null
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
