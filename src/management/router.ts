import { type Exchange, sendStream, sendWhole } from '../http/exchange.ts'
import type { BodyTimes } from '../http/incoming-request.ts'
import type { Target } from '../http/judge-head.ts'
import { type Refusal, redactRefusal, refuse } from '../kernel/errors.ts'
import { type Caller, type Credential, refuseKey } from '../keys/credential.ts'
import { carriesCredential, shapeError } from '../providers/surfaces.ts'
import { accountRoutes } from './accounts.ts'
import { adminKeyRoutes } from './admin-keys.ts'
import { creditRoutes } from './credits.ts'
import { eventRoutes } from './events.ts'
import { keyRoutes } from './keys.ts'
import { openApiRoute } from './openapi.ts'
import { METRICS_PATH, overviewRoutes } from './overview.ts'
import { isAtLeast, permissionOf, roleOf } from './permissions.ts'
import { parseQuery, readRequest } from './read-request.ts'
import { ReadTurns } from './read-turns.ts'
import { requestRoutes } from './requests.ts'
import { actorOf, resolveAccount } from './resolve-account.ts'
import {
  type Management,
  type OwnRequest,
  type OwnSession,
  type Refused,
  type Route,
  replyWhole,
  UNSTORED,
} from './route.ts'
import { findSession, isForeignSignIn, recogniseSignIn, sessionRoutes } from './session.ts'
import { usageRoute } from './usage.ts'
import { webhookRoutes } from './webhooks.ts'

/** All endpoints of the service itself. */
export const routes: readonly Route[] = [
  ...keyRoutes,
  usageRoute,
  ...requestRoutes,
  ...creditRoutes,
  ...accountRoutes,
  ...adminKeyRoutes,
  ...webhookRoutes,
  ...eventRoutes,
  ...overviewRoutes,
  ...sessionRoutes,
  openApiRoute(() => routes),
]

export type FoundRoute =
  | { readonly kind: 'route'; readonly route: Route; readonly params: readonly string[] }
  | { readonly kind: 'other_methods'; readonly allowed: readonly string[] }
  | { readonly kind: 'none' }

const patterns = routes.map((route) => {
  const parts = route.template.split('/').map((part) => (part.startsWith('{') ? '([^/]+)' : part))
  return { route, pattern: new RegExp(`^${parts.join('/').replace('.', '\\.')}$`) }
})

/** Linear search: routes are few and not on the hot path. HEAD is GET without a body. */
export function findRoute(method: string, path: string): FoundRoute {
  const matching = patterns.flatMap(({ route, pattern }) => {
    const found = pattern.exec(path)
    return found === null ? [] : [{ kind: 'route' as const, route, params: found.slice(1) }]
  })
  // A literal path wins over a parameter: `me` is not a key id.
  const exact = matching.filter(({ params }) => params.length === 0)
  const candidates = exact.length > 0 ? exact : matching
  const asked = method === 'HEAD' ? 'GET' : method
  const found = candidates.find(({ route }) => route.method === asked)
  if (found !== undefined) return found
  if (candidates.length === 0) return { kind: 'none' }
  const allowed = candidates.flatMap(({ route }) => (route.method === 'GET' ? ['GET', 'HEAD'] : route.method))
  return { kind: 'other_methods', allowed }
}

export interface OwnedParts {
  readonly management: Management
  readonly bodyTimes: BodyTimes
  /** Whether the metrics are shown without a key. */
  readonly metricsPublic: boolean
  /** Whether the client uses TLS, to us or to a trusted proxy. */
  isSecure(exchange: Exchange): boolean
}

/** The caller of a request, identified by a key or a session. */
interface Recognised {
  readonly kind: 'recognised'
  readonly caller: Caller
  readonly session: OwnSession | null
}

/**
 * Handles requests to own paths. The credential is checked before the path, so that a client without one cannot learn
 * which paths exist. A sign-in has its credential in the body.
 */
export async function handleOwned(
  exchange: Exchange,
  target: Target,
  credential: Credential,
  parts: OwnedParts,
): Promise<void> {
  if (parts.metricsPublic && target.path === METRICS_PATH)
    return await showMetrics(exchange, parts.management)
  const found = findRoute(exchange.method, target.path)
  const least = found.kind === 'route' ? permissionOf(found.route.operationId).least : null
  if (found.kind === 'route' && least === 'sign_in') {
    if (isForeignSignIn(exchange.headers))
      return deny(
        exchange,
        refuse('bad_request', 'Sign in from a page of this gateway, not from another site.'),
      )
    return await answerRoute(exchange, target, found, null, parts)
  }
  const recognised = await recognise(exchange, credential, parts)
  if (recognised.kind === 'refused') return deny(exchange, recognised.refusal)
  // Refuse an API key before answering 404: it must not learn which admin endpoints exist.
  const role = roleOf(recognised.caller)
  const isOpen = least === 'api_key' || (least === 'session' && recognised.session !== null)
  if (role === 'api_key' && !isOpen) {
    return deny(
      exchange,
      refuse('admin_key_required', 'This endpoint needs an admin key. An API key cannot call it.'),
    )
  }
  if (found.kind === 'none') return deny(exchange, noSuchEndpoint())
  if (found.kind === 'other_methods') return deny(exchange, refuseMethod(exchange, found.allowed))
  if (least !== null && least !== 'sign_in' && least !== 'session' && !isAtLeast(role, least)) {
    const message = `This endpoint needs the role ${least}; this admin key has the role ${role}.`
    return deny(exchange, refuse('insufficient_role', message))
  }
  await answerRoute(exchange, target, found, recognised, parts)
}

/** If a client sends both a key and a session, the key counts. */
async function recognise(
  exchange: Exchange,
  credential: Credential,
  { management }: OwnedParts,
): Promise<Recognised | Refused> {
  if (!carriesCredential(exchange.headers)) {
    const found = await findSession(exchange, management)
    if (found.kind === 'session') return { ...found, kind: 'recognised' }
    if (found.kind === 'refused') return found
  }
  if (credential.kind === 'refused') return credential
  // Own endpoints are not for other origins: a preflight is treated as a request without a key.
  if (credential.kind === 'preflight') return { kind: 'refused', refusal: refuseKey('unknown_key') }
  const caller = await management.store.lookUpKey(credential.digest, management.clock.nowMs(), 'own_path')
  if (caller.kind === 'refused') return { kind: 'refused', refusal: refuseKey(caller.reason) }
  return { kind: 'recognised', caller, session: null }
}

const reads = new ReadTurns()

async function answerRoute(
  exchange: Exchange,
  target: Target,
  { route, params }: Extract<FoundRoute, { kind: 'route' }>,
  recognised: Recognised | null,
  parts: OwnedParts,
): Promise<void> {
  const { management, bodyTimes } = parts
  const query = parseQuery(target.query)
  if (query.kind === 'refused') return deny(exchange, query.refusal)
  const scope = await resolveAccount(route, recognised?.caller ?? null, params, query.value, management)
  if (scope.kind === 'refused') return deny(exchange, scope.refusal)
  const sender = { accountId: scope.accountId, atMs: management.clock.nowMs() }
  const request = await readRequest(exchange, target, route, scope.parameters, sender, bodyTimes)
  if (request.kind === 'client_left') return
  if (request.kind === 'refused') return deny(exchange, request.refusal)
  const caller = recognised?.caller ?? (await recogniseSignIn(request.body, management))
  if (caller.kind === 'refused') return deny(exchange, caller.refusal)
  const { headers, res } = exchange
  const session = recognised?.session ?? null
  const own: OwnRequest = {
    ...request,
    exchange: { headers, res, isSecure: parts.isSecure(exchange) },
    ...{ caller, role: roleOf(caller), actor: actorOf(caller, session), session, params },
    ...{ accountId: scope.accountId, listedAccountId: scope.listedAccountId },
  }
  // A lookup of a call reads one row, and may wait for the call to be settled.
  const takesTurn = route.method === 'GET' && route.operationId !== 'get_request'
  const answer = takesTurn
    ? await reads.take(caller.keyId, () => route.handle(own, management))
    : await route.handle(own, management)
  if (route.method !== 'GET') management.webhooks.wake()
  if (answer === null)
    deny(
      exchange,
      refuse(
        'too_many_calls',
        'Too many requests with this key are waiting on this node. Send fewer at once.',
      ),
    )
  else if (answer.kind === 'refused') deny(exchange, answer.refusal)
  // HEAD of a stream is refused: its length would be known only after generating all of it.
  else if (answer.kind === 'stream' && exchange.method === 'HEAD')
    deny(exchange, refuseMethod(exchange, ['GET']))
  else if (answer.kind === 'stream')
    await sendStream(exchange, { ...answer.reply, chunks: reads.each(caller.keyId, answer.reply.chunks) })
  else sendWhole(exchange, answer.reply)
}

function deny(exchange: Exchange, refusal: Refusal): void {
  const clean = redactRefusal(refusal, exchange.names.redact)
  sendWhole(exchange, shapeError('own', clean, exchange.requestId), { close: refusal.close === true })
}

async function showMetrics(exchange: Exchange, management: Management): Promise<void> {
  const found = findRoute(exchange.method, METRICS_PATH)
  if (found.kind === 'other_methods') return deny(exchange, refuseMethod(exchange, found.allowed))
  const { contentType, text } = await management.scrapeMetrics()
  const { reply } = replyWhole(200, contentType, text, UNSTORED)
  sendWhole(exchange, reply)
}

function noSuchEndpoint(): Refusal {
  return refuse('not_found', 'There is no such endpoint. GET /gateway/openapi.json lists them.')
}

function refuseMethod({ method }: Exchange, methods: readonly string[]): Refusal {
  const allowed = methods.join(', ')
  const message = `This endpoint supports ${allowed}, not ${method}.`
  return refuse('method_not_allowed', message, { headers: ['allow', allowed] })
}
