/** The enumerations of the API and the database. Never rename a value: databases contain it. */

export const KEY_STATUSES = ['usable', 'revoked', 'expired'] as const
export type KeyStatus = (typeof KEY_STATUSES)[number]

export const ADMIN_ROLES = ['operator', 'admin', 'viewer'] as const
export type AdminRole = (typeof ADMIN_ROLES)[number]

/** The roles of people. Only people are members. */
export const PERSON_ROLES = [...ADMIN_ROLES, 'member'] as const
export type PersonRole = (typeof PERSON_ROLES)[number]

export const PERSON_STATUSES = ['active', 'blocked'] as const
export type PersonStatus = (typeof PERSON_STATUSES)[number]

export const CREDIT_KINDS = ['top_up', 'correction', 'credit_back'] as const
export type CreditKind = (typeof CREDIT_KINDS)[number]

export const BUDGET_MODES = ['exact', 'settled'] as const
export type BudgetMode = (typeof BUDGET_MODES)[number]

export const ACCOUNT_STATUSES = ['active', 'suspended'] as const
export type AccountStatus = (typeof ACCOUNT_STATUSES)[number]

/** A waiting call exists only in its node's memory. Refused calls have their own table. */
export const CALL_STATES = [
  'waiting',
  'in_flight',
  'deferred',
  'settled',
  'released',
  'interrupted',
  'refused',
] as const
export type CallState = (typeof CALL_STATES)[number]

export const CALL_FLAGS = [
  'streamed',
  'estimated',
  'unpriced',
  'overrun',
  'priced_as_requested',
  'credited',
] as const
export type CallFlag = (typeof CALL_FLAGS)[number]

export const USAGE_DIMENSIONS = ['day', 'hour', 'model', 'key', 'person', 'account'] as const
export type UsageDimension = (typeof USAGE_DIMENSIONS)[number]

export const EVENT_TYPES = [
  ...['key.created', 'key.updated', 'key.rotated', 'key.revoked', 'key.expired', 'key.expiring'],
  ...['key.budget.threshold', 'key.budget.exceeded', 'account.budget.threshold', 'account.budget.exceeded'],
  ...['balance.low', 'balance.exhausted', 'credit.added', 'call.unpriced', 'reload.refused'],
  'prices.updated',
  ...['account.created', 'account.updated', 'account.suspended', 'account.resumed'],
  ...['admin_key.created', 'admin_key.revoked'],
  ...['person.created', 'person.updated', 'person.moved', 'person.blocked', 'person.unblocked'],
  ...['webhook.created', 'webhook.updated', 'webhook.deleted', 'webhook.disabled', 'webhook.test'],
] as const
export type EventType = (typeof EVENT_TYPES)[number]

export const WEBHOOK_FORMATS = ['standard', 'slack'] as const
export type WebhookFormat = (typeof WEBHOOK_FORMATS)[number]

/** `gone`: the endpoint answered 410. `failing`: only failures for five days. `manual`: disabled by a PATCH. */
export const DISABLED_REASONS = ['gone', 'failing', 'manual'] as const
export type DisabledReason = (typeof DISABLED_REASONS)[number]

export const DELIVERY_STATUSES = ['pending', 'succeeded', 'failed'] as const
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number]

/** The APIs that the gateway serves. Calls are recorded with these names, so a name never changes. */
export const SURFACE_NAMES = ['messages', 'chat'] as const

export type Surface = (typeof SURFACE_NAMES)[number]

/** An account's own upstream. The key is encrypted, and bound to account, surface and URL; null: no credential. */
export interface OwnUpstream {
  readonly url: string
  readonly sealedKey: string | null
}

/** Upstream objects whose cost is known later. The names are stored with calls and never change. */
export type ObjectKind = 'message_batch' | 'batch' | 'response'

/** Who caused a change, in events and ledger entries. A session has the id and name of its key. */
export interface Actor {
  readonly kind: ActorKind
  readonly id: string | null
  readonly name: string | null
}

export const ACTOR_KINDS = ['admin_key', 'session', 'person', 'api_key', 'command_line', 'system'] as const
export type ActorKind = (typeof ACTOR_KINDS)[number]

export const COMMAND_LINE: Actor = { kind: 'command_line', id: null, name: null }
export const SYSTEM: Actor = { kind: 'system', id: null, name: null }

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

export const LOG_LEVELS = ['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

export function isLogged(level: LogLevel, importance: LogLevel): boolean {
  return LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(importance)
}

/** A pattern is an exact name, or the beginning of a name and a final `*`. */
export function matchesPattern(pattern: string, name: string): boolean {
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern
}

/** The closest known name; null if no name is close. For short names, such as options and settings. */
export function nearestName(name: string, known: readonly string[], changesMax: number): string | null {
  if (name.length > NAME_CHARS_MAX) return null
  let nearest: string | null = null
  let least = changesMax
  for (const candidate of known) {
    if (Math.abs(candidate.length - name.length) > least) continue
    const changes = changesBetween(name, candidate)
    if (changes > least || (changes === least && nearest !== null)) continue
    nearest = candidate
    least = changes
  }
  return nearest
}

/** Bounds the time of the comparison. No real name is longer. */
export const NAME_CHARS_MAX = 64

/** Edit distance, in which a transposition counts as one change. */
function changesBetween(a: string, b: string): number {
  let before: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const substituted = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next[j] = Math.min(substituted, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        next[j] = Math.min(next[j] ?? 0, (before[j - 2] ?? 0) + 1)
    }
    before = row
    row = next
  }
  return row[b.length] ?? 0
}

/** The models that a request can use, as far as its text shows. */
export const NO_MODELS = {
  names: [] as readonly string[],
  /** Why the request may use other models too, so that keys with an allowlist are refused. Null: it uses no others. */
  unknown: null as string | null,
  /** The input file of a batch. The database has its models if this key uploaded it here. */
  batchFile: null as string | null,
}

export type NamedModels = Readonly<typeof NO_MODELS>
