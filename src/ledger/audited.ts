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
