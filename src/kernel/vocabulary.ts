/** The closed sets of words that the API shows and the store keeps. A word never changes once it is recorded. */

export const KEY_STATUSES = ['usable', 'revoked', 'expired'] as const
export type KeyStatus = (typeof KEY_STATUSES)[number]

/** The roles of admin keys. Operators act in all accounts, the others in one. */
export const ADMIN_ROLES = ['operator', 'admin', 'viewer'] as const
export type AdminRole = (typeof ADMIN_ROLES)[number]

/** The kinds of entries in the ledger of credit. A correction may add or take. */
export const CREDIT_KINDS = ['top_up', 'correction', 'credit_back'] as const
export type CreditKind = (typeof CREDIT_KINDS)[number]

export const BUDGET_MODES = ['exact', 'settled'] as const
export type BudgetMode = (typeof BUDGET_MODES)[number]

export const ACCOUNT_STATUSES = ['active', 'suspended'] as const
export type AccountStatus = (typeof ACCOUNT_STATUSES)[number]

/** A waiting call is only in the memory of its node; a refused one is recorded apart from those that were admitted. */
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

/** `account` is for operators. */
export const USAGE_DIMENSIONS = ['day', 'model', 'key', 'account'] as const
export type UsageDimension = (typeof USAGE_DIMENSIONS)[number]

export const EVENT_TYPES = [
  ...['key.created', 'key.updated', 'key.rotated', 'key.revoked', 'key.expired', 'key.expiring'],
  ...['key.budget.threshold', 'key.budget.exceeded', 'account.budget.threshold', 'account.budget.exceeded'],
  ...['balance.low', 'balance.exhausted', 'credit.added', 'call.unpriced'],
  ...['account.created', 'account.updated', 'account.suspended', 'account.resumed'],
  ...['admin_key.created', 'admin_key.revoked'],
  ...['webhook.created', 'webhook.updated', 'webhook.deleted', 'webhook.disabled', 'webhook.test'],
] as const
export type EventType = (typeof EVENT_TYPES)[number]

export const WEBHOOK_FORMATS = ['standard', 'slack'] as const
export type WebhookFormat = (typeof WEBHOOK_FORMATS)[number]

/** `gone`: the endpoint answered 410. `failing`: only failures for five days. `manual`: disabled by an edit. */
export const DISABLED_REASONS = ['gone', 'failing', 'manual'] as const
export type DisabledReason = (typeof DISABLED_REASONS)[number]

export const DELIVERY_STATUSES = ['pending', 'succeeded', 'failed'] as const
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number]
