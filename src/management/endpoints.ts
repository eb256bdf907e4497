import * as accounts from './accounts.ts'
import * as adminKeys from './admin-keys.ts'
import * as credits from './credits.ts'
import { endpoint, type OwnEndpoint } from './endpoint.ts'
import * as events from './events.ts'
import * as keys from './keys.ts'
import { openApiRoute } from './openapi.ts'
import * as overview from './overview.ts'
import { PEOPLE_ENDPOINTS } from './people-endpoints.ts'
import { PRICE_ENDPOINTS } from './price-endpoints.ts'
import * as requests from './requests.ts'
import type { Route } from './route.ts'
import * as session from './session.ts'
import * as usage from './usage.ts'
import * as webhooks from './webhooks.ts'

const getOpenapi = openApiRoute(() => routes)

/** Every own endpoint. `id` is the operation id of the OpenAPI document. */
const ENDPOINTS: readonly OwnEndpoint[] = [
  // Keys
  endpoint('POST', '/v1/keys', 'create_key', 'admin', 'one', keys.createKey, { isForOwn: true }),
  endpoint('GET', '/v1/keys', 'list_keys', 'member', 'many', keys.listKeys),
  endpoint('GET', '/v1/keys/me', 'get_own_key', 'api_key', 'none', keys.getOwnKey, { nouns: ['key'] }),
  endpoint('GET', '/v1/keys/{id}', 'get_key', 'member', 'of_id', keys.showKey, { nouns: ['key'] }),
  endpoint('PATCH', '/v1/keys/{id}', 'update_key', 'admin', 'of_id', keys.updateKey, {
    nouns: ['key'],
    isForOwn: true,
  }),
  endpoint('DELETE', '/v1/keys/{id}', 'delete_key', 'admin', 'of_id', keys.deleteKey, {
    nouns: ['key'],
    isUnlimited: true,
    isForOwn: true,
  }),
  endpoint('POST', '/v1/keys/{id}/revoke', 'revoke_key', 'admin', 'of_id', keys.revokeKey, {
    nouns: ['key'],
    isUnlimited: true,
    isForOwn: true,
  }),
  endpoint('POST', '/v1/keys/{id}/rotate', 'rotate_key', 'admin', 'of_id', keys.rotateKey, {
    nouns: ['key'],
    isForOwn: true,
  }),

  // Usage and calls
  endpoint('GET', '/v1/usage', 'get_usage', 'api_key', 'many', usage.getUsage),
  endpoint('GET', '/gateway/v1/requests', 'list_requests', 'api_key', 'many', requests.listRequests),
  endpoint(
    'GET',
    '/v1/keys/{id}/requests',
    'list_key_requests',
    'member',
    'of_id',
    requests.listKeyRequests,
    { nouns: ['key'] },
  ),
  endpoint('GET', '/gateway/v1/requests/{id}', 'get_request', 'api_key', 'of_id', requests.getRequest, {
    nouns: ['request'],
  }),
  endpoint(
    'GET',
    '/gateway/v1/requests/{id}/bodies',
    'get_request_bodies',
    'viewer',
    'of_id',
    requests.getRequestBodies,
    { nouns: ['request'] },
  ),

  // Credit
  endpoint('GET', '/gateway/v1/balance', 'get_balance', 'viewer', 'one', credits.showBalance),
  endpoint('POST', '/gateway/v1/credits', 'add_credit', 'operator', 'one', credits.addCredit),
  endpoint('GET', '/gateway/v1/credits', 'list_credits', 'viewer', 'many', credits.listCredits),

  // Webhooks and events
  endpoint('POST', '/gateway/v1/webhooks', 'create_webhook', 'admin', 'one', webhooks.createWebhook),
  endpoint('GET', '/gateway/v1/webhooks', 'list_webhooks', 'viewer', 'many', webhooks.listWebhooks),
  endpoint('GET', '/gateway/v1/webhooks/{id}', 'get_webhook', 'viewer', 'of_id', webhooks.getWebhook, {
    nouns: ['webhook'],
  }),
  endpoint('PATCH', '/gateway/v1/webhooks/{id}', 'update_webhook', 'admin', 'of_id', webhooks.updateWebhook, {
    nouns: ['webhook'],
  }),
  endpoint(
    'DELETE',
    '/gateway/v1/webhooks/{id}',
    'delete_webhook',
    'admin',
    'of_id',
    webhooks.deleteWebhook,
    { nouns: ['webhook'] },
  ),
  endpoint(
    'POST',
    '/gateway/v1/webhooks/{id}/rotate-secret',
    'rotate_webhook_secret',
    'admin',
    'of_id',
    webhooks.rotateWebhookSecret,
    { nouns: ['webhook'] },
  ),
  endpoint('POST', '/gateway/v1/webhooks/{id}/test', 'test_webhook', 'admin', 'of_id', webhooks.testWebhook, {
    nouns: ['webhook'],
  }),
  endpoint(
    'GET',
    '/gateway/v1/webhooks/{id}/deliveries',
    'list_webhook_deliveries',
    'viewer',
    'of_id',
    webhooks.listWebhookDeliveries,
    { nouns: ['webhook'] },
  ),
  endpoint(
    'POST',
    '/gateway/v1/webhooks/{id}/deliveries/{delivery_id}/redeliver',
    'redeliver_webhook',
    'admin',
    'of_id',
    webhooks.redeliverWebhook,
    { nouns: ['webhook', 'delivery'] },
  ),
  endpoint('GET', '/gateway/v1/events', 'list_events', 'viewer', 'many', events.listEvents),
  endpoint('GET', '/gateway/v1/events/{id}', 'get_event', 'viewer', 'of_id', events.getEvent, {
    nouns: ['event'],
  }),

  // Accounts and admin keys
  endpoint('POST', '/gateway/v1/accounts', 'create_account', 'operator', 'none', accounts.createAccount),
  endpoint('GET', '/gateway/v1/accounts', 'list_accounts', 'operator', 'none', accounts.listAccounts),
  endpoint('GET', '/gateway/v1/accounts/self', 'get_own_account', 'viewer', 'one', accounts.getOwnAccount, {
    nouns: ['account'],
  }),
  endpoint('GET', '/gateway/v1/accounts/{id}', 'get_account', 'operator', 'none', accounts.showAccount, {
    nouns: ['account'],
  }),
  endpoint(
    'PATCH',
    '/gateway/v1/accounts/{id}',
    'update_account',
    'operator',
    'none',
    accounts.updateAccount,
    { nouns: ['account'] },
  ),
  endpoint(
    'POST',
    '/gateway/v1/accounts/{id}/suspend',
    'suspend_account',
    'operator',
    'none',
    accounts.suspendAccount,
    { nouns: ['account'], isUnlimited: true },
  ),
  endpoint(
    'POST',
    '/gateway/v1/accounts/{id}/resume',
    'resume_account',
    'operator',
    'none',
    accounts.resumeAccount,
    { nouns: ['account'] },
  ),
  endpoint('POST', '/gateway/v1/admin-keys', 'create_admin_key', 'admin', 'one', adminKeys.createAdminKey),
  endpoint('GET', '/gateway/v1/admin-keys', 'list_admin_keys', 'viewer', 'many', adminKeys.listAdminKeys),
  endpoint(
    'POST',
    '/gateway/v1/admin-keys/{id}/revoke',
    'revoke_admin_key',
    'admin',
    'of_id',
    adminKeys.revokeAdminKey,
    { nouns: ['admin key'], isUnlimited: true },
  ),

  ...PEOPLE_ENDPOINTS,

  // The installation
  endpoint('GET', '/gateway/v1/overview', 'get_overview', 'viewer', 'one', overview.getOverview),
  ...PRICE_ENDPOINTS,
  endpoint('GET', '/gateway/openapi.json', 'get_openapi', 'anyone', 'none', getOpenapi),
  endpoint('GET', '/metrics', 'get_metrics', 'operator', 'none', overview.getMetrics),

  // Sessions
  endpoint('POST', '/gateway/v1/session', 'open_session', 'anyone', 'none', session.openSession, {
    isUnlimited: true,
  }),
  endpoint('GET', '/gateway/v1/session', 'get_session', 'session', 'none', session.getSession, {
    isUnlimited: true,
  }),
  endpoint('DELETE', '/gateway/v1/session', 'end_session', 'session', 'none', session.endSession, {
    isUnlimited: true,
  }),
]

export const routes: readonly Route[] = ENDPOINTS.map(({ id, path, role, route, ...row }) => ({
  nouns: [],
  isUnlimited: false,
  isForOwn: false,
  ...row,
  operationId: id,
  template: path,
  requiredRole: role,
  ...route,
}))
