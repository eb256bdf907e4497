import * as accounts from './accounts.ts'
import * as adminKeys from './admin-keys.ts'
import * as credits from './credits.ts'
import * as events from './events.ts'
import * as keys from './keys.ts'
import { openApiRoute } from './openapi.ts'
import * as overview from './overview.ts'
import * as prices from './prices.ts'
import * as requests from './requests.ts'
import type { AccountRule, RequiredRole } from './roles.ts'
import type { Method, Route, RouteParts } from './route.ts'
import * as session from './session.ts'
import * as usage from './usage.ts'
import * as webhooks from './webhooks.ts'

interface Endpoint {
  readonly id: string
  readonly method: Method
  readonly path: `/${string}`
  readonly role: RequiredRole
  readonly account: AccountRule
  /** The kinds of the records in the path, in order. */
  readonly nouns?: readonly string[]
  /** Does not count as a change: whoever has lost a key must always be able to revoke it. */
  readonly isUnlimited?: true
  readonly route: RouteParts<unknown, unknown>
}

const getOpenapi = openApiRoute(() => routes)

/** Every own endpoint. `id` is the operation id of the OpenAPI document. */
const ENDPOINTS: readonly Endpoint[] = [
  // Keys
  {
    id: 'create_key',
    method: 'POST',
    path: '/v1/keys',
    role: 'admin',
    account: 'one',
    route: keys.createKey,
  },
  { id: 'list_keys', method: 'GET', path: '/v1/keys', role: 'viewer', account: 'many', route: keys.listKeys },
  {
    id: 'get_own_key',
    method: 'GET',
    path: '/v1/keys/me',
    role: 'api_key',
    account: 'none',
    nouns: ['key'],
    route: keys.getOwnKey,
  },
  {
    id: 'get_key',
    method: 'GET',
    path: '/v1/keys/{id}',
    role: 'viewer',
    account: 'of_id',
    nouns: ['key'],
    route: keys.getKey,
  },
  {
    id: 'update_key',
    method: 'PATCH',
    path: '/v1/keys/{id}',
    role: 'admin',
    account: 'of_id',
    nouns: ['key'],
    route: keys.updateKey,
  },
  {
    id: 'delete_key',
    method: 'DELETE',
    path: '/v1/keys/{id}',
    role: 'admin',
    account: 'of_id',
    nouns: ['key'],
    isUnlimited: true,
    route: keys.deleteKey,
  },
  {
    id: 'revoke_key',
    method: 'POST',
    path: '/v1/keys/{id}/revoke',
    role: 'admin',
    account: 'of_id',
    nouns: ['key'],
    isUnlimited: true,
    route: keys.revokeKey,
  },
  {
    id: 'rotate_key',
    method: 'POST',
    path: '/v1/keys/{id}/rotate',
    role: 'admin',
    account: 'of_id',
    nouns: ['key'],
    route: keys.rotateKey,
  },

  // Usage and calls
  {
    id: 'get_usage',
    method: 'GET',
    path: '/v1/usage',
    role: 'api_key',
    account: 'many',
    route: usage.getUsage,
  },
  {
    id: 'list_requests',
    method: 'GET',
    path: '/gateway/v1/requests',
    role: 'api_key',
    account: 'many',
    route: requests.listRequests,
  },
  {
    id: 'list_key_requests',
    method: 'GET',
    path: '/v1/keys/{id}/requests',
    role: 'viewer',
    account: 'of_id',
    nouns: ['key'],
    route: requests.listKeyRequests,
  },
  {
    id: 'get_request',
    method: 'GET',
    path: '/gateway/v1/requests/{id}',
    role: 'api_key',
    account: 'of_id',
    nouns: ['request'],
    route: requests.getRequest,
  },
  {
    id: 'get_request_bodies',
    method: 'GET',
    path: '/gateway/v1/requests/{id}/bodies',
    role: 'viewer',
    account: 'of_id',
    nouns: ['request'],
    route: requests.getRequestBodies,
  },

  // Credit
  {
    id: 'get_balance',
    method: 'GET',
    path: '/gateway/v1/balance',
    role: 'viewer',
    account: 'one',
    route: credits.getBalance,
  },
  {
    id: 'add_credit',
    method: 'POST',
    path: '/gateway/v1/credits',
    role: 'operator',
    account: 'one',
    route: credits.addCredit,
  },
  {
    id: 'list_credits',
    method: 'GET',
    path: '/gateway/v1/credits',
    role: 'viewer',
    account: 'many',
    route: credits.listCredits,
  },

  // Webhooks and events
  {
    id: 'create_webhook',
    method: 'POST',
    path: '/gateway/v1/webhooks',
    role: 'admin',
    account: 'one',
    route: webhooks.createWebhook,
  },
  {
    id: 'list_webhooks',
    method: 'GET',
    path: '/gateway/v1/webhooks',
    role: 'viewer',
    account: 'many',
    route: webhooks.listWebhooks,
  },
  {
    id: 'get_webhook',
    method: 'GET',
    path: '/gateway/v1/webhooks/{id}',
    role: 'viewer',
    account: 'of_id',
    nouns: ['webhook'],
    route: webhooks.getWebhook,
  },
  {
    id: 'update_webhook',
    method: 'PATCH',
    path: '/gateway/v1/webhooks/{id}',
    role: 'admin',
    account: 'of_id',
    nouns: ['webhook'],
    route: webhooks.updateWebhook,
  },
  {
    id: 'delete_webhook',
    method: 'DELETE',
    path: '/gateway/v1/webhooks/{id}',
    role: 'admin',
    account: 'of_id',
    nouns: ['webhook'],
    route: webhooks.deleteWebhook,
  },
  {
    id: 'rotate_webhook_secret',
    method: 'POST',
    path: '/gateway/v1/webhooks/{id}/rotate-secret',
    role: 'admin',
    account: 'of_id',
    nouns: ['webhook'],
    route: webhooks.rotateWebhookSecret,
  },
  {
    id: 'test_webhook',
    method: 'POST',
    path: '/gateway/v1/webhooks/{id}/test',
    role: 'admin',
    account: 'of_id',
    nouns: ['webhook'],
    route: webhooks.testWebhook,
  },
  {
    id: 'list_webhook_deliveries',
    method: 'GET',
    path: '/gateway/v1/webhooks/{id}/deliveries',
    role: 'viewer',
    account: 'of_id',
    nouns: ['webhook'],
    route: webhooks.listWebhookDeliveries,
  },
  {
    id: 'redeliver_webhook',
    method: 'POST',
    path: '/gateway/v1/webhooks/{id}/deliveries/{delivery_id}/redeliver',
    role: 'admin',
    account: 'of_id',
    nouns: ['webhook', 'delivery'],
    route: webhooks.redeliverWebhook,
  },
  {
    id: 'list_events',
    method: 'GET',
    path: '/gateway/v1/events',
    role: 'viewer',
    account: 'many',
    route: events.listEvents,
  },
  {
    id: 'get_event',
    method: 'GET',
    path: '/gateway/v1/events/{id}',
    role: 'viewer',
    account: 'of_id',
    nouns: ['event'],
    route: events.getEvent,
  },

  // Accounts and admin keys
  {
    id: 'create_account',
    method: 'POST',
    path: '/gateway/v1/accounts',
    role: 'operator',
    account: 'none',
    route: accounts.createAccount,
  },
  {
    id: 'list_accounts',
    method: 'GET',
    path: '/gateway/v1/accounts',
    role: 'operator',
    account: 'none',
    route: accounts.listAccounts,
  },
  {
    id: 'get_own_account',
    method: 'GET',
    path: '/gateway/v1/accounts/self',
    role: 'viewer',
    account: 'one',
    nouns: ['account'],
    route: accounts.getOwnAccount,
  },
  {
    id: 'get_account',
    method: 'GET',
    path: '/gateway/v1/accounts/{id}',
    role: 'operator',
    account: 'none',
    nouns: ['account'],
    route: accounts.getAccount,
  },
  {
    id: 'update_account',
    method: 'PATCH',
    path: '/gateway/v1/accounts/{id}',
    role: 'operator',
    account: 'none',
    nouns: ['account'],
    route: accounts.updateAccount,
  },
  {
    id: 'suspend_account',
    method: 'POST',
    path: '/gateway/v1/accounts/{id}/suspend',
    role: 'operator',
    account: 'none',
    nouns: ['account'],
    isUnlimited: true,
    route: accounts.suspendAccount,
  },
  {
    id: 'resume_account',
    method: 'POST',
    path: '/gateway/v1/accounts/{id}/resume',
    role: 'operator',
    account: 'none',
    nouns: ['account'],
    route: accounts.resumeAccount,
  },
  {
    id: 'create_admin_key',
    method: 'POST',
    path: '/gateway/v1/admin-keys',
    role: 'admin',
    account: 'one',
    route: adminKeys.createAdminKey,
  },
  {
    id: 'list_admin_keys',
    method: 'GET',
    path: '/gateway/v1/admin-keys',
    role: 'viewer',
    account: 'many',
    route: adminKeys.listAdminKeys,
  },
  {
    id: 'revoke_admin_key',
    method: 'POST',
    path: '/gateway/v1/admin-keys/{id}/revoke',
    role: 'admin',
    account: 'of_id',
    nouns: ['admin key'],
    isUnlimited: true,
    route: adminKeys.revokeAdminKey,
  },

  // The installation
  {
    id: 'get_overview',
    method: 'GET',
    path: '/gateway/v1/overview',
    role: 'viewer',
    account: 'one',
    route: overview.getOverview,
  },
  {
    id: 'get_prices',
    method: 'GET',
    path: '/gateway/v1/prices',
    role: 'viewer',
    account: 'one',
    route: prices.getPrices,
  },
  {
    id: 'set_price',
    method: 'PUT',
    path: '/gateway/v1/prices/{model}',
    role: 'operator',
    account: 'none',
    route: prices.setPrice,
  },
  {
    id: 'unset_price',
    method: 'DELETE',
    path: '/gateway/v1/prices/{model}',
    role: 'operator',
    account: 'none',
    nouns: ['set price'],
    route: prices.unsetPrice,
  },
  {
    id: 'push_prices',
    method: 'POST',
    path: '/gateway/v1/prices/push',
    role: 'operator',
    account: 'none',
    route: prices.pushPrices,
  },
  {
    id: 'get_openapi',
    method: 'GET',
    path: '/gateway/openapi.json',
    role: 'anyone',
    account: 'none',
    route: getOpenapi,
  },
  {
    id: 'get_metrics',
    method: 'GET',
    path: '/metrics',
    role: 'operator',
    account: 'none',
    route: overview.getMetrics,
  },

  // Sessions
  {
    id: 'open_session',
    method: 'POST',
    path: '/gateway/v1/session',
    role: 'anyone',
    account: 'none',
    isUnlimited: true,
    route: session.openSession,
  },
  {
    id: 'get_session',
    method: 'GET',
    path: '/gateway/v1/session',
    role: 'session',
    account: 'none',
    isUnlimited: true,
    route: session.getSession,
  },
  {
    id: 'end_session',
    method: 'DELETE',
    path: '/gateway/v1/session',
    role: 'session',
    account: 'none',
    isUnlimited: true,
    route: session.endSession,
  },
]

export const routes: readonly Route[] = ENDPOINTS.map(({ id, path, role, route, ...row }) => ({
  nouns: [],
  isUnlimited: false,
  ...row,
  ...{ operationId: id, template: path, requiredRole: role },
  ...route,
}))
