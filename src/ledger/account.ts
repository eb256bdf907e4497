import type { Actor } from '../kernel/actor.ts'
import { type Bound, NANOS_PER_USD, type Nanos } from '../kernel/money.ts'
import type { AccountStatus, CreditKind, OwnUpstream, Surface } from '../kernel/vocabulary.ts'
import type { ListQuery, Page } from '../keys/key-store.ts'

/** The account's terms for a call, read from the row that admission locks. */
export interface AccountTerms {
  /** The account's discount in billionths of the list cost; null if the installation's discount applies. */
  readonly discountBillionths: number | null
  readonly upstream: OwnUpstream | null
}

/** Whose credential serves a call: the account's id, or empty for the installation's. Ids of upstream's objects are its own. */
export function credentialScope({
  upstream,
  accountId,
}: Pick<AccountTerms, 'upstream'> & { readonly accountId: string }): string {
  return upstream === null ? '' : accountId
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

type ChangeableMember = 'name' | 'monthlyBudgetNanos' | 'creditEnforced' | 'discountBillionths' | 'metadata'

/** Absent members are not changed. */
export interface AccountChanges extends Partial<Pick<AccountRecord, ChangeableMember | 'status'>> {
  /** Enforces credit even if the balance is 0 or less. */
  readonly force?: boolean
  readonly upstreams?: Partial<AccountRecord['upstreams']>
}

export type NewAccount = AccountChanges & Pick<AccountRecord, 'id' | 'name' | 'createdAtMs'>

export interface AccountQuery extends Omit<ListQuery, 'accountId'> {
  readonly status: AccountStatus | null
  /** Part of a name (case-insensitive) or of an id. */
  readonly search: string | null
  readonly atMs: number
}

export interface AccountList extends Page<AccountRecord> {
  /** The sums over all accounts that match, not only those of this page. */
  readonly total: { readonly spentNanos: Nanos; readonly heldNanos: Nanos; readonly balanceNanos: Nanos }
}

/** Maximum total credit of an account. A larger amount could overflow 64-bit columns. */
export const CREDITED_MAX: Nanos = 9_000_000_000n * NANOS_PER_USD

/** The account's money. `balance = credited - charged`, always. */
export interface Balance extends Pick<AccountRecord, 'heldNanos' | 'creditEnforced'> {
  readonly creditedNanos: Nanos
  readonly chargedNanos: Nanos
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

export interface BatchFile {
  readonly accountId: string
  readonly keyId: string
  readonly fileId: string
  /** The models that its requests name; null if it is not a batch file, or is unreadable. */
  readonly models: readonly string[] | null
  /** The upper bound of its requests at batch prices; null if the file is unreadable. */
  readonly bound: Bound | null
  readonly atMs: number
}

/** A file whose requests all have a bound, with the models that they name. */
export interface BoundedFile {
  readonly models: readonly string[]
  readonly bound: Bound
}

export interface CreditBack extends Omit<NewCredit, 'amountNanos'> {
  readonly requestIds: readonly string[]
}

export type NotCredited =
  | 'not_found'
  | 'in_flight'
  /** The call cost nothing, or a rerate has already credited its cost. */
  | 'nothing_to_credit'

/** In the order of the request. */
export interface CreditBackOutcomes {
  readonly credited: readonly string[]
  readonly alreadyCredited: readonly string[]
  readonly notCredited: readonly { readonly requestId: string; readonly why: NotCredited }[]
}

export interface CreditedBack extends CreditBackOutcomes {
  readonly entry: CreditEntry
}
