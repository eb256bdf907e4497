import { fieldOf } from '../api/field-names.ts'
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

type Endpoint = readonly [
  methodAndPath: `${Method} /${string}`,
  requiredRole: RequiredRole,
  account: AccountRule,
  parts: RouteParts<unknown, unknown>,
]

const getOpenapi = openApiRoute(() => routes)

/** Every own endpoint: method and path, required role, account that it acts in, and route. */
const ENDPOINTS: readonly Endpoint[] = [
  // Keys
  ['POST /v1/keys', 'admin', 'one', keys.createKey],
  ['GET /v1/keys', 'viewer', 'many', keys.listKeys],
  ['GET /v1/keys/me', 'api_key', 'none', keys.getOwnKey],
  ['GET /v1/keys/{id}', 'viewer', 'of_id', keys.getKey],
  ['PATCH /v1/keys/{id}', 'admin', 'of_id', keys.updateKey],
  ['DELETE /v1/keys/{id}', 'admin', 'of_id', keys.deleteKey],
  ['POST /v1/keys/{id}/revoke', 'admin', 'of_id', keys.revokeKey],
  ['POST /v1/keys/{id}/rotate', 'admin', 'of_id', keys.rotateKey],

  // Usage and calls
  ['GET /v1/usage', 'api_key', 'many', usage.getUsage],
  ['GET /gateway/v1/requests', 'api_key', 'many', requests.listRequests],
  ['GET /v1/keys/{id}/requests', 'viewer', 'of_id', requests.listKeyRequests],
  ['GET /gateway/v1/requests/{id}', 'api_key', 'of_id', requests.getRequest],
  ['GET /gateway/v1/requests/{id}/bodies', 'viewer', 'of_id', requests.getRequestBodies],

  // Credit
  ['GET /gateway/v1/balance', 'viewer', 'one', credits.getBalance],
  ['POST /gateway/v1/credits', 'operator', 'one', credits.addCredit],
  ['GET /gateway/v1/credits', 'viewer', 'many', credits.listCredits],

  // Webhooks and events
  ['POST /gateway/v1/webhooks', 'admin', 'one', webhooks.createWebhook],
  ['GET /gateway/v1/webhooks', 'viewer', 'many', webhooks.listWebhooks],
  ['GET /gateway/v1/webhooks/{id}', 'viewer', 'of_id', webhooks.getWebhook],
  ['PATCH /gateway/v1/webhooks/{id}', 'admin', 'of_id', webhooks.updateWebhook],
  ['DELETE /gateway/v1/webhooks/{id}', 'admin', 'of_id', webhooks.deleteWebhook],
  ['POST /gateway/v1/webhooks/{id}/rotate-secret', 'admin', 'of_id', webhooks.rotateWebhookSecret],
  ['POST /gateway/v1/webhooks/{id}/test', 'admin', 'of_id', webhooks.testWebhook],
  ['GET /gateway/v1/webhooks/{id}/deliveries', 'viewer', 'of_id', webhooks.listWebhookDeliveries],
  [
    'POST /gateway/v1/webhooks/{id}/deliveries/{delivery_id}/redeliver',
    'admin',
    'of_id',
    webhooks.redeliverWebhook,
  ],
  ['GET /gateway/v1/events', 'viewer', 'many', events.listEvents],

  // Accounts and admin keys
  ['POST /gateway/v1/accounts', 'operator', 'none', accounts.createAccount],
  ['GET /gateway/v1/accounts', 'operator', 'none', accounts.listAccounts],
  ['GET /gateway/v1/accounts/self', 'viewer', 'one', accounts.getOwnAccount],
  ['GET /gateway/v1/accounts/{id}', 'operator', 'none', accounts.getAccount],
  ['PATCH /gateway/v1/accounts/{id}', 'operator', 'none', accounts.updateAccount],
  ['POST /gateway/v1/accounts/{id}/suspend', 'operator', 'none', accounts.suspendAccount],
  ['POST /gateway/v1/accounts/{id}/resume', 'operator', 'none', accounts.resumeAccount],
  ['POST /gateway/v1/admin-keys', 'admin', 'one', adminKeys.createAdminKey],
  ['GET /gateway/v1/admin-keys', 'viewer', 'many', adminKeys.listAdminKeys],
  ['POST /gateway/v1/admin-keys/{id}/revoke', 'admin', 'of_id', adminKeys.revokeAdminKey],

  // The installation
  ['GET /gateway/v1/overview', 'viewer', 'one', overview.getOverview],
  ['GET /gateway/v1/prices', 'viewer', 'one', overview.getPrices],
  ['GET /gateway/openapi.json', 'viewer', 'none', getOpenapi],
  ['GET /metrics', 'operator', 'none', overview.getMetrics],

  // Sessions
  ['POST /gateway/v1/session', 'anyone', 'none', session.openSession],
  ['GET /gateway/v1/session', 'session', 'none', session.getSession],
  ['DELETE /gateway/v1/session', 'session', 'none', session.endSession],
]

/** The name of a route's constant is the operation id, in snake case. */
const operationIds = new Map(
  Object.entries({
    ...{ ...accounts, ...adminKeys, ...credits, ...events, ...keys, ...overview, ...requests },
    ...{ ...session, ...usage, ...webhooks, getOpenapi },
  }).map(([name, value]): [unknown, string] => [value, fieldOf(name)]),
)

export const routes: readonly Route[] = ENDPOINTS.map(([methodAndPath, requiredRole, account, parts]) => {
  const [method, template] = methodAndPath.split(' ') as [Method, string]
  return { operationId: operationIds.get(parts) ?? '', method, template, requiredRole, account, ...parts }
})
