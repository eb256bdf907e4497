import type { Nanos } from '../kernel/money.ts'
import type { KeyRefusal } from '../keys/credential.ts'
import type { LimitRefusal } from '../keys/key-store.ts'
import type { ClosingColumns, OpeningColumns, RecordColumns, TokenCounts } from './call-columns.ts'

/**
 * Words, used once: a **hold** is an upper bound of what a call may cost, placed when it is admitted; it is
 * **settled** (the actual cost is charged), **released** (nothing was consumed) or **interrupted** (what was consumed
 * will never be known; nobody is charged, and the hold counts as lost), exactly once. **Held** is in flight, **spent** is
 * settled; a **credit** adds to the balance, a **charge** takes from it.
 */

/** What is known of a call before it goes upstream. */
export interface CallOpening extends OpeningColumns {
  readonly digest: Uint8Array
  /** The instant that fixes the call's month and day. */
  readonly atMs: number
  /** The template of the path where it is in the endpoint table, else the path. */
  readonly endpoint: string
  readonly hold: Hold
  readonly models: NamedModels
  /** Why the body can be read in two ways, or in none; a key with limits is refused for it. */
  readonly ambiguity: string | null
  /** Why the call cannot be rated, if it cannot, and for whom that is a reason to refuse it. */
  readonly unratable: Unratable | null
  /** False trades exactness for never waiting: only what is settled counts against a limit. */
  readonly heldCounts: boolean
  readonly ahead: Ahead
  /** The same call was held back before: asking again is not another use of the key. */
  readonly askedBefore: boolean
  /** Upstream works on it already, so that it is booked on its key even if that is not in force any more. */
  readonly hasBegun: boolean
}

/** How many it counts as in usage: the handshake of a WebSocket is a record, and in no sum. */
export function requestsOf({ requestId, socketId }: Pick<CallOpening, 'requestId' | 'socketId'>): 0 | 1 {
  return socketId === requestId ? 0 : 1
}

/** An upper bound of what a call may cost, at our prices and at list prices. */
export type Hold =
  /** It costs nothing: it holds nothing, and no cap or credit stands in its way. */
  | { readonly kind: 'none' }
  | { readonly kind: 'bound'; readonly nanos: Nanos; readonly listNanos: Nanos }
  /** Nothing limits it, so it takes all that is left of the limits it stands under. */
  | { readonly kind: 'unbounded' }

/**
 * The largest cost above its hold that a key has had with an endpoint and a model this month. Until the month is over
 * no bound there is smaller: a shape of request whose bound is wrong costs one burst and not every one.
 */
export interface HoldFloor {
  readonly nanos: Nanos
  readonly listNanos: Nanos
}

/** The models that a request can lead to, as far as they can be known before it runs. */
export interface NamedModels {
  readonly names: readonly string[]
  /** Why there may be more than the names say, or null. A key with an allowlist is refused for it. */
  readonly unknown: string | null
  /** A file of requests, of which the store knows the models if this key uploaded it here. */
  readonly batchFile: string | null
}

/**
 * Who waits already, and comes first. A call that others are ahead of is told how things stand and is not admitted,
 * even if there is room by now.
 */
export interface Ahead {
  /** Other calls with the same key. */
  readonly key: boolean
  /** Accounts of which calls wait for credit. */
  readonly accounts: readonly string[]
}

export const NOBODY_AHEAD: Ahead = { key: false, accounts: [] }

export interface Unratable {
  readonly reason: 'model_not_priced' | 'endpoint_not_metered' | 'batch_file_unknown'
  /** `limited`: only where a limit could not be kept, that is under a cap or enforced credit. */
  readonly refuse: 'always' | 'limited' | 'never'
}

/** Why a call is not admitted, now or later, whatever other calls come to. */
export type CallRefusal =
  | { readonly reason: KeyRefusal | Unratable['reason'] }
  | { readonly reason: 'ambiguous_body'; readonly detail: string }
  | LimitRefusal
  /** The cap is spent. */
  | { readonly reason: 'budget_exceeded'; readonly budget: Budget }
  | { readonly reason: 'credit_exhausted' }

/** How a key's month stands against its cap. */
export interface Budget {
  readonly spentNanos: Nanos
  readonly heldNanos: Nanos
  readonly capNanos: Nanos
  readonly resetsAtMs: number
}

export type Admission =
  | {
      readonly kind: 'admitted'
      readonly keyId: string
      readonly accountId: string
      readonly logRequests: boolean
      /** Before this call. */
      readonly balanceNanos: Nanos
    }
  | {
      readonly kind: 'refused'
      readonly refusal: CallRefusal
      /** Of the key's account; null where the key is not in force, and its holder is to learn nothing. */
      readonly balanceNanos: Nanos | null
    }
  /** Calls in flight hold what is left. Once they are settled there may be room. */
  | {
      readonly kind: 'held'
      readonly by: HeldBy
      readonly keyId: string
      readonly accountId: string
      readonly balanceNanos: Nanos
    }

export type HeldBy = { readonly limit: 'budget'; readonly budget: Budget } | { readonly limit: 'credit' }

/** What is known of a call when it has ended. */
export interface CallClosing extends ClosingColumns {
  readonly requestId: string
  /** Interrupted is a call that was sent and of which no word came back. It costs nothing. */
  readonly state: 'settled' | 'released' | 'interrupted'
  readonly atMs: number
  readonly tokens: TokenCounts
}

export interface Settled {
  /** After this call. */
  readonly balanceNanos: Nanos
  /** False if the call had been closed before; then nothing was booked again. */
  readonly booked: boolean
}

export type CallState = RecordColumns['state']

/** A call as it is kept. Figures are null while it is in flight. */
export interface CallRecord extends RecordColumns {
  readonly tokens: TokenCounts
  /** Of a refusal. */
  readonly code: string | null
}
