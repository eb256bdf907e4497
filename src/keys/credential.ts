import { type Refusal, refuse } from '../kernel/errors.ts'
import type { Nanos } from '../kernel/money.ts'
import type { AdminRole, OwnUpstream, PersonRole, Surface } from '../kernel/vocabulary.ts'

/** The credential of a request, judged by its form only. The database decides later whether the key is usable. */
export type Credential =
  | { readonly kind: 'key'; readonly digest: Buffer }
  /** A CORS preflight, which never has a credential. */
  | { readonly kind: 'preflight' }
  /** `hasKey`: a header has a key of this gateway, or one that claims to be. */
  | { readonly kind: 'refused'; readonly refusal: Refusal; readonly hasKey: boolean }

/** False if the request has no key, or only the credential of something else, such as `Basic` of a proxy in front. */
export function sendsKey(credential: Credential): boolean {
  return credential.kind === 'key' || (credential.kind === 'refused' && credential.hasKey)
}

export type KeyRefusal = 'unknown_key' | 'revoked_key' | 'expired_key'

/** `bare_key`: the Authorization header has a key without a scheme. */
type RefusedKey = KeyRefusal | 'admin_key' | 'bare_key' | 'no_key'

const MESSAGES: Readonly<Record<RefusedKey, string>> = {
  unknown_key: 'This is not a key of this gateway. Check the key and the base URL.',
  revoked_key: 'This API key was revoked. Ask the operator for a new one.',
  expired_key: 'This API key has expired. Ask the operator for a new one.',
  admin_key:
    'This is an admin key: it manages API keys and cannot call models. Create an API key with POST /v1/keys.',
  no_key: 'The request has no key. Send one as "Authorization: Bearer <key>" or as "x-api-key".',
  bare_key: 'The Authorization header has a key without "Bearer". Send it as "Authorization: Bearer <key>".',
}

/** The message says whether this key was revoked or has expired. It reveals nothing about other keys. */
export function refuseKey(reason: RefusedKey): Refusal {
  const unknownKey = reason !== 'revoked_key' && reason !== 'expired_key'
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

export interface KeyFunds {
  readonly keyCeilings: readonly Budget[]
  readonly accountCeilings: readonly Budget[]
  readonly creditEnforced: boolean
  readonly balanceNanos: Nanos
}

/** A person who signed in. */
export interface PersonCaller {
  readonly kind: 'person'
  readonly personId: string
  readonly name: string
  readonly role: PersonRole
  /** Null for operators, who act in all accounts. */
  readonly accountId: string | null
}

export type KeyCaller =
  | {
      readonly kind: 'api_key'
      readonly keyId: string
      /** Whose key it is; null: a service's. */
      readonly personId: string | null
      readonly name: string
      readonly accountId: string
      readonly funds: KeyFunds
      /** The account's keys then work only on own paths. */
      readonly isSuspended: boolean
      /** Whether other accounts exist, which may share the installation's upstream credential. */
      readonly hasOthers: boolean
      readonly upstreams: Readonly<Record<Surface, OwnUpstream | null>>
    }
  | {
      readonly kind: 'admin_key'
      readonly keyId: string
      readonly name: string
      readonly role: AdminRole
      /** Null for operators, who act in all accounts. */
      readonly accountId: string | null
    }

export type Caller = KeyCaller | PersonCaller

export function callerId(caller: Caller): string {
  return caller.kind === 'person' ? caller.personId : caller.keyId
}

export type KeyLookup = KeyCaller | { readonly kind: 'refused'; readonly reason: KeyRefusal }
