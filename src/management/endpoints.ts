import * as accounts from './accounts.ts'
import * as adminKeys from './admin-keys.ts'
import * as credits from './credits.ts'
import * as events from './events.ts'
import * as keys from './keys.ts'
import { openApiRoute } from './openapi.ts'
import * as overview from './overview.ts'
import * as requests from './requests.ts'
import type { AccountRule, RequiredRole } from './roles.ts'
import type { Method, Route, RouteParts } from './route.ts'
import * as session from './session.ts'
import * as usage from './usage.ts'
import * as webhooks from './webhooks.ts'

function route(
  operationId: string,
  methodAndPath: `${Method} /${string}`,
  requiredRole: RequiredRole,
  account: AccountRule,
  parts: RouteParts<unknown, unknown>,
): Route {
  const [method, template] = methodAndPath.split(' ') as [Method, string]
  return { operationId, method, template, requiredRole, account, ...parts }
}

/** Every own endpoint: operation id, method and path, required role, account that it acts in, and route. */
export const routes: readonly Route[] = [
  // Keys
  route('create_key', 'POST /v1/keys', 'admin', 'one', keys.createKey),
  route('list_keys', 'GET /v1/keys', 'viewer', 'many', keys.listKeys),
  route('get_own_key', 'GET /v1/keys/me', 'api_key', 'none', keys.getOwnKey),
  route('get_key', 'GET /v1/keys/{id}', 'viewer', 'of_id', keys.getKey),
  route('update_key', 'PATCH /v1/keys/{id}', 'admin', 'of_id', keys.updateKey),
  route('delete_key', 'DELETE /v1/keys/{id}', 'admin', 'of_id', keys.deleteKey),
  route('revoke_key', 'POST /v1/keys/{id}/revoke', 'admin', 'of_id', keys.revokeKey),
  route('rotate_key', 'POST /v1/keys/{id}/rotate', 'admin', 'of_id', keys.rotateKey),

  // Usage and calls
  route('get_usage', 'GET /v1/usage', 'api_key', 'many', usage.usageRoute),
  route('list_requests', 'GET /gateway/v1/requests', 'api_key', 'many', requests.listRequests),
  route('list_key_requests', 'GET /v1/keys/{id}/requests', 'viewer', 'of_id', requests.listKeyRequests),
  route('get_request', 'GET /gateway/v1/requests/{id}', 'api_key', 'of_id', requests.getRequest),
  route('get_request_bodies', 'GET /gateway/v1/requests/{id}/bodies', 'viewer', 'of_id', requests.getBodies),

  // Credit
  route('get_balance', 'GET /gateway/v1/balance', 'viewer', 'one', credits.getBalance),
  route('add_credit', 'POST /gateway/v1/credits', 'operator', 'one', credits.addCredit),
  route('list_credits', 'GET /gateway/v1/credits', 'viewer', 'many', credits.listCredits),

  // Webhooks and events
  route('create_webhook', 'POST /gateway/v1/webhooks', 'admin', 'one', webhooks.createWebhook),
  route('list_webhooks', 'GET /gateway/v1/webhooks', 'viewer', 'many', webhooks.listWebhooks),
  route('get_webhook', 'GET /gateway/v1/webhooks/{id}', 'viewer', 'of_id', webhooks.getWebhook),
  route('update_webhook', 'PATCH /gateway/v1/webhooks/{id}', 'admin', 'of_id', webhooks.updateWebhook),
  route('delete_webhook', 'DELETE /gateway/v1/webhooks/{id}', 'admin', 'of_id', webhooks.deleteWebhook),
  route(
    'rotate_webhook_secret',
    'POST /gateway/v1/webhooks/{id}/rotate-secret',
    'admin',
    'of_id',
    webhooks.rotateSecret,
  ),
  route('test_webhook', 'POST /gateway/v1/webhooks/{id}/test', 'admin', 'of_id', webhooks.testWebhook),
  route(
    'list_webhook_deliveries',
    'GET /gateway/v1/webhooks/{id}/deliveries',
    'viewer',
    'of_id',
    webhooks.listDeliveries,
  ),
  route(
    'redeliver_webhook',
    'POST /gateway/v1/webhooks/{id}/deliveries/{delivery_id}/redeliver',
    'admin',
    'of_id',
    webhooks.redeliver,
  ),
  route('list_events', 'GET /gateway/v1/events', 'viewer', 'many', events.listEvents),

  // Accounts and admin keys
  route('create_account', 'POST /gateway/v1/accounts', 'operator', 'none', accounts.createAccount),
  route('list_accounts', 'GET /gateway/v1/accounts', 'operator', 'none', accounts.listAccounts),
  route('get_own_account', 'GET /gateway/v1/accounts/self', 'viewer', 'one', accounts.getOwnAccount),
  route('get_account', 'GET /gateway/v1/accounts/{id}', 'operator', 'none', accounts.getAccount),
  route('update_account', 'PATCH /gateway/v1/accounts/{id}', 'operator', 'none', accounts.updateAccount),
  route(
    'suspend_account',
    'POST /gateway/v1/accounts/{id}/suspend',
    'operator',
    'none',
    accounts.suspendAccount,
  ),
  route(
    'resume_account',
    'POST /gateway/v1/accounts/{id}/resume',
    'operator',
    'none',
    accounts.resumeAccount,
  ),
  route('create_admin_key', 'POST /gateway/v1/admin-keys', 'admin', 'one', adminKeys.createAdminKey),
  route('list_admin_keys', 'GET /gateway/v1/admin-keys', 'viewer', 'many', adminKeys.listAdminKeys),
  route(
    'revoke_admin_key',
    'POST /gateway/v1/admin-keys/{id}/revoke',
    'admin',
    'of_id',
    adminKeys.revokeAdminKey,
  ),

  // The installation
  route('get_overview', 'GET /gateway/v1/overview', 'viewer', 'one', overview.getOverview),
  route('get_prices', 'GET /gateway/v1/prices', 'viewer', 'one', overview.getPrices),
  route(
    'get_openapi',
    'GET /gateway/openapi.json',
    'viewer',
    'none',
    openApiRoute(() => routes),
  ),
  route('get_metrics', 'GET /metrics', 'operator', 'none', overview.getMetrics),

  // Sessions
  route('open_session', 'POST /gateway/v1/session', 'anyone', 'none', session.openSession),
  route('get_session', 'GET /gateway/v1/session', 'session', 'none', session.getSession),
  route('end_session', 'DELETE /gateway/v1/session', 'session', 'none', session.endSession),
]
