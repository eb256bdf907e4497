import type { Nanos } from '../kernel/money.ts'
import type { NamedModels } from '../kernel/vocabulary.ts'
import type { Budget, KeyRefusal } from '../keys/credential.ts'
import type { LimitRefusal } from '../keys/key-store.ts'
import type { AccountTerms } from './account.ts'
import {
  type ClosingColumns,
  NOTHING_RECORDED,
  type OpeningColumns,
  type RecordColumns,
  type TokenCounts,
} from './call-columns.ts'

/**
 * Words, used once: a **hold** is an upper bound of what a call may cost, placed when the call is admitted; a hold is
 * **settled** (the actual cost is charged), **released** (nothing was consumed) or **interrupted** (the consumption will
 * never be known; no account is charged, and the hold counts as lost), exactly once. **Held** is in flight, **spent** is
 * settled; a **credit** adds to the balance, a **charge** takes from it.
 */

export interface CallOpening extends OpeningColumns {
  readonly digest: Uint8Array
  /** The instant that fixes the call's month and day. */
  readonly atMs: number
  /** The template of the path where the endpoint table has one, else the path. */
  readonly endpoint: string
  readonly hold: Hold
  readonly models: NamedModels
  /** Why the body can be read in two ways, or in none; a call of a key with limits is refused for that. */
  readonly ambiguity: string | null
  /** Why the call cannot be rated, and for which keys that is a reason to refuse it; null where it can be rated. */
  readonly unratable: Unratable | null
  /** False trades exactness for never waiting: only settled costs count against a limit, and holds do not. A budget's own mode overrides it. */
  readonly heldCounts: boolean
  /** The most that a call which nothing bounds holds of its account. */
  readonly unboundedNanos: Nanos
  /** The same call was held back before: asking again is not another use of the key. */
  readonly askedBefore: boolean
  /** Whether the call counts as a request: not a free one, a handshake, a standing hold or a turn that upstream begins. */
  readonly isRequest: boolean
  /** Upstream works on the call already, so the call is charged to its key even if the key was revoked since. */
  readonly hasBegun: boolean
  /** The call takes over a hold, or needs none: it is judged and counted, and nothing else is written. */
  readonly hasHold: boolean
}

/**
 * The method of a hold that a socket has before a turn begins. It is no record of the log until a turn has taken it over and
 * is settled; then it is shown as `WS`.
 */
export const HOLD_METHOD = 'HOLD'

/** The number of requests that a call counts as in usage: the handshake of a WebSocket is a record, and in no sum. */
export function requestsOf({ requestId, socketId }: Pick<CallOpening, 'requestId' | 'socketId'>): 0 | 1 {
  return socketId === requestId ? 0 : 1
}

/**
 * An upper bound of what a call may cost, at our prices and at list prices. `neededNanos`, of a batch: its lines but the most
 * expensive one, which must fit under every limit.
 */
export type Hold =
  /** A call that costs nothing holds nothing, and no cap or credit stands in its way. */
  | { readonly kind: 'none' }
  | {
      readonly kind: 'bound'
      readonly nanos: Nanos
      readonly listNanos: Nanos
      readonly neededNanos?: Nanos
    }
  /** A call that nothing bounds takes all that is left of its key's ceilings. */
  | { readonly kind: 'unbounded'; readonly neededNanos?: Nanos }

/**
 * The largest cost above its hold that a key has had with an endpoint and a model this month. Until the month is over
 * no hold of that key, endpoint and model is smaller: a shape of request whose bound is wrong overruns in one burst only.
 */
export interface HoldFloor {
  readonly nanos: Nanos
  readonly listNanos: Nanos
}

export interface Unratable {
  readonly reason: 'model_not_priced' | 'endpoint_not_metered' | 'batch_file_unknown'
  /** `limited`: under a cap or enforced credit; an endpoint that is not metered also with a list of allowed models. */
  readonly refuse: 'always' | 'limited' | 'never'
}

/** Why a call is not admitted, now or later, even if other calls cost less than they hold. */
export type CallRefusal =
  | { readonly reason: KeyRefusal | Unratable['reason'] | 'account_suspended' }
  | { readonly reason: 'ambiguous_body'; readonly detail: string }
  | LimitRefusal
  /** The cap is spent. */
  | { readonly reason: 'budget_exceeded'; readonly budget: Budget }
  /** The lines of a batch, without the most expensive, need this much, and that could never fit. A null budget: the credit. */
  | { readonly reason: 'batch_exceeds_budget'; readonly neededNanos: Nanos; readonly budget: Budget | null }
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
      /** Whether there is another account: then a credential of the installation is shared. */
      readonly hasOthers: boolean
      /** Null: those of the installation. */
      readonly terms: AccountTerms | null
    }
  | {
      readonly kind: 'refused'
      readonly refusal: CallRefusal
      /** The balance of the key's account; null for a revoked or expired key, whose holder must learn nothing. */
      readonly balanceNanos: Nanos | null
    }
  /** Calls in flight hold what is left. Once they are settled there may be room. */
  | {
      readonly kind: 'held'
      readonly by: HeldBy
      readonly keyId: string
      readonly budgetId: string
      readonly accountId: string
      readonly balanceNanos: Nanos
    }

export type HeldBy = { readonly limit: 'budget'; readonly budget: Budget } | { readonly limit: 'credit' }

export interface CallClosing extends ClosingColumns {
  readonly requestId: string
  /** An interrupted call was sent, and no word of it came back. It costs nothing. */
  readonly state: 'settled' | 'released' | 'interrupted'
  readonly atMs: number
  readonly tokens: TokenCounts
  /** Upstream broke off: the rest of the hold, beyond the list cost, counts as lost. */
  readonly losesRest?: boolean
}

export interface Settled {
  readonly balanceNanos: Nanos
  /** False if the call had been closed before; then nothing was booked again. */
  readonly booked: boolean
}

/** A call as it is stored. Figures are null while it is in flight. */
export interface CallRecord extends RecordColumns {
  readonly tokens: TokenCounts
  readonly code: string | null
}

/** The record of a call that never went upstream: one that waits, or one that was refused. */
export function unsentCall(
  parts: Pick<CallRecord, 'requestId' | 'accountId' | 'keyId' | 'state' | 'startedAtMs'> &
    Partial<CallRecord>,
): CallRecord {
  return { ...NOTHING_RECORDED, ...parts }
}
