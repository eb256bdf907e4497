import { admit, findCaller } from '../calls/admit.ts'
import type { Ask } from '../calls/ask.ts'
import { planRequest } from '../calls/call-plan.ts'
import type { KeyShare } from '../calls/key-shares.ts'
import { refuseTooManyCalls } from '../calls/refusals.ts'
import type { Exchange, WholeReply } from '../http/exchange.ts'
import { firstValue, prefers, type RawHeaders, weightsOf } from '../http/raw-headers.ts'
import type { Upstream } from '../http/upstream-connection.ts'
import {
  hidesOwnedPath,
  isOwnedPath,
  type Target,
  validateHead,
  validateTarget,
} from '../http/validate-head.ts'
import { type Refusal, refuse } from '../kernel/errors.ts'
import type { Credential } from '../keys/credential.ts'
import { carriesCredential } from '../providers/credentials.ts'
import { chooseSurface, findEndpoint } from '../providers/find-endpoint.ts'
import { namedInFile } from '../providers/named-models.ts'
import { type Audience, shapeError } from '../providers/surfaces.ts'
import { findHandshake, serveSocket, turnsOf } from '../sockets/serve-socket.ts'
import type { AdmittedCall, Call } from './call.ts'
import { checkServed } from './check.ts'
import { forward, passPreflight } from './forward.ts'
import type { Gateway } from './gateway.ts'
import { upstreamFor } from './own-upstreams.ts'
import { parseCredential, surfaceOf } from './parse-credential.ts'
import { countableInput, type ReadBody, readBody } from './read.ts'
import { explainThrown, IN_MAINTENANCE, refuseCall, refuseRequest } from './refusals.ts'
import { SentCall, type Switched } from './sent-call.ts'

/** Answers requests to own paths. `main.ts` passes it in, because the data plane must not depend on management. */
type HandleOwned = (exchange: Exchange, target: Target, credential: Credential) => Promise<void>

/** Every request enters here, own or proxied. An exception becomes an answer, never an unhandled rejection. */
export function openFrontDoor(gateway: Gateway, handleOwned: HandleOwned): (exchange: Exchange) => void {
  return (exchange) => {
    const { req, method, headers } = exchange
    const { target: rawTarget, httpVersion } = req.head
    const refuseAt = (path: string, refusal: Refusal) =>
      refuseRequest(exchange, audienceOf(exchange, path), refusal, gateway.counts)
    const bad = validateHead(httpVersion, method, headers)
    if (bad !== null) return refuseAt(rawTarget, bad)
    const validated = validateTarget(rawTarget, firstValue(headers, 'host'))
    if (validated.kind === 'refused') return refuseAt(rawTarget, validated.refusal)
    const { target } = validated
    if (hidesOwnedPath(target.path, gateway.hasSignIn)) return refuseAt(target.path, HIDDEN_PATH)
    const owned = isOwnedPath(target.path, gateway.hasSignIn) || isBrowserAtRoot(target.path, exchange)
    if (!owned && gateway.isMaintenance) return refuseAt(target.path, IN_MAINTENANCE)
    const handled = owned
      ? handleOwned(exchange, target, parseCredential(exchange, gateway.credentials))
      : handleRequest(exchange, target, gateway)
    handled.catch((error: unknown) => {
      const audience = owned ? 'own' : audienceOf(exchange, target.path)
      const refusal = explainThrown(error, exchange.requestId, gateway.log, owned)
      refuseRequest(exchange, audience, refusal, gateway.counts)
    })
  }
}

const HIDDEN_PATH = refuse(
  'bad_request',
  'The path contains an encoded slash (%2f) and decodes to a path of the gateway itself. Send a plain slash.',
)

/**
 * The life of a proxied request, top to bottom. Only this file knows the order.
 *
 *   validate   is the head valid, and is the path ours or upstream's?                → 400 404
 *   identify   which surface, endpoint and key, by form alone                         → 400 401
 *   check      what admission cannot decide: is the path served, is there an upstream, how many calls of this key
 *              are in flight; the key itself before a large body                      → 401 402 403 404 426 429 503
 *   read       find models, limits and stream flag in the body                        → 400 401 402 408 413 503
 *   profile    what the request may cost and how it is priced. This makes it an ask
 *   admit      one database transaction turns the ask into a hold, or the ask waits in the admission queue. A DELETE of
 *              an object that is not settled is refused                               → 400 401 402 403 404 409 429 503
 *   forward    provider credential in, bytes out                                      → 502
 *   observe    the meter reads a view of each chunk of the reply: this is the evidence
 *   settle     evidence → bill → one database transaction, which closes the hold. If the cost comes later (a batch, a
 *              background response), the hold belongs to the object that states it (objects/)
 *   answer     upstream's reply, with the figures as headers or trailers
 *
 * The handshake of a metered WebSocket is a free call. After upstream's 101 each of its turns is a call (sockets/). The
 * standing hold of a Realtime socket is placed before the handshake is sent. Any other WebSocket is one call that
 * cannot be metered.
 */
async function handleRequest(exchange: Exchange, target: Target, gateway: Gateway): Promise<void> {
  // identify
  const surface = surfaceOf(target.path, exchange.method, exchange.headers)
  const credential = parseCredential(exchange, gateway.credentials, exchange.res.maySwitch)
  if (credential.kind === 'refused')
    return refuseRequest(exchange, surface, credential.refusal, gateway.counts)
  if (credential.kind === 'preflight') return await passPreflight({ exchange, target, surface }, gateway)
  const call = identify(exchange, target, surface, credential.digest, gateway)

  // From here to its end, the call counts against the key's calls in flight.
  const share = gateway.keyShares.enter(credential.digest)
  try {
    await serveCall(call, share, gateway)
  } finally {
    if (share !== null) gateway.keyShares.leave(share)
  }
}

function identify(
  exchange: Exchange,
  target: Target,
  surface: Call['surface'],
  digest: Buffer,
  { recordsClients }: Gateway,
): Call {
  const { requestId, method, headers, names, res } = exchange
  const { path } = target
  // HEAD uses the endpoint of GET.
  const endpoint = res.maySwitch
    ? findHandshake(surface, target)
    : findEndpoint(surface, method === 'HEAD' ? 'GET' : method, path)
  const isSocket = res.maySwitch && endpoint?.billing === 'free'
  const clientIp = recordsClients ? exchange.clientIp : ''
  const userAgent = recordsClients ? (firstValue(headers, 'user-agent') ?? null) : null
  const sessionId = sessionIdOf(headers)
  const caller = { digest, clientIp, userAgent, sessionId, presence: res, redact: names.redact }
  const socketId = isSocket ? requestId : null
  return { exchange, target, requestId, caller, surface, method, path, endpoint, socketId }
}

const SESSION_HEADERS = ['x-claude-code-session-id', 'session-id', 'session_id', 'x-session-id']

function sessionIdOf(headers: RawHeaders): string | null {
  for (const name of SESSION_HEADERS) {
    const value = firstValue(headers, name)?.trim()
    if (value !== undefined && value !== '') return value
  }
  return null
}

/** A null `share`: the key has too many calls in flight. */
async function serveCall(call: Call, share: KeyShare | null, gateway: Gateway): Promise<void> {
  const { exchange, endpoint, caller } = call

  // check
  const { keyShares, reading } = gateway
  const checked = await checkServed(
    call,
    gateway,
    share === null ? refuseTooManyCalls(keyShares.callsMax) : null,
  )
  if (checked.kind === 'refused') return refuseCall(call, checked.refusal, gateway, checked)
  if (share === null) return

  // read
  const checkKey = (isPaid: boolean) => findCaller(caller.digest, isPaid, gateway)
  const read = await readBody(exchange, endpoint, reading, share, checkKey)
  if (read.kind === 'refused') return refuseCall(call, read.refusal, gateway, read)
  if (read.kind === 'client_left') return
  using _body = read.body.kind === 'held' ? read.body.held : null

  // profile
  const ask = await profile(call, read, gateway)

  // admit
  const unsettled = await refuseUnsettled(call, gateway)
  if (unsettled !== null) return refuseCall(call, unsettled, gateway)
  const { upstream } = checked
  await using turns = call.socketId === null ? null : turnsOf({ ...call, ask, share, upstream }, gateway)
  const admission = (await turns?.open()) ?? (await admit(ask, gateway))
  if (admission.kind === 'client_left') return
  if (admission.kind === 'refused') {
    const { refusal, balanceNanos } = admission
    return refuseCall(call, refusal, gateway, { balanceNanos, modelAsked: ask.profile.model })
  }
  await using hold = admission.hold
  gateway.reached('admitted')

  // forward, observe, settle, answer; after an accepted handshake the same for each turn
  const opened = openUpstream(hold, upstream, gateway)
  const admitted = { ...call, share, hold, upstream: opened, headers: exchange.headers, read }
  const switched = await runCall(admitted, gateway)
  if (switched !== null) await serveSocket(admitted, switched, turns, gateway)
}

/** What the request wants, from which admission decides. A batch that is created from a file is priced by that file. */
async function profile(call: Call, read: ReadBody, gateway: Gateway): Promise<Ask> {
  const { exchange, target, caller, surface, method, path, endpoint } = call
  const { facts, unreadable: ambiguity } = read
  const bytes = countableInput(exchange, read)
  const fileId = endpoint?.model === 'batch_file' ? namedInFile(facts).batchFile : null
  const batchFile =
    fileId === null ? null : await gateway.store.findBatchFile(caller.digest, fileId).catch(() => null)
  const [bodyBytes, atMs] = [bytes.lengthBytes, gateway.clock.nowMs()]
  const request = { surface, method, path, query: target.query, endpoint, facts, batchFile, bodyBytes, atMs }
  return { ...call, bytes, ambiguity, profile: planRequest(request, gateway.prices) }
}

/** Refuses a DELETE of an object whose cost is not known yet. */
async function refuseUnsettled({ method, surface, path, caller }: Call, { deferrals }: Gateway) {
  return method === 'DELETE' ? await deferrals.refuseDelete(surface, path, caller.digest) : null
}

/** The upstream that admission chose. The account's own key is redacted from everything that is recorded. */
function openUpstream(hold: AdmittedCall['hold'], checked: Upstream, gateway: Gateway): Upstream {
  const { accountId, upstream: own } = hold.terms
  const upstream = upstreamFor(accountId, own, hold.ask.surface, gateway) ?? checked
  if (own !== null) hold.uses(upstream.key)
  return upstream
}

/** Sends the call, and closes its hold by what upstream answers. Not null: the socket may carry turns now. */
async function runCall(call: AdmittedCall, gateway: Gateway): Promise<Switched | null> {
  using sent = new SentCall(call, gateway)
  // forward
  const end = await forward(sent, gateway)
  sent.ended(end)
  if (end.kind === 'switched') {
    await sent.settleHandshake(end)
    return end
  }
  // observe
  const evidence = await sent.observe(end)
  // settle
  const settlement = await sent.settle(evidence)
  await sent.settleEarlierCalls(evidence)
  // answer
  sent.answer(end, settlement)
  return null
}

/** Whether a browser opened the gateway's URL. `/` is upstream's, but no SDK requests HTML there without a key. */
function isBrowserAtRoot(path: string, { method, headers }: Exchange): boolean {
  if (path !== '/' || method !== 'GET' || carriesCredential(headers)) return false
  const weights = weightsOf(headers, 'accept')
  const isFirst = weights.get('text/html') === Math.max(...weights.values())
  return isFirst && prefers(headers, 'text/html', 'application/json')
}

function audienceOf(exchange: Exchange, rawTarget: string): Audience {
  const path = rawTarget.split('?', 1)[0] ?? ''
  return isOwnedPath(path) ? 'own' : surfaceOf(path, exchange.method, exchange.headers)
}

/** The error for bytes that are not a valid request, in the shape of the surface that the client probably means. */
export function shapeBroken(refusal: Refusal, head: string, requestId: string): WholeReply {
  const target = /^[A-Za-z]+ ([^\s?]+)/.exec(head)?.[1] ?? ''
  if (isOwnedPath(target)) return shapeError('own', refusal, requestId)
  const lines = head.toLowerCase().split(/[\r\n]/)
  const surface = chooseSurface(target, (name) => lines.some((line) => line.startsWith(`${name}:`)))
  return shapeError(surface, refusal, requestId)
}
