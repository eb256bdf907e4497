import type { Nanos } from '../kernel/money.ts'
import type { Admission, CallClosing, CallOpening, CallRecord, Settled } from './call.ts'

/** The account's money. `balance = credited - charged`, always. */
export interface Balance {
  readonly creditedNanos: Nanos
  readonly chargedNanos: Nanos
  readonly heldNanos: Nanos
  /** True from the moment credit was first added. */
  readonly enforced: boolean
}

export interface NewCredit {
  readonly id: string
  readonly accountId: string
  readonly amountNanos: Nanos
  readonly reason: string
  readonly atMs: number
}

/** The port through which calls are admitted and settled and money moves. Each method is one transaction. */
export interface LedgerStore {
  /** Is the key in force, may the call be rated? Then the hold is placed, durably, before a byte goes upstream. */
  admit(opening: CallOpening): Promise<Admission>
  /** Closes the call's hold and books its cost on the key's month, the balance and the day's rollup. Once. */
  settle(closing: CallClosing): Promise<Settled>
  getCall(requestId: string): Promise<CallRecord | null>
  getBalance(accountId: string): Promise<Balance>
  addCredit(credit: NewCredit): Promise<Balance>
}
