import type { Caller } from '../keys/credential.ts'

/** Roles in ascending order: each may do everything that the earlier ones may. */
const RANKS = ['api_key', 'viewer', 'admin', 'operator'] as const
export type Role = (typeof RANKS)[number]

/** The lowest role that may call an endpoint. `session`: any session. `anyone`: no credential is needed. */
export type Least = Role | 'session' | 'anyone'

/**
 * The account that an endpoint acts in. Admins and viewers act in their own; operators may name another with
 * `account=`.
 * - `installation`: none, `account=` is refused
 * - `one`: the named account, else `default`
 * - `many`: as `one`, and `account=*` is all accounts
 * - `of_id`: the account of the id in the path
 */
export type AccountRule = 'installation' | 'one' | 'many' | 'of_id'

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

/** With `metrics.public` it needs no key. */
export const METRICS_PATH = '/metrics'

/** Every own endpoint by its operation name: method and path, who may call it, and the account that it acts in. */
export const ENDPOINTS = {
  // Keys
  create_key: ['POST /v1/keys', 'admin', 'one'],
  list_keys: ['GET /v1/keys', 'viewer', 'many'],
  get_own_key: ['GET /v1/keys/me', 'api_key', 'installation'],
  get_key: ['GET /v1/keys/{id}', 'viewer', 'of_id'],
  update_key: ['PATCH /v1/keys/{id}', 'admin', 'of_id'],
  delete_key: ['DELETE /v1/keys/{id}', 'admin', 'of_id'],
  revoke_key: ['POST /v1/keys/{id}/revoke', 'admin', 'of_id'],
  rotate_key: ['POST /v1/keys/{id}/rotate', 'admin', 'of_id'],

  // Usage and calls
  get_usage: ['GET /v1/usage', 'api_key', 'many'],
  list_requests: ['GET /gateway/v1/requests', 'api_key', 'many'],
  list_key_requests: ['GET /v1/keys/{id}/requests', 'viewer', 'of_id'],
  get_request: ['GET /gateway/v1/requests/{id}', 'api_key', 'of_id'],
  get_request_bodies: ['GET /gateway/v1/requests/{id}/bodies', 'viewer', 'of_id'],

  // Credit
  get_balance: ['GET /gateway/v1/balance', 'viewer', 'one'],
  add_credit: ['POST /gateway/v1/credits', 'operator', 'one'],
  list_credits: ['GET /gateway/v1/credits', 'viewer', 'many'],

  // Webhooks and events
  create_webhook: ['POST /gateway/v1/webhooks', 'admin', 'one'],
  list_webhooks: ['GET /gateway/v1/webhooks', 'viewer', 'many'],
  get_webhook: ['GET /gateway/v1/webhooks/{id}', 'viewer', 'of_id'],
  update_webhook: ['PATCH /gateway/v1/webhooks/{id}', 'admin', 'of_id'],
  delete_webhook: ['DELETE /gateway/v1/webhooks/{id}', 'admin', 'of_id'],
  rotate_webhook_secret: ['POST /gateway/v1/webhooks/{id}/rotate-secret', 'admin', 'of_id'],
  test_webhook: ['POST /gateway/v1/webhooks/{id}/test', 'admin', 'of_id'],
  list_webhook_deliveries: ['GET /gateway/v1/webhooks/{id}/deliveries', 'viewer', 'of_id'],
  redeliver_webhook: ['POST /gateway/v1/webhooks/{id}/deliveries/{delivery_id}/redeliver', 'admin', 'of_id'],
  list_events: ['GET /gateway/v1/events', 'viewer', 'many'],

  // Accounts and admin keys
  create_account: ['POST /gateway/v1/accounts', 'operator', 'installation'],
  list_accounts: ['GET /gateway/v1/accounts', 'operator', 'installation'],
  get_own_account: ['GET /gateway/v1/accounts/self', 'viewer', 'one'],
  get_account: ['GET /gateway/v1/accounts/{id}', 'operator', 'installation'],
  update_account: ['PATCH /gateway/v1/accounts/{id}', 'operator', 'installation'],
  suspend_account: ['POST /gateway/v1/accounts/{id}/suspend', 'operator', 'installation'],
  resume_account: ['POST /gateway/v1/accounts/{id}/resume', 'operator', 'installation'],
  create_admin_key: ['POST /gateway/v1/admin-keys', 'admin', 'one'],
  list_admin_keys: ['GET /gateway/v1/admin-keys', 'viewer', 'many'],
  revoke_admin_key: ['POST /gateway/v1/admin-keys/{id}/revoke', 'admin', 'of_id'],

  // The installation
  get_overview: ['GET /gateway/v1/overview', 'viewer', 'one'],
  get_prices: ['GET /gateway/v1/prices', 'viewer', 'installation'],
  get_openapi: ['GET /gateway/openapi.json', 'viewer', 'installation'],
  get_metrics: [`GET ${METRICS_PATH}`, 'operator', 'installation'],

  // Sessions
  open_session: ['POST /gateway/v1/session', 'anyone', 'installation'],
  get_session: ['GET /gateway/v1/session', 'session', 'installation'],
  end_session: ['DELETE /gateway/v1/session', 'session', 'installation'],
} as const satisfies Readonly<Record<string, readonly [`${Method} /${string}`, Least, AccountRule]>>

export type OperationId = keyof typeof ENDPOINTS

export function roleOf(caller: Caller): Role {
  return caller.kind === 'api_key' ? 'api_key' : caller.role
}

export function isAtLeast(role: Role, least: Role): boolean {
  return RANKS.indexOf(role) >= RANKS.indexOf(least)
}

/**
 * The collections in a path whose records are named: `webhook` and `delivery` in
 * `/webhooks/{id}/deliveries/{delivery_id}`.
 */
export function nounsIn(template: string): string[] {
  return Array.from(template.matchAll(/([\w-]+)\/(?:\{\w+\}|me|self)(?![\w-])/g), ([, collection = '']) =>
    collection.replace('-', ' ').replace(/ies$/, 'y').replace(/s$/, ''),
  )
}
