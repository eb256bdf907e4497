import type { Actor } from '../kernel/actor.ts'
import type { Idempotency, IdempotentResult } from '../kernel/idempotency.ts'
import type { Nanos } from '../kernel/money.ts'
import type { AdminRole, KeyStatus } from '../kernel/vocabulary.ts'
import type { Caller } from './credential.ts'

/** The records that the service keeps about keys, and the port through which it keeps them. Instants are milliseconds (UTC). */

/** The kinds of value in the column of a limit; with a question mark it may be null. `names` are kept as JSON. */
interface LimitKinds {
  readonly 'nanos?': Nanos | null
  readonly 'count?': number | null
  readonly 'names?': readonly string[] | null
  readonly flag: boolean
}

interface KeyLimitColumn {
  readonly name: string
  readonly column: string
  readonly kind: keyof LimitKinds
  /** The table of the column. A limit of the budget is shared with the keys that this one was rotated into. */
  readonly table: 'api_key' | 'budget'
}

/**
 * The limits of a key, each a column of its row. Both stores write, read and change them by this list, and move them
 * from one to the other. CONTRIBUTING.md shows what one more limit takes.
 */
export const KEY_LIMITS = [
  /** Null is no cap; 0 is a cap that is spent from the start. */
  { name: 'monthlyBudgetNanos', column: 'monthly_budget_nanos', kind: 'nanos?', table: 'budget' },
  /** Exact names; null is every model. Never empty. */
  { name: 'allowedModels', column: 'allowed_models', kind: 'names?', table: 'api_key' },
  { name: 'logRequests', column: 'log_requests', kind: 'flag', table: 'api_key' },
  { name: 'expiresAtMs', column: 'expires_at_ms', kind: 'count?', table: 'api_key' },
] as const satisfies readonly KeyLimitColumn[]

/** The limits of a key. Every limit is looked up anew for each call, in the transaction that admits the call. */
export type KeyLimits = {
  readonly [Limit in (typeof KEY_LIMITS)[number] as Limit['name']]: LimitKinds[Limit['kind']]
}

/** The reasons to refuse a call by the limits of its key, but for money. */
export type LimitRefusal =
  | { readonly reason: 'model_not_allowed'; readonly model: string }
  | { readonly reason: 'models_unknown'; readonly detail: string }

/** The sums of a key's calls of one month. `lost` is the list price of the calls that a crash took from the books. */
export interface KeyMonth {
  readonly spentNanos: Nanos
  readonly heldNanos: Nanos
  readonly lostNanos: Nanos
}

export interface KeyRecord extends KeyLimits {
  readonly id: string
  readonly accountId: string
  readonly name: string
  readonly prefix: string
  readonly last4: string
  readonly createdAtMs: number
  readonly revokedAtMs: number | null
  /** The last request that came with this key while it was usable, whether or not a limit then refused it. */
  readonly lastUsedAtMs: number | null
  /** The key in whose place this one was made. */
  readonly rotatedFrom: string | null
  /** The sums of the month in which the record was asked for. */
  readonly month: KeyMonth
}

export interface NewKey extends KeyLimits {
  readonly id: string
  readonly accountId: string
  readonly name: string
  readonly digest: Uint8Array
  readonly prefix: string
  readonly last4: string
  readonly createdAtMs: number
}

/** `born_expired`: the key's expiry is past and the request is no repetition, so nothing was made. */
export type KeyCreation = IdempotentResult<KeyRecord> | { readonly kind: 'born_expired' }

/** The members that an edit may change; absent members stay. */
export type KeyChanges = Partial<Pick<KeyRecord, 'name' | keyof KeyLimits>>

/** `final`: the key is revoked or expired, and nothing about it changes any more. */
export type KeyEdit =
  | { readonly kind: 'changed'; readonly key: KeyRecord }
  | { readonly kind: 'final'; readonly key: KeyRecord }
  | { readonly kind: 'none' }

/** The new key of a rotation. The successor takes its name and its limits from the key that it follows. */
export interface KeySuccessor {
  readonly id: string
  readonly digest: Uint8Array
  readonly prefix: string
  readonly last4: string
  readonly createdAtMs: number
  /** When the old key ends; null leaves its expiry as it is. A rotation never makes the old key end later. */
  readonly oldExpiresAtMs: number | null
}

export type Rotation =
  | IdempotentResult<KeyRecord>
  | { readonly kind: 'final'; readonly key: KeyRecord }
  | { readonly kind: 'none' }

export interface KeyQuery {
  readonly accountId: string
  readonly status: KeyStatus | null
  /** Part of a name (in any case), of an id, of a prefix or of the last four characters. */
  readonly search: string | null
  /** Only keys that come after this id in the list. */
  readonly after: string | null
  readonly limit: number
  readonly atMs: number
}

/** A page of a list, newest first. */
export interface Page<Row> {
  readonly rows: readonly Row[]
  readonly more: boolean
}

export interface AdminKeyRecord {
  readonly id: string
  readonly role: AdminRole
  /** Null for operators. */
  readonly accountId: string | null
  readonly name: string
  readonly prefix: string
  readonly last4: string
  readonly createdAtMs: number
  readonly revokedAtMs: number | null
  readonly lastUsedAtMs: number | null
  /** True of the admin key that came from the configuration; a changed value there replaces the key. */
  readonly bootstrap: boolean
}

export interface NewAdminKey {
  readonly id: string
  readonly role: AdminRole
  /** Null for operators. */
  readonly accountId: string | null
  readonly name: string
  readonly digest: Uint8Array
  readonly prefix: string
  readonly last4: string
  readonly createdAtMs: number
  readonly bootstrap: boolean
}

/** The admin keys of an account; null: of all accounts. */
export interface AdminScope {
  readonly accountId: string | null
  /** Whether operator keys, which belong to no account, are among them. */
  readonly operators: boolean
}

export interface AdminKeyQuery {
  readonly scope: AdminScope
  readonly after: string | null
  readonly limit: number
}

/** `configured`: the key is that of TOLLGATE_ADMIN_KEY. */
export type AdminKeyRevocation =
  | { readonly kind: 'revoked'; readonly key: AdminKeyRecord }
  | { readonly kind: 'none' | 'last_operator' | 'configured' }

/** Each method is one transaction. Ids are looked up within the account: ids of other accounts are not found. */
export interface KeyStore {
  createKey(key: NewKey, idempotency: Idempotency | null): Promise<KeyCreation>
  getKey(accountId: string, id: string, atMs: number): Promise<KeyRecord | null>
  listKeys(query: KeyQuery): Promise<Page<KeyRecord>>
  /** The names of keys, in any order. Keys that do not exist are left out. */
  readKeyNames(ids: readonly string[]): Promise<readonly { readonly id: string; readonly name: string }[]>
  updateKey(accountId: string, id: string, changes: KeyChanges, atMs: number): Promise<KeyEdit>
  /** The first revocation counts, and a revocation of an expired key changes nothing. Null if there is no such key. */
  revokeKey(accountId: string, id: string, atMs: number): Promise<KeyRecord | null>
  rotateKey(
    accountId: string,
    id: string,
    successor: KeySuccessor,
    idempotency: Idempotency | null,
  ): Promise<Rotation>

  /** A bootstrap key takes the place of the former bootstrap key, which stops working; the same value is kept. */
  createAdminKey(key: NewAdminKey, actor: Actor): Promise<AdminKeyRecord>
  /** Revokes the bootstrap key: the configuration names none any more. */
  dropBootstrapKeys(actor: Actor, atMs: number): Promise<void>
  /** Whether an operator key is usable. */
  hasOperatorKey(): Promise<boolean>
  listAdminKeys(query: AdminKeyQuery): Promise<Page<AdminKeyRecord>>
  revokeAdminKey(scope: AdminScope, id: string, actor: Actor, atMs: number): Promise<AdminKeyRevocation>
}

export function keyStatus(key: Pick<KeyRecord, 'revokedAtMs' | 'expiresAtMs'>, nowMs: number): KeyStatus {
  if (key.revokedAtMs !== null) return 'revoked'
  if (key.expiresAtMs !== null && key.expiresAtMs <= nowMs) return 'expired'
  return 'usable'
}

/** Sessions of the dashboard, each signed in with a key. The browser has a token, the store its digest. */

export interface NewSession {
  readonly digest: Uint8Array
  readonly keyId: string
  readonly atMs: number
  readonly lifeMs: number
  /** The most sessions of one key. Beyond this number the oldest end. */
  readonly sessionsMax: number
}

export interface SessionRecord {
  readonly caller: Caller
  readonly expiresAtMs: number
}

export interface AccountStore {
  hasAccount(id: string): Promise<boolean>
  /** The account of the record with this id; null if there is none, or if it belongs to no account. */
  findAccountOf(id: string): Promise<string | null>
}

/** Sessions are not cached between requests: each request asks the store, as it does about a key. */
export interface SessionStore {
  /** Null if the key is not usable. */
  openSession(session: NewSession): Promise<SessionRecord | null>
  /** Null if there is no such session, if it has expired, or if its key is not usable any more. */
  findSession(digest: Uint8Array, atMs: number): Promise<SessionRecord | null>
  endSession(digest: Uint8Array): Promise<void>
}
