import type { ErrorCode } from '../kernel/errors.ts'
import type { Nanos } from '../kernel/money.ts'
import type { AdminRole, BudgetMode, KeyStatus } from '../kernel/vocabulary.ts'
import type { Caller } from './credential.ts'

/** The records of keys, and the port through which they are stored. Instants are milliseconds (UTC). */

export type Metadata = Readonly<Record<string, string>>

/** Each member is a column of the key's row, or of its budget's row, and a field of the API. */
export interface KeyLimits {
  /** Null: no cap. 0: every call is refused. */
  readonly monthlyBudgetNanos: Nanos | null
  readonly dailyBudgetNanos: Nanos | null
  readonly requestsPerMinute: number | null
  /** Null: `budgets.mode` applies. */
  readonly budgetMode: BudgetMode | null
  /** Exact names, or patterns that end in `*`. Null: every model. Never empty. */
  readonly allowedModels: readonly string[] | null
  readonly logRequests: boolean
  readonly expiresAtMs: number | null
  readonly metadata: Metadata
}

export const NO_LIMITS: KeyLimits = {
  monthlyBudgetNanos: null,
  dailyBudgetNanos: null,
  requestsPerMinute: null,
  budgetMode: null,
  allowedModels: null,
  logRequests: false,
  expiresAtMs: null,
  metadata: {},
}

export const LIMIT_NAMES = Object.keys(NO_LIMITS) as (keyof KeyLimits)[]

/** Why a limit that is not about money refuses a call. */
export type LimitRefusal =
  | { readonly reason: 'model_not_allowed'; readonly model: string }
  | { readonly reason: 'models_unknown'; readonly detail: string }
  | OverLimit

/** A call above the rate limit, with everything that the refusal needs. */
export interface OverLimit {
  readonly reason: 'over_limit'
  readonly code: ErrorCode
  readonly message: string
  readonly retryAfterSeconds: number
}

/** Sums over the calls of a key's budget, for one month and for the current day. `lost` is at list price. */
export interface KeyMonth {
  readonly spentNanos: Nanos
  readonly heldNanos: Nanos
  readonly lostNanos: Nanos
  readonly daySpentNanos: Nanos
}

export interface KeyRecord extends KeyLimits {
  readonly id: string
  readonly accountId: string
  /** The budget that the key shares with those it was rotated from and into. */
  readonly budgetId: string
  /** The person whose key it is; null: the key of a service. */
  readonly personId: string | null
  /** Null: not a device. Until then a refresh makes the key usable again, even after it has expired. */
  readonly deviceUntilMs: number | null
  readonly name: string
  readonly prefix: string
  readonly last4: string
  readonly createdAtMs: number
  readonly revokedAtMs: number | null
  /** The last request with this key while it was usable, even if a limit refused it. */
  readonly lastUsedAtMs: number | null
  readonly rotatedFrom: string | null
  readonly month: KeyMonth
}

export interface NewKey
  extends KeyLimits,
    Pick<KeyRecord, 'id' | 'accountId' | 'name' | 'prefix' | 'last4' | 'createdAtMs'> {
  readonly digest: Uint8Array
}

/** The members that a PATCH may change. An absent member does not change. */
export type KeyChanges = Partial<Pick<KeyRecord, 'name' | keyof KeyLimits>>

/** The new key of a rotation, with the name and limits of the old one. */
export interface KeySuccessor extends Pick<NewKey, 'id' | 'digest' | 'prefix' | 'last4' | 'createdAtMs'> {
  /** When the old key expires; null: unchanged. A rotation never extends the old key. */
  readonly oldExpiresAtMs: number | null
}

export interface KeyQuery extends ListQuery {
  readonly status: KeyStatus | null
  readonly personId?: string | null
  /** Part of a name (case-insensitive), id, prefix or last four characters; or a pair such as `metadata.team:web`. */
  readonly search: string | null
  readonly atMs: number
}

export interface ListQuery {
  readonly accountId: string | null
  /** Only rows that come after this id in the list. */
  readonly after: string | null
  readonly limit: number
}

export interface Page<Row> {
  readonly rows: readonly Row[]
  readonly more: boolean
}

export interface AdminKeyRecord
  extends Pick<
    KeyRecord,
    'id' | 'name' | 'prefix' | 'last4' | 'createdAtMs' | 'revokedAtMs' | 'lastUsedAtMs'
  > {
  readonly role: AdminRole
  readonly accountId: string | null
  /** True for the key of TOLLGATE_ADMIN_KEY. A new value of this variable replaces the key. */
  readonly bootstrap: boolean
}

export interface NewAdminKey extends Omit<AdminKeyRecord, 'revokedAtMs' | 'lastUsedAtMs'> {
  readonly digest: Uint8Array
}

/** The admin keys of an account; null: of all accounts. */
export interface AdminScope {
  readonly accountId: string | null
  /** Whether to include operator keys, which belong to no account. */
  readonly operators: boolean
}

export interface AdminKeyQuery extends Omit<ListQuery, 'accountId'> {
  readonly scope: AdminScope
}

/** Whether the key works now. */
export function keyStatus(key: Pick<KeyRecord, 'revokedAtMs' | 'expiresAtMs'>, nowMs: number): KeyStatus {
  if (key.revokedAtMs !== null) return 'revoked'
  if (key.expiresAtMs !== null && key.expiresAtMs <= nowMs) return 'expired'
  return 'usable'
}

type EndOfKey = Pick<KeyRecord, 'revokedAtMs' | 'expiresAtMs' | 'deviceUntilMs'>

/** The status of the record. A device that can refresh itself is usable: whoever revokes it must find it. */
export function shownStatus(key: EndOfKey, nowMs: number): KeyStatus {
  const status = keyStatus(key, nowMs)
  return status === 'expired' && (key.deviceUntilMs ?? 0) > nowMs ? 'usable' : status
}

/** How far a sweep for keys that expire has come: the days before the expiry, and the last key that it read. */
export interface SweptTo {
  readonly toMs: number
  readonly daysLeft: readonly number[]
  readonly after: { readonly expiresAtMs: number; readonly id: string } | null
}

/** Sessions of the dashboard, each signed in with a key. The browser has a token, the store its digest. */

export interface NewSession {
  readonly digest: Uint8Array
  readonly keyId: string
  readonly atMs: number
  readonly lifeMs: number
  /** Maximum sessions per key. One more ends the oldest. */
  readonly sessionsMax: number
}

export interface SessionRecord {
  readonly caller: Caller
  readonly expiresAtMs: number
}
