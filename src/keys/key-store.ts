import type { Idempotency, IdempotentResult } from '../kernel/idempotency.ts'
import type { Nanos } from '../kernel/money.ts'

/** What the service keeps about keys, and the port through which it is kept. Instants are milliseconds (UTC). */

export type KeyStatus = 'usable' | 'revoked' | 'expired'

/** What the column of a limit holds; with a question mark it may be null. `names` are kept as JSON. */
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
}

/**
 * The limits of a key, each a column of its row. Both stores write, read and change them by this list, and move them
 * from one to the other. CONTRIBUTING.md shows what one more limit takes.
 */
export const KEY_LIMITS = [
  /** Null is no cap; 0 is a cap that is spent from the start. */
  { name: 'monthlyBudgetNanos', column: 'monthly_budget_nanos', kind: 'nanos?' },
  /** Exact names; null is every model. Never empty. */
  { name: 'allowedModels', column: 'allowed_models', kind: 'names?' },
  { name: 'logRequests', column: 'log_requests', kind: 'flag' },
  { name: 'expiresAtMs', column: 'expires_at_ms', kind: 'count?' },
] as const satisfies readonly KeyLimitColumn[]

/** What a key may do. Every limit is looked up anew for each call, in the transaction that admits it. */
export type KeyLimits = {
  readonly [Limit in (typeof KEY_LIMITS)[number] as Limit['name']]: LimitKinds[Limit['kind']]
}

/** What a call is refused for by the limits of its key, but for money. */
export type LimitRefusal =
  | { readonly reason: 'model_not_allowed'; readonly model: string }
  | { readonly reason: 'models_unknown'; readonly detail: string }

/** What a key's calls of one month come to. `lost` is the list price of what a crash took from the books. */
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
  /** Of the month in which the record was asked for. */
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

/** `born_expired`: its expiry is past and this is no repetition, so nothing was made. */
export type KeyCreation = IdempotentResult<KeyRecord> | { readonly kind: 'born_expired' }

/** What an edit may change; what is absent stays. */
export type KeyChanges = Partial<Pick<KeyRecord, 'name' | keyof KeyLimits>>

/** `final`: the key is revoked or expired, and nothing about it changes any more. */
export type KeyEdit =
  | { readonly kind: 'changed'; readonly key: KeyRecord }
  | { readonly kind: 'final'; readonly key: KeyRecord }
  | { readonly kind: 'none' }

/** The new key of a rotation. It takes its name and its limits from the key that it follows. */
export interface KeySuccessor {
  readonly id: string
  readonly digest: Uint8Array
  readonly prefix: string
  readonly last4: string
  readonly createdAtMs: number
  /** When the old key ends; null leaves it as it is. It never ends later than it would have without this. */
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

/**
 * - `name`: by the alphabet, in any case.
 * - `spent`: those that spent most this month first; `last_used`: those that were used last.
 * - `attention`: those with a spent cap, those near it, those that end within a week, the others by how much of their cap is
 *   spent, and then those that are revoked or expired.
 */
export const KEY_SORTS = ['name', 'spent', 'last_used', 'attention'] as const
export type KeySort = (typeof KEY_SORTS)[number]

export interface SortedKeyQuery extends Omit<KeyQuery, 'after'> {
  readonly sort: KeySort
  readonly after: KeyPlace | null
}

/** A place in a sorted list: what the key there is sorted by, and its id. */
export interface KeyPlace {
  readonly by: string | bigint
  readonly id: string
}

/** A page of a sorted list, and the place behind it if there are more. */
export interface SortedKeys {
  readonly rows: readonly KeyRecord[]
  readonly next: KeyPlace | null
}

/** A part of a list, newest first. */
export interface Page<Row> {
  readonly rows: readonly Row[]
  readonly more: boolean
}

export interface AdminKeyRecord {
  readonly id: string
  readonly accountId: string
  readonly name: string
  readonly prefix: string
  readonly last4: string
  readonly createdAtMs: number
  readonly revokedAtMs: number | null
  /** The one that came from the configuration; a changed value there replaces it. */
  readonly bootstrap: boolean
}

export interface NewAdminKey {
  readonly id: string
  readonly accountId: string
  readonly name: string
  readonly digest: Uint8Array
  readonly prefix: string
  readonly last4: string
  readonly createdAtMs: number
  readonly bootstrap: boolean
}

/** Each method is one transaction. Ids are looked up within the account: those of others do not exist. */
export interface KeyStore {
  createKey(key: NewKey, idempotency: Idempotency | null): Promise<KeyCreation>
  getKey(accountId: string, id: string, atMs: number): Promise<KeyRecord | null>
  listKeys(query: KeyQuery): Promise<Page<KeyRecord>>
  listSortedKeys(query: SortedKeyQuery): Promise<SortedKeys>
  updateKey(accountId: string, id: string, changes: KeyChanges, atMs: number): Promise<KeyEdit>
  /** The first revocation counts, and one of an expired key changes nothing. Null if there is no such key. */
  revokeKey(accountId: string, id: string, atMs: number): Promise<KeyRecord | null>
  rotateKey(
    accountId: string,
    id: string,
    successor: KeySuccessor,
    idempotency: Idempotency | null,
  ): Promise<Rotation>

  /** A bootstrap key takes the place of the former bootstrap key, which stops working; the same value is kept. */
  createAdminKey(key: NewAdminKey): Promise<AdminKeyRecord>
  listAdminKeys(): Promise<readonly AdminKeyRecord[]>
  revokeAdminKey(id: string, atMs: number): Promise<AdminKeyRecord | null>
}

export function keyStatus(key: Pick<KeyRecord, 'revokedAtMs' | 'expiresAtMs'>, nowMs: number): KeyStatus {
  if (key.revokedAtMs !== null) return 'revoked'
  if (key.expiresAtMs !== null && key.expiresAtMs <= nowMs) return 'expired'
  return 'usable'
}

/** Sessions of people who signed in with an admin key. The browser has a token, the store its digest. */

export interface NewSession {
  readonly digest: Uint8Array
  readonly adminKeyId: string
  readonly atMs: number
  readonly lifeMs: number
  /** Sessions of one admin key. Beyond it the oldest end. */
  readonly sessionsMax: number
}

export interface SessionRecord {
  readonly adminKeyId: string
  readonly accountId: string
  readonly expiresAtMs: number
}

/** Nothing about a session is remembered between requests: each one asks, as each does about its key. */
export interface SessionStore {
  /** Null if the admin key is not in force. */
  openSession(session: NewSession): Promise<SessionRecord | null>
  /** Null if there is none, if it has expired, or if its admin key is not in force any more. */
  findSession(digest: Uint8Array, atMs: number): Promise<SessionRecord | null>
  endSession(digest: Uint8Array): Promise<void>
}
