import type { KeyRefusal } from '../keys/identity.ts'

/**
 * The port through which the store decides. Nothing about a key is remembered between requests: each one asks,
 * so that a key revoked on any node is refused by all of them from the moment the revocation returned.
 */

export type Caller =
  | { readonly kind: 'api_key'; readonly keyId: string; readonly accountId: string }
  | { readonly kind: 'admin_key'; readonly keyId: string; readonly accountId: string }

export type Recognition = Caller | { readonly kind: 'refused'; readonly reason: KeyRefusal }

export type Admission =
  | { readonly kind: 'admitted'; readonly keyId: string; readonly accountId: string }
  | { readonly kind: 'refused'; readonly reason: KeyRefusal }

export interface AdmissionStore {
  /** Whose key this is and whether it may be used now. Changes nothing. */
  recognise(digest: Uint8Array, atMs: number): Promise<Recognition>
  /** Decides about one call of an API key and, if it may go, records that the key was used. */
  admit(digest: Uint8Array, atMs: number): Promise<Admission>
}
