import { type Refusal, refuse } from '../kernel/errors.ts'
import type { Nanos } from '../kernel/money.ts'
import type { AdminRole, OwnUpstream, Surface } from '../kernel/vocabulary.ts'

/** The credential of a request, recognised by its form. The database decides later whether the key is usable. */
export type Credential =
  | { readonly kind: 'key'; readonly digest: Buffer }
  /** A browser's preflight before the real request. It never carries a credential. */
  | { readonly kind: 'preflight' }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

export type KeyRefusal = 'unknown_key' | 'revoked_key' | 'expired_key'

const MESSAGES: Readonly<Record<KeyRefusal | 'admin_key', string>> = {
  unknown_key: 'This is not a key of this gateway. Check the key and the base URL.',
  revoked_key: 'This API key was revoked. Ask the operator for a new one.',
  expired_key: 'This API key has expired. Ask the operator for a new one.',
  admin_key:
    'This is an admin key: it manages API keys and cannot call models. Create an API key with POST /v1/keys.',
}

/** The message says whether this key was revoked or has expired. It reveals nothing about other keys. */
export function refuseKey(reason: KeyRefusal | 'admin_key'): Refusal {
  const unknownKey = reason === 'unknown_key' || reason === 'admin_key'
  return refuse('invalid_api_key', MESSAGES[reason], { unknownKey })
}

export interface Budget {
  readonly scope: 'key' | 'account'
  readonly period: 'month' | 'day'
  readonly spentNanos: Nanos
  readonly heldNanos: Nanos
  readonly capNanos: Nanos
  readonly resetsAtMs: number
}

export interface KeyMeans {
  readonly keyCeilings: readonly Budget[]
  readonly accountCeilings: readonly Budget[]
  readonly creditEnforced: boolean
  readonly balanceNanos: Nanos
}

export type Caller =
  | {
      readonly kind: 'api_key'
      readonly keyId: string
      readonly name: string
      readonly accountId: string
      readonly means: KeyMeans
      /** Whether the account is suspended. Its keys then work only on own paths. */
      readonly isSuspended: boolean
      /** Whether there are other accounts, which share the installation's credential. */
      readonly hasOthers: boolean
      readonly upstreams: Readonly<Record<Surface, OwnUpstream | null>>
    }
  | AdminCaller

export interface AdminCaller {
  readonly kind: 'admin_key'
  readonly keyId: string
  readonly name: string
  readonly role: AdminRole
  /** Null for operators, who act in all accounts. */
  readonly accountId: string | null
}

export type KeyLookup = Caller | { readonly kind: 'refused'; readonly reason: KeyRefusal }
