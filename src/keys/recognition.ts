import type { Nanos } from '../kernel/money.ts'
import type { KeyRefusal } from './identity.ts'

/** What a key has to pay with: its month and its account, as they stood when it was looked up. */
export interface KeyMeans {
  /** Null without a cap. */
  readonly capNanos: Nanos | null
  readonly spentNanos: Nanos
  readonly heldNanos: Nanos
  readonly creditEnforced: boolean
  /** Of the account. */
  readonly balanceNanos: Nanos
}

export type Caller =
  | {
      readonly kind: 'api_key'
      readonly keyId: string
      readonly accountId: string
      readonly means: KeyMeans
    }
  | { readonly kind: 'admin_key'; readonly keyId: string; readonly accountId: string }

export type Recognition = Caller | { readonly kind: 'refused'; readonly reason: KeyRefusal }

/**
 * Nothing about a key is remembered between requests: each one asks, so that a key revoked on any node is refused
 * by all of them from the moment the revocation returned.
 */
export interface RecognitionStore {
  /** Whose key this is and whether it may be used now. If it is an API key and may, its use is recorded. */
  recognise(digest: Uint8Array, atMs: number): Promise<Recognition>
}
