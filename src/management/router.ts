import { type Exchange, sendStream, sendWhole } from '../http/exchange.ts'
import type { Target } from '../http/validate-head.ts'
import type { Actor } from '../kernel/actor.ts'
import { type ErrorCode, type Refusal, redactRefusal, refuse } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import {
  type Caller,
  type Credential,
  callerId,
  type PersonCaller,
  refuseKey,
  sendsKey,
} from '../keys/credential.ts'
import { shapeError } from '../providers/surfaces.ts'
import { ChangeRate } from './change-rate.ts'
import { routes } from './endpoints.ts'
import { parseQuery, readRequest } from './read-request.ts'
import { queuesOf, RequestQueues, TOO_MANY } from './request-queues.ts'
import { DEFAULT_ACCOUNT, resolveAccount } from './resolve-account.ts'
import { isAtLeast, type RequiredRole, roleOf } from './roles.ts'
import {
  type Answer,
  type Management,
  type OwnReply,
  type OwnRequest,
  type OwnSession,
  type Refused,
  type Route,
  refused,
  refuseMethod,
  replyJson,
} from './route.ts'
import { sessionOf } from './session.ts'

export type FoundRoute =
  | { readonly kind: 'route'; readonly route: Route; readonly params: readonly string[] }
  | { readonly kind: 'other_methods'; readonly allowed: readonly string[]; readonly acceptsApiKeys: boolean }
  | { readonly kind: 'none' }

const patterns = routes.map((route) => {
  const parts = route.template.split('/').map((part) => (part.startsWith('{') ? '([^/]+)' : part))
  return { route, pattern: new RegExp(`^${parts.join('/').replace('.', '\\.')}$`) }
})

/** Finds a route. A linear search is fast enough for so few routes. HEAD counts as GET without a body. */
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
  const acceptsApiKeys = candidates.some(({ route }) => route.requiredRole === 'api_key')
  return { kind: 'other_methods', allowed, acceptsApiKeys }
}

interface Authenticated {
  readonly kind: 'authenticated'
  readonly caller: Caller
  readonly session: OwnSession | null
}

const ANYONE: Authenticated = {
  kind: 'authenticated',
  caller: { kind: 'admin_key', keyId: '', name: '', role: 'viewer', accountId: null },
  session: null,
}

/** The credential is checked before the path: a client without one cannot learn which paths exist. */
export async function handleOwned(
  exchange: Exchange,
  target: Target,
  credential: Credential,
  management: Management,
): Promise<void> {
  const found = findRoute(exchange.method, target.path)
  const isPublic = management.metricsPublic && target.path === '/metrics'
  const required = isPublic ? 'anyone' : found.kind === 'route' ? found.route.requiredRole : null
  const sender = required === 'anyone' ? ANYONE : await authenticate(exchange, credential, management)
  if (sender.kind === 'refused') return deny(exchange, withSignIn(sender.refusal, management))
  // Refuse an API key before answering 404: it must not learn which admin endpoints exist.
  const role = roleOf(sender.caller)
  const isOpen = required === 'api_key' || (required === 'session' && sender.session !== null)
  if (role === 'api_key' && !isOpen)
    return refuseWith(
      'admin_key_required',
      found.kind === 'other_methods' && found.acceptsApiKeys
        ? `With an API key, use ${found.allowed.join(' or ')} for this endpoint, not ${exchange.method}.`
        : 'This endpoint needs an admin key, but the request has an API key. Send an admin key.',
    )
  if (found.kind === 'none')
    return refuseWith(
      'not_found',
      'This endpoint does not exist. GET /gateway/openapi.json lists all endpoints.',
    )
  if (found.kind === 'other_methods') return deny(exchange, refuseMethod(exchange, found.allowed))
  if (required !== 'anyone' && !mayDo(sender.caller, found.route))
    return refuseWith('insufficient_role', explainRole(sender.caller, found.route.requiredRole))
  await answerRoute(exchange, target, found, sender, management)

  function refuseWith(code: ErrorCode, message: string): void {
    deny(exchange, refuse(code, message))
  }
}

/** Tells the dashboard where people sign in, because it has no other way to know before somebody has. */
function withSignIn(refusal: Refusal, { signInPath }: Management): Refusal {
  return signInPath === null ? refusal : { ...refusal, details: { sign_in_path: signInPath } }
}

/** People may do what their role permits, and some things with their own records only. */
function mayDo(caller: Caller, { requiredRole: required, isForOwn }: Route): boolean {
  if (required === 'anyone' || required === 'session') return true
  return isAtLeast(roleOf(caller), required) || (isForOwn && caller.kind === 'person')
}

function explainRole(caller: Caller, required: RequiredRole): string {
  const role = roleOf(caller)
  return caller.kind === 'person'
    ? `You have the role ${role}, but this needs the role ${required}. Ask an admin.`
    : `This admin key has the role ${role}, but this endpoint needs the role ${required}. Use an admin key with that role.`
}

/** Whether the request may touch only the person's own records, because the role does not reach all of the account. */
function isWalled({ role }: PersonCaller, { requiredRole: required }: Route): boolean {
  if (role === 'member') return true
  return required !== 'anyone' && required !== 'session' && !isAtLeast(role, required)
}

/** If a client sends both a key and a session, the key counts. */
async function authenticate(
  exchange: Exchange,
  credential: Credential,
  management: Management,
): Promise<Authenticated | Refused> {
  if (!sendsKey(credential)) {
    const found = await sessionOf(exchange, management)
    if (found.kind === 'session') return { ...found, kind: 'authenticated' }
    if (found.kind === 'refused') return found
  }
  if (credential.kind === 'refused') return credential
  // Own endpoints are not for other origins: a preflight is treated as a request without a key.
  if (credential.kind === 'preflight') return { kind: 'refused', refusal: refuseKey('no_key') }
  const caller = await management.store.lookUpKey(credential.digest, management.clock.nowMs())
  if (caller.kind === 'refused') return { kind: 'refused', refusal: refuseKey(caller.reason) }
  return { kind: 'authenticated', caller, session: null }
}

const changesOfMinute = new ChangeRate(limits.changesPerMinuteMax)
const changesOfPeople = new ChangeRate(limits.personChangesPerMinuteMax)

/** The refusal of a change beyond the limit of the minute. The changes of people do not count for their account. */
function refuseChange(caller: Caller, accountId: string, atMs: number): Refusal | null {
  const isPerson = caller.kind === 'person'
  const seconds = isPerson
    ? changesOfPeople.admit(caller.personId, atMs)
    : changesOfMinute.admit(accountId, atMs)
  if (seconds === null) return null
  const [who, max] = isPerson
    ? ['You have', limits.personChangesPerMinuteMax]
    : ['This account has', limits.changesPerMinuteMax]
  const message = `${who} made ${max} changes in this minute. Retry in ${seconds} s.`
  return refuse('rate_limit_exceeded', message, { headers: ['retry-after', String(seconds)] })
}

/** Separate, so that a change need not wait for exports. */
const reads = new RequestQueues()
const changes = new RequestQueues()

async function answerRoute(
  exchange: Exchange,
  target: Target,
  { route, params }: Extract<FoundRoute, { kind: 'route' }>,
  { caller, session }: Authenticated,
  management: Management,
): Promise<void> {
  const query = parseQuery(target.query)
  if (query.kind === 'refused') return deny(exchange, query.refusal)
  const scope = await resolveAccount(route, caller, params, query.value, management)
  if (scope.kind === 'refused') return deny(exchange, scope.refusal)
  const { accountId, isNamed: isAccountNamed, listedAccountId, parameters } = scope
  const sender = { accountId, actorId: callerId(caller), atMs: management.clock.nowMs() }
  const isChange = route.method !== 'GET' && !route.isUnlimited && route.account !== 'none'
  const tooMany = isChange ? refuseChange(caller, accountId, sender.atMs) : null
  if (tooMany !== null) return deny(exchange, tooMany)
  const isOwnOnly = caller.kind === 'person' && isWalled(caller, route)
  const wall = isOwnOnly ? await refuseForeign(caller, route, params, management) : null
  if (wall !== null) return deny(exchange, wall.refusal)
  const request = await readRequest(exchange, target, route, parameters, sender, management.bodyTimes)
  if (request.kind === 'client_left') return
  if (request.kind === 'refused') return deny(exchange, request.refusal)
  const { headers, res, clientIp } = exchange
  const own: OwnRequest = {
    ...request,
    exchange: { headers, res, clientIp, isSecure: management.isSecure(exchange) },
    caller,
    role: roleOf(caller),
    actor: actorOf(caller, session),
    session,
    params,
    id: params[0] ?? '',
    atMs: management.clock.nowMs(),
    accountId,
    isAccountNamed,
    listedAccountId,
    ownPersonId: isOwnOnly ? caller.personId : null,
  }
  const answer = () => route.handle(own, management).then((given) => replyOf(given, route))
  const queues = route.method === 'GET' ? reads : changes
  const names = queuesOf(caller)
  // The lookup of a call may wait long for its settlement, and a sign-in has no caller yet. Their routes queue their work.
  const isQueued = route.operationId !== 'get_request' && route.requiredRole !== 'anyone'
  const reply = isQueued ? ((await queues.run(names, answer)) ?? TOO_MANY) : await answer()
  if (route.method !== 'GET') management.webhooks.wake()
  if (reply.kind === 'refused') deny(exchange, reply.refusal)
  else if (reply.kind === 'reply') sendWhole(exchange, reply.reply)
  // Refuse HEAD for a stream, whose length is known only after generating all of it.
  else if (exchange.method === 'HEAD') deny(exchange, refuseMethod(exchange, ['GET']))
  else await sendStream(exchange, { ...reply.reply, chunks: reads.runEach(names, reply.reply.chunks) })
}

function actorOf(caller: Caller, session: OwnSession | null): Actor {
  const kind = session === null || caller.kind === 'person' ? caller.kind : 'session'
  return { kind, id: callerId(caller), name: caller.name }
}

/**
 * Refuses an id that is not the person's own, before the body is read. To a member, it does not exist. Who may read it
 * learns that the role does not permit more.
 */
async function refuseForeign(
  { personId, accountId: ownAccountId, role }: PersonCaller,
  route: Route,
  [id = '']: readonly string[],
  { store, waitingCalls, refusedCalls }: Management,
): Promise<Refused | null> {
  if (route.account !== 'of_id' || id === personId) return null
  const accountId = ownAccountId ?? DEFAULT_ACCOUNT
  const waiting = waitingCalls.find(id)
  if (waiting?.accountId === accountId && waiting.personId === personId) return null
  // The record of a refusal is written shortly after its answer.
  if (id.startsWith('req_')) await refusedCalls.written()
  if (await store.isOfPerson(id, personId, accountId)) return null
  return role === 'member'
    ? notFound(route)
    : refused(
        'insufficient_role',
        `You have the role ${role}, so this is for your own keys only. Ask an admin.`,
      )
}

const notFound = ({ nouns }: Route): Refused =>
  refused('not_found', `There is no ${nouns.at(-1)} with this id.`)

function replyOf(answer: Answer, route: Route): OwnReply {
  const { status } = route
  if (answer === null) return notFound(route)
  return 'object' in answer ? replyJson(status, answer) : answer
}

function deny(exchange: Exchange, refusal: Refusal): void {
  const clean = redactRefusal(refusal, exchange.names.redact)
  sendWhole(exchange, shapeError('own', clean, exchange.requestId), { close: refusal.close === true })
}
