import type { Bound, Nanos } from '../kernel/money.ts'
import type { Actor, CreditKind } from '../kernel/vocabulary.ts'

/** The account's money. `balance = credited - charged`, always. */
export interface Balance {
  readonly creditedNanos: Nanos
  readonly chargedNanos: Nanos
  readonly heldNanos: Nanos
  /** Calls are admitted only while credit is left. */
  readonly enforced: boolean
}

export interface NewCredit {
  readonly id: string
  readonly accountId: string
  /** A positive amount is a top-up, a negative one a correction. */
  readonly amountNanos: Nanos
  readonly reason: string
  readonly actor: Actor
  readonly atMs: number
}

/** An entry of the ledger. */
export interface CreditEntry extends NewCredit {
  readonly kind: CreditKind
  readonly balanceAfterNanos: Nanos
}

export interface CreditQuery {
  /** Null: all accounts. */
  readonly accountId: string | null
  /** Only entries that come after this id in the list. */
  readonly after: string | null
  readonly limit: number
}

/** A file of requests that a key uploaded through the gateway. */
export interface BatchFile {
  readonly accountId: string
  readonly keyId: string
  /** Upstream's id of the file. */
  readonly fileId: string
  /** Null: not the file of a batch, or one that cannot be read. */
  readonly models: readonly string[] | null
  /** The most that its requests may cost in a batch; null where the file could not be read for that. */
  readonly bound: Bound | null
  readonly atMs: number
}

/** A file whose requests were all bounded, with the models that they name. */
export interface BoundedFile {
  readonly models: readonly string[]
  readonly bound: Bound
}

/** The command that gives back the cost of calls, as one entry of the ledger. */
export interface CreditBack extends Omit<NewCredit, 'amountNanos'> {
  readonly requestIds: readonly string[]
}

/** Why a call was not credited, now or before. */
export type NotCredited =
  | 'not_found'
  /** The call has not ended yet. */
  | 'in_flight'
  /** The call cost nothing, or a new price has given its cost back. */
  | 'nothing_to_credit'

/** The outcome for each call, in the order asked. */
export interface CreditBackOutcomes {
  readonly credited: readonly string[]
  readonly alreadyCredited: readonly string[]
  readonly notCredited: readonly { readonly requestId: string; readonly why: NotCredited }[]
}

export interface CreditedBack extends CreditBackOutcomes {
  readonly entry: CreditEntry
}
