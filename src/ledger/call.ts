import type { NamedModels } from '../kernel/model-names.ts'
import type { Nanos } from '../kernel/money.ts'
import type { Budget, KeyRefusal } from '../keys/credential.ts'
import type { LimitRefusal } from '../keys/key-store.ts'
import type { AccountTerms } from './account.ts'
import {
  type CallRecord,
  type ClosingColumns,
  NOTHING_RECORDED,
  type OpeningColumns,
  type TokenCounts,
} from './call-columns.ts'

/**
 * Terms: a **hold** is an upper bound of a call's cost, placed at admission. It is closed exactly once: **settled**
 * (the actual cost is charged), **released** (nothing was consumed) or **interrupted** (the consumption will never be
 * known; nobody is charged, and the hold counts as lost). **Held** is in flight, **spent** is settled. A **credit**
 * adds to the balance, a **charge** subtracts from it.
 */

export interface CallOpening extends OpeningColumns {
  readonly digest: Uint8Array
  /** Decides the call's month and day. */
  readonly atMs: number
  readonly hold: Reservation
  readonly models: NamedModels
  /** Why the body is ambiguous or unreadable; limited keys are refused for this reason. */
  readonly ambiguity: string | null
  /** Why the call cannot be rated, and which keys are refused for it; null if it can be rated. */
  readonly unratable: Unratable | null
  /** Whether holds count against caps. If not, calls never wait and caps are not exact. A budget can override this. */
  readonly countsHolds: boolean
  /** How much of its account's budget and credit an unbounded call holds at most. */
  readonly unboundedNanos: Nanos
  /** Whether an earlier attempt was blocked, so this one is not another use of the key. */
  readonly hasWaited: boolean
  /** Whether the call counts towards the request rate. Free calls and turns that upstream began do not. */
  readonly isRequest: boolean
  /** Whether upstream already works on the call. Then it is charged even if the key was revoked since. */
  readonly hasBegun: boolean
  /** Whether the call takes over a hold or needs none. Then it is checked and counted, and nothing else is written. */
  readonly isCheckOnly: boolean
  /** Whether a turn that upstream begins may take over the hold. The log shows the call only if a turn did. */
  readonly isStanding: boolean
}

/** The number of requests in usage: 0 for a WebSocket handshake, although it has a record. */
export function requestsOf({ requestId, socketId }: Pick<CallOpening, 'requestId' | 'socketId'>): 0 | 1 {
  return socketId === requestId ? 0 : 1
}

/** Amounts at our prices and at list prices. `neededNanos`: all lines of a batch except the most expensive one. */
export type Reservation =
  /** A free call. It holds nothing, and no cap or credit applies to it. */
  | { readonly kind: 'none' }
  | {
      readonly kind: 'bound'
      readonly nanos: Nanos
      readonly listNanos: Nanos
      readonly neededNanos?: Nanos
    }
  /** An unbounded call. It holds the rest of its key's budgets. */
  | { readonly kind: 'unbounded'; readonly neededNanos?: Nanos }

export interface Unratable {
  readonly reason: 'model_not_priced' | 'endpoint_not_metered' | 'batch_file_unknown'
  /** Which keys are refused. `limited` includes keys with an allowlist only if the endpoint is not metered. */
  readonly refuse: 'always' | 'limited' | 'never'
}

/** Why a call is refused and does not wait: the cost of calls in flight cannot change the decision. */
export type CallRefusal =
  | { readonly reason: KeyRefusal | Unratable['reason'] | 'account_suspended' }
  | { readonly reason: 'ambiguous_body'; readonly detail: string }
  | LimitRefusal
  | SpentRefusal
  /** The lines except the most expensive one can never fit. `budget` null: the credit is too small. */
  | { readonly reason: 'batch_exceeds_budget'; readonly neededNanos: Nanos; readonly budget: Budget | null }

export type SpentRefusal =
  | { readonly reason: 'budget_exceeded'; readonly budget: Budget }
  | { readonly reason: 'credit_exhausted' }

export type { Budget }

export type Admission =
  | {
      readonly kind: 'admitted'
      readonly keyId: string
      readonly budgetId: string
      readonly accountId: string
      readonly logRequests: boolean
      readonly balanceNanos: Nanos
      /** Whether other accounts exist, which may share the installation's upstream credential. */
      readonly hasOthers: boolean
      readonly terms: AccountTerms | null
    }
  | {
      readonly kind: 'refused'
      readonly refusal: CallRefusal
      /** The account's balance; null for a revoked or expired key, whose holder must not learn it. */
      readonly balanceNanos: Nanos | null
    }
  /** Calls in flight hold the rest of a limit. The call may be admitted when they have settled. */
  | {
      readonly kind: 'blocked'
      readonly by: BlockedBy
      readonly keyId: string
      readonly personId: string | null
      readonly budgetId: string
      readonly accountId: string
      readonly balanceNanos: Nanos
    }

export type BlockedBy = { readonly limit: 'budget'; readonly budget: Budget } | { readonly limit: 'credit' }

/** Whose sums a call changes. They never change for a call. */
export interface CallOwner {
  readonly accountId: string
  readonly budgetId: string
}

/** Containers of code execution that a call used. */
export interface UsedContainers {
  readonly callId: string
  /** Whose credential ran them: another credential's container may have the same id. */
  readonly scope: string
  readonly ids: readonly string[]
}

export interface CallClosing extends ClosingColumns {
  readonly requestId: string
  /** As in the answer of the admission. Absent: the store looks it up, which is another statement. */
  readonly owner?: CallOwner
  /** `interrupted`: sent, with unknown outcome. Costs nothing. */
  readonly state: 'settled' | 'released' | 'interrupted'
  readonly atMs: number
  readonly tokens: TokenCounts
  /** Upstream broke the reply, so the rest of the hold, beyond the list cost, counts as lost. */
  readonly losesRest?: boolean
}

export interface Settled {
  readonly balanceNanos: Nanos
  /** False if the call was already closed. */
  readonly applied: boolean
}

export type { CallRecord }

/** The record of a call that was not sent upstream: a waiting or a refused one. */
export function unsentCall(
  parts: Pick<CallRecord, 'requestId' | 'accountId' | 'keyId' | 'state' | 'startedAtMs'> &
    Partial<CallRecord>,
): CallRecord {
  return { ...NOTHING_RECORDED, ...parts }
}
