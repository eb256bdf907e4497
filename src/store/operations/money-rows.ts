import type { AccountStatus, BudgetMode, OwnUpstream, Surface } from '../../kernel/vocabulary.ts'
import type { OverLimit } from '../../keys/key-store.ts'
import type { AccountRecord } from '../../ledger/account.ts'
import { monthOf, nextDayMs, nextMonthMs } from '../../ledger/calendar.ts'
import type { Budget } from '../../ledger/call.ts'
import { bool, nanos, nanosOrNull, number, numberOrNull, type Row, text, textOrNull } from '../rows.ts'
import { type Filled, prepare, raw } from './sql.ts'

/**
 * The budgets and accounts that the calls of a batch share: locked and read once, changed in memory call by call,
 * written once. Every transaction locks them in this order: budgets, then accounts, each by id.
 */

export const BUDGET_COLUMNS =
  raw(`b.id, b.account_id, b.monthly_budget_nanos, b.daily_budget_nanos, b.requests_per_minute,
  b.budget_mode, b.month, b.spent_nanos, b.held_nanos, b.lost_nanos, b.has_floors, b.day, b.day_spent_nanos, b.minute,
  b.minute_requests`)

export const ACCOUNT_COLUMNS = raw(`a.id, a.credited_nanos, a.charged_nanos, a.held_nanos, a.credit_enforced,
  a.monthly_budget_nanos, a.month, a.spent_nanos, a.status, a.has_others, a.discount_billionths,
  a.messages_url, a.messages_key, a.chat_url, a.chat_key`)

/** A period and its sums; an earlier period is over, and its sums are 0. */
export interface MonthSums {
  month: string
  spentNanos: bigint
}

export interface BudgetState extends MonthSums {
  readonly id: string
  readonly accountId: string
  readonly monthlyNanos: bigint | null
  readonly dailyNanos: bigint | null
  readonly requestsPerMinute: number | null
  readonly mode: BudgetMode | null
  heldNanos: bigint
  hasFloors: boolean
  day: string
  daySpentNanos: bigint
  minute: number
  minuteRequests: number
}

export interface AccountState extends MonthSums {
  readonly id: string
  readonly creditedNanos: bigint
  readonly creditEnforced: boolean
  readonly isSuspended: boolean
  readonly hasOthers: boolean
  readonly discountBillionths: number | null
  readonly upstreams: AccountRecord['upstreams']
  readonly monthlyNanos: bigint | null
  chargedNanos: bigint
  heldNanos: bigint
}

export interface Move {
  readonly month: string
  readonly day: string
  readonly heldNanos: bigint
  readonly accountHeldNanos: bigint
  readonly costNanos: bigint
  readonly lostNanos: bigint
}

type BudgetMove = { -readonly [Name in keyof Omit<Move, 'accountHeldNanos'>]: Move[Name] } & {
  readonly id: string
}
type AccountMove = { readonly id: string; readonly month: string; heldNanos: bigint; costNanos: bigint }

export class MoneyRows {
  readonly budgets: ReadonlyMap<string, BudgetState>
  readonly accounts: ReadonlyMap<string, AccountState>
  readonly #budgetMoves = new Map<string, BudgetMove>()
  readonly #accountMoves = new Map<string, AccountMove>()
  readonly #counted = new Set<BudgetState>()

  constructor(budgets: readonly Row[], accounts: readonly Row[]) {
    this.budgets = new Map(budgets.map((row) => [text(row, 'id'), budgetState(row)]))
    this.accounts = new Map(accounts.map((row) => [text(row, 'id'), accountState(row)]))
  }

  budget(id: string): BudgetState {
    const state = this.budgets.get(id)
    if (state === undefined) throw new Error(`there is no budget ${id}`)
    return state
  }

  account(id: string): AccountState {
    const state = this.accounts.get(id)
    if (state === undefined) throw new Error(`there is no account ${id}`)
    return state
  }

  /** Changes the sums in memory, as the statements of `writes` will in the database. */
  move(budgetId: string, accountId: string, move: Move): void {
    if (!isMove(move)) return
    const budget = this.budget(budgetId)
    const account = this.account(accountId)
    moveBudget(budget, move)
    account.heldNanos += move.accountHeldNanos
    account.chargedNanos += move.costNanos
    enterMonth(account, move.month)
    if (account.month === move.month) account.spentNanos += move.costNanos

    const { month, day, heldNanos, costNanos, lostNanos } = move
    const name = `${budgetId} ${month} ${day}`
    const moved = this.#budgetMoves.get(name)
    if (moved === undefined) {
      this.#budgetMoves.set(name, { id: budgetId, month, day, heldNanos, costNanos, lostNanos })
    } else {
      moved.heldNanos += heldNanos
      moved.costNanos += costNanos
      moved.lostNanos += lostNanos
    }
    const accountName = `${accountId} ${month}`
    const charged = this.#accountMoves.get(accountName)
    if (charged === undefined) {
      const of = { id: accountId, month, heldNanos: move.accountHeldNanos, costNanos }
      this.#accountMoves.set(accountName, of)
    } else {
      charged.heldNanos += move.accountHeldNanos
      charged.costNanos += costNanos
    }
  }

  /** Counts an admitted request, if its budget limits requests. */
  countRequest(budgetId: string, atMs: number): void {
    const budget = this.budget(budgetId)
    if (budget.requestsPerMinute === null) return
    const minute = minuteOf(budget, atMs)
    budget.minuteRequests = budget.minute === minute ? budget.minuteRequests + 1 : 1
    budget.minute = minute
    this.#counted.add(budget)
  }

  writes(): Filled[] {
    return [
      ...sorted(this.#budgetMoves).map(({ id, month, day, heldNanos, costNanos, lostNanos }) =>
        MOVE_BUDGET(
          ...[month, costNanos, month, heldNanos, month, lostNanos, month],
          ...[day, day, costNanos, day, day, month, id, month],
        ),
      ),
      ...[...this.#counted].map(({ id, minute, minuteRequests }) =>
        COUNT_REQUESTS(minute, minuteRequests, id),
      ),
      ...sorted(this.#accountMoves).map(({ id, month, heldNanos, costNanos }) =>
        MOVE_ACCOUNT(heldNanos, costNanos, month, month, costNanos, month, month, id),
      ),
    ]
  }
}

function isMove({ heldNanos, accountHeldNanos, costNanos, lostNanos }: Move): boolean {
  return [heldNanos, accountHeldNanos, costNanos, lostNanos].some((nanos) => nanos !== 0n)
}

function sorted<T>(moves: ReadonlyMap<string, T>): T[] {
  return [...moves].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, move]) => move)
}

/** A later month or day resets the sums to 0. A move in an earlier period, which is over, changes nothing. */
const MOVE_BUDGET = prepare`
  UPDATE budget SET
    spent_nanos = CASE WHEN month < ${'text'} THEN 0 ELSE spent_nanos END + ${'bigint'},
    held_nanos = CASE WHEN month < ${'text'} THEN 0 ELSE held_nanos END + ${'bigint'},
    lost_nanos = CASE WHEN month < ${'text'} THEN 0 ELSE lost_nanos END + ${'bigint'},
    has_floors = has_floors AND month = ${'text'},
    day_spent_nanos = CASE WHEN day < ${'text'} THEN 0 ELSE day_spent_nanos END
      + CASE WHEN day > ${'text'} THEN 0 ELSE ${'bigint'} END,
    day = CASE WHEN day < ${'text'} THEN ${'text'} ELSE day END,
    month = ${'text'}
  WHERE id = ${'text'} AND month <= ${'text'}`

const COUNT_REQUESTS = prepare`
  UPDATE budget SET minute = ${'bigint'}, minute_requests = ${'bigint'} WHERE id = ${'text'}`

const MOVE_ACCOUNT = prepare`
  UPDATE account SET held_nanos = held_nanos + ${'bigint'}, charged_nanos = charged_nanos + ${'bigint'},
    spent_nanos = CASE WHEN month < ${'text'} THEN 0 ELSE spent_nanos END
      + CASE WHEN month > ${'text'} THEN 0 ELSE ${'bigint'} END,
    month = CASE WHEN month < ${'text'} THEN ${'text'} ELSE month END
  WHERE id = ${'text'}`

function enterMonth(sums: MonthSums, month: string): void {
  if (sums.month >= month) return
  sums.month = month
  sums.spentNanos = 0n
}

function moveBudget(budget: BudgetState, { month, day, heldNanos, costNanos }: Move): void {
  if (budget.month < month) {
    enterMonth(budget, month)
    budget.heldNanos = 0n
    budget.hasFloors = false
  }
  if (budget.month > month) return
  budget.heldNanos += heldNanos
  budget.spentNanos += costNanos
  if (budget.day < day) {
    budget.day = day
    budget.daySpentNanos = 0n
  }
  if (budget.day === day) budget.daySpentNanos += costNanos
}

/** The ceilings of a key in this month and day. */
export function keyCeilings(budget: BudgetState, month: string, day: string, atMs: number): Budget[] {
  const { monthlyNanos, dailyNanos } = budget
  const isNow = budget.month === month
  const heldNanos = isNow ? budget.heldNanos : 0n
  const ceilings: Budget[] = []
  if (monthlyNanos !== null)
    ceilings.push({
      ...{ scope: 'key', period: 'month', spentNanos: isNow ? budget.spentNanos : 0n, heldNanos },
      ...{ capNanos: monthlyNanos, resetsAtMs: nextMonthMs(atMs) },
    })
  if (dailyNanos !== null)
    ceilings.push({
      ...{
        scope: 'key',
        period: 'day',
        spentNanos: budget.day === day ? budget.daySpentNanos : 0n,
        heldNanos,
      },
      ...{ capNanos: dailyNanos, resetsAtMs: nextDayMs(atMs) },
    })
  return ceilings
}

/** Why another request would exceed the rate limit now; null if it would not. */
export function overLimit(budget: BudgetState, atMs: number): OverLimit | null {
  const { requestsPerMinute: most, minute, minuteRequests } = budget
  if (most === null || minute !== minuteOf(budget, atMs) || minuteRequests < most) return null
  const retryAfterSeconds = Math.ceil(((minute + 1) * MINUTE_MS - atMs) / 1_000)
  const message = `This key may make ${most} requests a minute and has made them. Try again in ${retryAfterSeconds} s, or ask its operator for a higher requests_per_minute.`
  return { reason: 'over_limit', code: 'rate_limit_exceeded', message, retryAfterSeconds }
}

const MINUTE_MS = 60_000

/** The minute of a time. If the clock has stepped back a little, the current minute continues. */
function minuteOf({ minute }: BudgetState, atMs: number): number {
  const now = Math.floor(atMs / MINUTE_MS)
  return now === minute - 1 ? minute : now
}

export function accountCeilings(account: AccountState, month: string, atMs: number): Budget[] {
  const { monthlyNanos, heldNanos } = account
  if (monthlyNanos === null) return []
  const spentNanos = account.month === month ? account.spentNanos : 0n
  const sums = { spentNanos, heldNanos, capNanos: monthlyNanos, resetsAtMs: nextMonthMs(atMs) }
  return [{ scope: 'account', period: 'month', ...sums }]
}

export function budgetState(row: Row): BudgetState {
  return {
    id: text(row, 'id'),
    accountId: text(row, 'account_id'),
    monthlyNanos: nanosOrNull(row, 'monthly_budget_nanos'),
    dailyNanos: nanosOrNull(row, 'daily_budget_nanos'),
    requestsPerMinute: numberOrNull(row, 'requests_per_minute'),
    mode: textOrNull(row, 'budget_mode') as BudgetState['mode'],
    month: text(row, 'month'),
    spentNanos: nanos(row, 'spent_nanos'),
    heldNanos: nanos(row, 'held_nanos'),
    hasFloors: bool(row, 'has_floors'),
    day: text(row, 'day'),
    daySpentNanos: nanos(row, 'day_spent_nanos'),
    minute: number(row, 'minute'),
    minuteRequests: number(row, 'minute_requests'),
  }
}

export function accountState(row: Row): AccountState {
  return {
    id: text(row, 'id'),
    creditedNanos: nanos(row, 'credited_nanos'),
    chargedNanos: nanos(row, 'charged_nanos'),
    heldNanos: nanos(row, 'held_nanos'),
    creditEnforced: bool(row, 'credit_enforced'),
    isSuspended: text(row, 'status') === 'suspended',
    hasOthers: bool(row, 'has_others'),
    discountBillionths: numberOrNull(row, 'discount_billionths'),
    upstreams: { messages: upstreamOf(row, 'messages'), chat: upstreamOf(row, 'chat') },
    monthlyNanos: nanosOrNull(row, 'monthly_budget_nanos'),
    month: text(row, 'month'),
    spentNanos: nanos(row, 'spent_nanos'),
  }
}

function upstreamOf(row: Row, surface: Surface): OwnUpstream | null {
  const url = textOrNull(row, `${surface}_url`)
  return url === null ? null : { url, sealedKey: textOrNull(row, `${surface}_key`) }
}

/** The columns of `account a` for a record; the caller adds `now_ms`. */
export const ACCOUNT_RECORD = raw(`a.id, a.name, a.created_at_ms, a.metadata, a.status, a.discount_billionths,
  a.messages_url, a.messages_key, a.chat_url, a.chat_key, a.credited_nanos, a.charged_nanos, a.held_nanos,
  a.credit_enforced, a.monthly_budget_nanos, a.month, a.spent_nanos`)

export function accountRecord(row: Row): AccountRecord {
  const { metadata } = row
  const isNow = text(row, 'month') === monthOf(number(row, 'now_ms'))
  return {
    id: text(row, 'id'),
    name: text(row, 'name'),
    status: text(row, 'status') as AccountStatus,
    monthlyBudgetNanos: nanosOrNull(row, 'monthly_budget_nanos'),
    spentNanos: isNow ? nanos(row, 'spent_nanos') : 0n,
    heldNanos: nanos(row, 'held_nanos'),
    creditEnforced: bool(row, 'credit_enforced'),
    balanceNanos: nanos(row, 'credited_nanos') - nanos(row, 'charged_nanos'),
    discountBillionths: numberOrNull(row, 'discount_billionths'),
    upstreams: { messages: upstreamOf(row, 'messages'), chat: upstreamOf(row, 'chat') },
    // SQLite has no type for JSON.
    metadata: (typeof metadata === 'string'
      ? JSON.parse(metadata)
      : (metadata ?? {})) as AccountRecord['metadata'],
    createdAtMs: number(row, 'created_at_ms'),
  }
}
