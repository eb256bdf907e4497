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
