import { formatUsd, type Nanos } from '../kernel/money.ts'

/**
 * Prices a call from its record alone. Null: the version has no price for it, and the call costs nothing. Throws if
 * the record cannot be read. The same version comes as the same string, so what is made of it can be kept by it.
 */
export type RateAgain = (call: {
  readonly usage: string
  readonly rating: string
  readonly priceVersionJson: string
}) => { readonly costNanos: Nanos; readonly listNanos: Nanos } | null

/** Something kept is not what the records say. Both sides are text for people. */
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
  /** Of the version that `once` names, if the entry is a rerate. */
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

/** What `credit.once` begins with for an entry that prices a call again; the id of the price version follows. */
export const RERATE = 'rerate:'

/** What `credit.once` is for an entry that gives back what a call cost: there is one at most, and none after it. */
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

/** Not sums: the largest of their calls, and whether the month says that there is something to look up. */
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
  /** Of calls: those marked as credited back, and those of which the journal says so. */
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

/** How much there is to check. */
export interface AuditCounts {
  readonly calls: number
  readonly keys: number
  readonly months: number
  readonly days: number
  readonly credits: number
}

/**
 * The books as they stood at one instant. Nothing that is booked meanwhile is seen. What is read comes in batches:
 * to wait for each row by itself would cost more than to check it.
 */
export interface BooksReader {
  /** Such as "2025-01": its calls were put away by the operator, and what is known of them is taken as it stands. */
  readonly monthsAway: readonly string[]
  counts(): Promise<AuditCounts>
  /** In the order of their ids. */
  calls(): Batches<AuditedCall>
  /** Those about calls come call by call, in the order in which they were booked. */
  credits(): Batches<AuditedCredit>
  /** Adds up all calls and credits anew. Must be done before those below are asked. */
  addUp(onCalls: (count: number) => void): Promise<void>
  /** Each of these gives the rows whose sums differ, and may give others too. */
  months(): Batches<SumsRow>
  days(): Batches<SumsRow>
  accounts(): Batches<AccountSums>
  /** None in books from before there were floors. */
  floors(): Batches<SumsRow>
}

export type Batches<T> = AsyncIterable<readonly T[]>

export interface OpenBooks extends BooksReader {
  close(): Promise<void>
}
