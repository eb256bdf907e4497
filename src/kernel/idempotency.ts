/** An idempotency key. The store records it in the transaction of the command. */
export interface Idempotency {
  readonly accountId: string
  readonly name: string
  /** Fingerprint of the whole request: reuse of the key with a different request is an error. */
  readonly fingerprint: Uint8Array
  readonly atMs: number
}

export type IdempotentResult<T> =
  | { readonly kind: 'done'; readonly value: T }
  | { readonly kind: 'repeated'; readonly value: T }
  /** The key was used for a different request. Nothing was done. */
  | { readonly kind: 'conflict' }
