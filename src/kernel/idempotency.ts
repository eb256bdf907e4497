/**
 * A command that its sender may repeat without knowing whether the first attempt arrived. The store keeps the name
 * in the transaction of the command itself, so that either both are there or neither is.
 */
export interface Idempotency {
  readonly accountId: string
  /** The sender's name for this command. */
  readonly name: string
  /** The fingerprint of everything that the sender asked for: the same name for another command is a mistake. */
  readonly fingerprint: Uint8Array
  readonly atMs: number
}

/** `repeated`: the command was done before, and `value` is its result, as it is now. */
export type IdempotentResult<T> =
  | { readonly kind: 'done'; readonly value: T }
  | { readonly kind: 'repeated'; readonly value: T }
  /** The name was used for another command. Nothing was done. */
  | { readonly kind: 'conflict' }
