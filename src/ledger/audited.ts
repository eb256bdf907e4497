import { formatUsd, type Nanos } from '../kernel/money.ts'

/**
 * Prices a call from its record alone. Null: the version has no price for the call, which then costs nothing. Throws if
 * the record cannot be read. The same version comes as the same string, so a parsed version can be cached by that string.
 */
export type RateAgain = (call: {
  readonly usage: string
  readonly rating: string
  readonly priceVersionJson: string
}) => { readonly costNanos: Nanos; readonly listNanos: Nanos } | null

/** A stored figure that differs from the one derived from the records. Both sides are text for people. */
export interface Difference {
  readonly what: string
  readonly where: string
  readonly stored: string
  readonly derived: string
}

/** The columns of a call that follow from others. Integers are bigint, as the store has them. */
export interface AuditedCall {
  readonly id: string
  readonly state: string
  readonly startedAtMs: bigint
  readonly endedAtMs: bigint | null
  readonly month: string
  readonly day: string
  readonly usage: string | null
  readonly rating: string
  readonly priceVersion: string
  /** Null if no such version was kept. */
  readonly priceVersionJson: string | null
  readonly overrun: bigint
  readonly inputTokens: bigint
  readonly outputTokens: bigint
  readonly cacheReadTokens: bigint
  readonly cacheWriteTokens: bigint
  readonly holdNanos: Nanos
  readonly holdListNanos: Nanos
  readonly costNanos: Nanos | null
  readonly listNanos: Nanos | null
  readonly lostListNanos: Nanos
  readonly balanceNanos: Nanos | null
}

/** An entry of the journal of credits, with the call it is about. */
export interface AuditedCredit {
  readonly id: string
  readonly accountId: string
  readonly kind: string
  readonly amountNanos: Nanos
  readonly callId: string | null
  readonly once: string | null
  readonly call: CreditedCall | null
  /** The price version that `once` names, if the entry is a rerate. */
  readonly priceVersionJson: string | null
}

export interface CreditedCall {
  readonly accountId: string
  readonly state: string
  readonly credited: bigint
  readonly costNanos: Nanos | null
  readonly usage: string | null
  readonly rating: string
}

/** The prefix of `credit.once` in an entry that prices a call again; the id of the price version follows. */
export const RERATE = 'rerate:'

/** The `credit.once` of an entry that gives back a call's cost: a call has at most one, and no entry after it. */
export const CREDIT_BACK = 'credit_back'

export function money(nanos: Nanos | null): string {
  return nanos === null ? 'none' : `${formatUsd(nanos)} USD`
}

/** The columns that are sums over calls and credits, by the names they have in the store. */
export const MONTH_SUMS = ['spent_nanos', 'held_nanos', 'lost_nanos'] as const
export const DAY_SUMS = [
  'requests',
  'input_tokens',
  'output_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'cost_nanos',
  'list_nanos',
  'credited_nanos',
  'unpriced_requests',
  'estimated_requests',
] as const

/** The figures of a hold floor are not sums: the largest of their calls, and whether the month is marked as having floors. */
export const FLOOR_FIGURES = ['cost_nanos', 'list_nanos', 'mark'] as const

/** A row of sums as it is kept and as it should be. Null: there is none, or there should be none. */
export interface SumsRow {
  readonly where: string
  readonly stored: Readonly<Record<string, bigint>> | null
  readonly derived: Readonly<Record<string, bigint>> | null
}

export interface AccountSums {
  readonly id: string
  readonly stored: AccountFigures & { readonly enforced: bigint }
  readonly derived: AccountFigures
  readonly topUps: bigint
  /** Calls that are marked as credited back, and calls that the journal says were. */
  readonly callsMarkedCredited: bigint
  readonly callsCreditedBack: bigint
  /** A key of another account, or of none, that calls of this account name. */
  readonly foreignKey: string | null
}

export interface AccountFigures {
  readonly creditedNanos: Nanos
  readonly chargedNanos: Nanos
  readonly heldNanos: Nanos
}

/** The numbers of records that an audit checks. */
export interface AuditCounts {
  readonly calls: number
  readonly keys: number
  readonly months: number
  readonly days: number
  readonly credits: number
}

/**
 * The books as they stood at one instant. Nothing that is booked meanwhile is seen. Rows are read in batches:
 * to wait for each row by itself would cost more than to check it.
 */
export interface BooksReader {
  /** Months such as "2025-01" whose calls were put away by the operator; the sums kept of them are taken as they stand. */
  readonly monthsAway: readonly string[]
  counts(): Promise<AuditCounts>
  /** Calls in the order of their ids. */
  calls(): Batches<AuditedCall>
  /** Entries about calls come call by call, in the order in which they were booked. */
  credits(): Batches<AuditedCredit>
  /** Adds up all calls and credits anew. Must be done before the methods below are called. */
  addUp(onCalls: (count: number) => void): Promise<void>
  /** `months`, `days`, `accounts` and `floors` give the rows whose sums differ, and may give others too. */
  months(): Batches<SumsRow>
  days(): Batches<SumsRow>
  accounts(): Batches<AccountSums>
  /** No rows in books from before there were hold floors. */
  floors(): Batches<SumsRow>
}

export type Batches<T> = AsyncIterable<readonly T[]>

export interface OpenBooks extends BooksReader {
  close(): Promise<void>
}
