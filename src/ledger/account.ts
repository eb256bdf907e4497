import { type Bound, NANOS_PER_USD, type Nanos } from '../kernel/money.ts'
import type {
  AccountStatus,
  Actor,
  CreditKind,
  IdempotentResult,
  OwnUpstream,
  Surface,
} from '../kernel/vocabulary.ts'

/** The terms of a call that its account sets; read with the row that admission locks. */
export interface AccountTerms {
  /** In billionths of the list cost; null: the installation's discount. */
  readonly discountBillionths: number | null
  readonly upstream: OwnUpstream | null
}

export interface AccountRecord {
  readonly id: string
  readonly name: string
  readonly status: AccountStatus
  readonly monthlyBudgetNanos: Nanos | null
  readonly spentNanos: Nanos
  readonly heldNanos: Nanos
  readonly creditEnforced: boolean
  readonly balanceNanos: Nanos
  readonly discountBillionths: number | null
  readonly upstreams: Readonly<Record<Surface, OwnUpstream | null>>
  readonly metadata: Readonly<Record<string, string>>
  readonly createdAtMs: number
}

/** Absent members stay. */
export interface AccountChanges {
  readonly name?: string
  readonly monthlyBudgetNanos?: Nanos | null
  readonly creditEnforced?: boolean
  /** Enforces credit though the balance is 0 or less. */
  readonly force?: boolean
  readonly discountBillionths?: number | null
  readonly upstreams?: Readonly<Partial<Record<Surface, OwnUpstream | null>>>
  readonly metadata?: Readonly<Record<string, string>>
}

export interface NewAccount extends AccountChanges {
  readonly id: string
  readonly name: string
  readonly createdAtMs: number
}

export type AccountEdit =
  | { readonly kind: 'done'; readonly account: AccountRecord }
  | { readonly kind: 'none' }
  | { readonly kind: 'balance_not_positive'; readonly balanceNanos: Nanos }

export type AccountCreation =
  | IdempotentResult<AccountRecord>
  | { readonly kind: 'balance_not_positive'; readonly balanceNanos: Nanos }

export interface AccountQuery {
  readonly status: AccountStatus | null
  /** Part of a name in any case, or of an id. */
  readonly search: string | null
  readonly after: string | null
  readonly limit: number
  readonly atMs: number
}

export interface AccountList {
  readonly rows: readonly AccountRecord[]
  readonly more: boolean
  /** Over all accounts that match, not only those of the page. */
  readonly total: { readonly spentNanos: Nanos; readonly heldNanos: Nanos; readonly balanceNanos: Nanos }
}

/** The most that the credit of an account may sum up to: beyond it the columns of 64 bits would overflow. */
export const CREDITED_MAX: Nanos = 9_000_000_000n * NANOS_PER_USD

/** The account's money. `balance = credited - charged`, always. */
export interface Balance {
  readonly creditedNanos: Nanos
  readonly chargedNanos: Nanos
  readonly heldNanos: Nanos
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
