import type { Caller } from '../keys/credential.ts'

/** Roles in ascending order: each may do everything that the earlier ones may. */
const RANKS = ['api_key', 'viewer', 'admin', 'operator'] as const
export type Role = (typeof RANKS)[number]

/**
 * The account that an endpoint acts in. Admins and viewers act in their own; operators may name another with `account=`.
 * - `installation`: none, `account=` is refused
 * - `one`: the named account, else `default`
 * - `many`: as `one`, and `account=*` is all accounts
 * - `of_id`: the account of the id in the path
 */
export type AccountRule = 'installation' | 'one' | 'many' | 'of_id'

interface Permission {
  /** The lowest role that may call the endpoint. `session`: any session. `sign_in`: anyone, with the key in the body. */
  readonly least: Role | 'session' | 'sign_in'
  readonly account: AccountRule
}

const PERMISSIONS = {
  // Keys
  create_key: ['admin', 'one'],
  list_keys: ['viewer', 'many'],
  get_own_key: ['api_key', 'installation'],
  get_key: ['viewer', 'of_id'],
  update_key: ['admin', 'of_id'],
  delete_key: ['admin', 'of_id'],
  revoke_key: ['admin', 'of_id'],
  rotate_key: ['admin', 'of_id'],

  // Usage and calls
  get_usage: ['api_key', 'many'],
  list_requests: ['api_key', 'many'],
  list_key_requests: ['viewer', 'of_id'],
  get_request: ['api_key', 'of_id'],
  get_request_bodies: ['viewer', 'of_id'],

  // Credit
  get_balance: ['viewer', 'one'],
  add_credit: ['operator', 'one'],
  list_credits: ['viewer', 'many'],

  // Webhooks and events
  create_webhook: ['admin', 'one'],
  list_webhooks: ['viewer', 'many'],
  get_webhook: ['viewer', 'of_id'],
  update_webhook: ['admin', 'of_id'],
  delete_webhook: ['admin', 'of_id'],
  rotate_webhook_secret: ['admin', 'of_id'],
  test_webhook: ['admin', 'of_id'],
  list_webhook_deliveries: ['viewer', 'of_id'],
  redeliver_webhook: ['admin', 'of_id'],
  list_events: ['viewer', 'many'],

  // Accounts and admin keys
  create_account: ['operator', 'installation'],
  list_accounts: ['operator', 'installation'],
  get_own_account: ['viewer', 'one'],
  get_account: ['operator', 'installation'],
  update_account: ['operator', 'installation'],
  suspend_account: ['operator', 'installation'],
  resume_account: ['operator', 'installation'],
  create_admin_key: ['admin', 'one'],
  list_admin_keys: ['viewer', 'many'],
  revoke_admin_key: ['admin', 'of_id'],

  // The installation
  get_overview: ['viewer', 'one'],
  get_prices: ['viewer', 'installation'],
  get_openapi: ['viewer', 'installation'],
  get_metrics: ['operator', 'installation'],

  // Sessions
  open_session: ['sign_in', 'installation'],
  get_session: ['session', 'installation'],
  end_session: ['session', 'installation'],
} as const satisfies Readonly<Record<string, readonly [Permission['least'], AccountRule]>>

export type OperationId = keyof typeof PERMISSIONS

export function permissionOf(operationId: OperationId): Permission {
  const [least, account] = PERMISSIONS[operationId]
  return { least, account }
}

export function roleOf(caller: Caller): Role {
  return caller.kind === 'api_key' ? 'api_key' : caller.role
}

export function isAtLeast(role: Role, least: Role): boolean {
  return RANKS.indexOf(role) >= RANKS.indexOf(least)
}
