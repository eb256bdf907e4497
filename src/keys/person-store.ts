import type { Actor } from '../kernel/actor.ts'
import type { PersonRole, PersonStatus } from '../kernel/vocabulary.ts'
import type { KeyLimits, KeyMonth, KeyRecord, ListQuery } from './key-store.ts'

/** The records of people, and the port through which they are stored. Instants are milliseconds (UTC). */

export const PERSON_LIMIT_NAMES = [
  'monthlyBudgetNanos',
  'dailyBudgetNanos',
  'requestsPerMinute',
  'budgetMode',
] as const

/** The limits of a person's budget, which all keys of the person share. */
export type PersonLimits = Pick<KeyLimits, (typeof PERSON_LIMIT_NAMES)[number]>

export interface PersonRecord extends PersonLimits {
  readonly id: string
  /** Operators belong to `default`, and act in all accounts. */
  readonly accountId: string
  readonly budgetId: string
  readonly email: string
  readonly name: string
  readonly role: PersonRole
  readonly status: PersonStatus
  readonly createdAtMs: number
  /** The last sign-in. */
  readonly lastSeenAtMs: number
  /** The number of usable keys, devices included. */
  readonly keys: number
  readonly month: KeyMonth
}

/** What the identity provider says of a person, and what the rules make of it. */
export interface SignIn extends Pick<PersonRecord, 'accountId' | 'email' | 'name' | 'role'> {
  /** The id of the person's record if the person is new. */
  readonly newId: string
  readonly issuer: string
  readonly subject: string
  /** The provider's refresh token, sealed. Null: the stored one stays. */
  readonly refreshToken: Uint8Array | null
  readonly atMs: number
}

export type SignedIn =
  | { readonly kind: 'signed_in'; readonly person: PersonRecord }
  | { readonly kind: 'blocked' }
  /** The rules name another account than the person's. Nothing changed. */
  | { readonly kind: 'other_account' }

export interface PersonQuery extends ListQuery {
  readonly status: PersonStatus | null
  /** Part of a name or email (case-insensitive), or of an id. */
  readonly search: string | null
  readonly atMs: number
}

export interface NewPersonSession {
  readonly digest: Uint8Array
  readonly personId: string
  readonly atMs: number
  readonly lifeMs: number
  /** Maximum sessions per person. One more ends the oldest. */
  readonly sessionsMax: number
}

/** A person whom the provider should be asked about. The claim keeps other nodes from asking too. */
export interface PersonToCheck extends Pick<PersonRecord, 'id' | 'accountId' | 'email' | 'role'> {
  readonly issuer: string
  readonly subject: string
  readonly refreshToken: Uint8Array
}

/** `keyless`: those that were due have no usable keys; there may be more. */
export type ClaimedCheck =
  | { readonly kind: 'person'; readonly person: PersonToCheck }
  | { readonly kind: 'keyless' | 'nobody' }

/** A new key of a person. The account's `members` limits decide the rest. */
export interface NewPersonKey
  extends Pick<KeyRecord, 'id' | 'accountId' | 'name' | 'prefix' | 'last4' | 'createdAtMs' | 'expiresAtMs'> {
  readonly personId: string
  readonly digest: Uint8Array
}

/** Why a person gets no new key. */
export type NoNewKey =
  /** The person is blocked, or was moved to another account. */
  | { readonly kind: 'not_active' }
  | { readonly kind: 'too_many_keys'; readonly keysMax: number }
  | { readonly kind: 'too_many_today'; readonly retryAfterSeconds: number }
  | { readonly kind: 'expires_too_late'; readonly latestMs: number }

/** What a new person of an account gets, and each of the person's keys. */
export interface MemberLimits
  extends Pick<
    KeyLimits,
    'monthlyBudgetNanos' | 'dailyBudgetNanos' | 'requestsPerMinute' | 'allowedModels' | 'logRequests'
  > {
  /** Usable keys of a person, without devices. */
  readonly keysMax: number
  /** The longest life of a key, which is also the default. */
  readonly keyDaysMax: number
}

export const MEMBER_LIMITS: MemberLimits = {
  keysMax: 5,
  keyDaysMax: 90,
  monthlyBudgetNanos: null,
  dailyBudgetNanos: null,
  requestsPerMinute: null,
  allowedModels: null,
  logRequests: false,
}

/** Changes for the next people of an account. */
export interface MemberLimitsStep {
  readonly accountId: string
  readonly changes: Partial<MemberLimits>
  /** The last person of the previous step. */
  readonly after: string | null
  readonly actor: Actor
  readonly atMs: number
}
