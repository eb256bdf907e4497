import { NANOS_PER_USD, type Nanos } from '../kernel/money.ts'
import type { AccountStatus, IdempotentResult, OwnUpstream, Surface } from '../kernel/vocabulary.ts'

/** The terms of a call that its account sets; read with the row that admission locks. */
export interface AccountTerms {
  /** In billionths of the list cost; null: the installation's discount. */
  readonly discountBillionths: number | null
  /** The account's own upstream for the surface of the call. */
  readonly upstream: OwnUpstream | null
}

export interface AccountRecord {
  readonly id: string
  readonly name: string
  readonly status: AccountStatus
  readonly monthlyBudgetNanos: Nanos | null
  /** The cost of the calls of this month. */
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
