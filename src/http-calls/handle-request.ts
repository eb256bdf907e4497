import {
  admit,
  findBatchFile,
  findCaller,
  planCall,
  upstreamFor,
  upstreamOfAdmission,
} from '../calls/admit.ts'
import type { KeyShare } from '../calls/key-shares.ts'
import type { Exchange, WholeReply } from '../http/exchange.ts'
import { firstValue, prefers, weightsOf } from '../http/raw-headers.ts'
import {
  hidesOwnedPath,
  isOwnedPath,
  type Target,
  validateHead,
  validateTarget,
} from '../http/validate-head.ts'
import { type Refusal, refuse } from '../kernel/errors.ts'
import type { Credential } from '../keys/credential.ts'
import { chooseSurface, findEndpoint } from '../providers/find-endpoint.ts'
import { listsStoredObjects } from '../providers/path-spelling.ts'
import { type Audience, carriesCredential, shapeError } from '../providers/surfaces.ts'
import { findHandshake, serveSocket, turnsOf } from '../sockets/serve-socket.ts'
import type { AdmittedCall, Call } from './call.ts'
import { forward, passPreflight } from './forward.ts'
import type { Gateway } from './gateway.ts'
import { parseCredential, surfaceOf } from './parse-credential.ts'
import { checkKeyBeforeBody, countableInput, readBody } from './read.ts'
import {
  explainThrown,
  IN_MAINTENANCE,
  refuseCall,
  refuseEndpoint,
  refuseRequest,
  refuseTooManyCalls,
  refuseUnconfigured,
  SHARED_UPSTREAM,
} from './refusals.ts'
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
    if (hidesOwnedPath(target.path)) return refuseAt(target.path, HIDDEN_PATH)
    const owned = isOwnedPath(target.path) || isBrowserAtRoot(target.path, exchange)
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
 *   identify   which surface, endpoint and key, by form alone      → 400 401
 *   check      what admission cannot decide: is the path served, is there an upstream, how many calls of this key
 *              are in flight; the key itself before a large body   → 401 402 403 404 426 429 503
 *   read       find models, limits and stream flag in the body     → 400 401 402 408 413 503
 *   plan       what the call may cost, which models it names, how it is priced; a batch
 *              that is created from a file is planned by that file
 *   admit      one database transaction: key active? models allowed? cap and credit sufficient?
 *              place the hold, or wait in the admission queue. A DELETE of an object that
 *              is not settled is refused                           → 400 401 402 403 404 409 429 503
 *   forward    provider credential in, bytes out                   → 502
 *   observe    the meter reads a view of each chunk of the reply. If the cost comes later, the created object is
 *              recorded as soon as the stream names it
 *   settle     usage → price → one database transaction; closes the hold once, on every path. A call whose cost comes
 *              later (a batch, a background response) is deferred instead: deferrals.ts settles it
 *   answer     upstream's reply, with the figures as headers or trailers
 *
 * The handshake of a metered WebSocket is a free call. After upstream's 101 each of its turns is a call (turns/). The
 * standing hold of a Realtime socket is placed before the handshake is sent. Any other WebSocket is one call that
 * cannot be metered.
 */
async function handleRequest(exchange: Exchange, target: Target, gateway: Gateway): Promise<void> {
  const { method, headers } = exchange

  // identify. HEAD uses the endpoint of GET
  const surface = surfaceOf(target.path, method, headers)
  const isHandshake = exchange.res.maySwitch
  const credential = parseCredential(exchange, gateway.credentials, isHandshake)
  if (credential.kind === 'refused')
    return refuseRequest(exchange, surface, credential.refusal, gateway.counts)
  const endpoint = isHandshake
    ? findHandshake(surface, target)
    : findEndpoint(surface, method === 'HEAD' ? 'GET' : method, target.path)
  const socketId = isHandshake && endpoint?.billing === 'free' ? exchange.requestId : null
  const routed = { exchange, target, surface, endpoint, socketId }
  if (credential.kind === 'preflight') return await passPreflight(routed, gateway)

  // From here to its end, the call counts against the key's calls in flight.
  const { digest } = credential
  const share = gateway.keyShares.enter(digest)
  try {
    await serveCall({ ...routed, digest }, share, gateway)
  } finally {
    if (share !== null) gateway.keyShares.leave(share)
  }
}

/** A null `share`: the key has too many calls in flight. */
async function serveCall(routed: Call, share: KeyShare | null, gateway: Gateway): Promise<void> {
  const { exchange, target, surface, endpoint, digest } = routed
  const { method, names } = exchange

  // check. The key is looked up only if an answer depends on it, and a refusal for the key goes before all others.
  // A DELETE reveals whether an object is settled, which only usable keys may learn
  const lists = listsStoredObjects(endpoint, method, target.path)
  const notServed =
    share === null ? refuseTooManyCalls(gateway.keyShares.callsMax) : refuseEndpoint(routed, gateway)
  const keyFirst = method === 'DELETE' || checkKeyBeforeBody(exchange)
  const installed = gateway.upstreams[surface]
  const isPaid = endpoint?.billing === 'metered'
  const check = (isPaid: boolean) => findCaller(digest, isPaid, names, gateway)
  const mustCheck = keyFirst || lists || notServed !== null || installed === null
  const found = mustCheck ? await check(isPaid && keyFirst) : null
  const caller = found?.caller ?? null
  const own = caller?.upstreams[surface] ?? null
  const isShared = lists && caller?.hasOthers === true && own === null
  const upstream = caller === null ? installed : upstreamFor(caller.accountId, own, surface, gateway)
  const refusal = found?.refusal ?? notServed ?? (isShared ? SHARED_UPSTREAM : null)
  if (refusal !== null || upstream === null || share === null) {
    return refuseCall(routed, refusal ?? refuseUnconfigured(surface), gateway, found ?? {})
  }
  const identified = { ...routed, upstream, share }

  // read
  const read = await readBody(exchange, endpoint, gateway.reading, share, check)
  if (read.kind === 'refused') return refuseCall(identified, read.refusal, gateway, read)
  if (read.kind === 'client_left') return

  try {
    // plan
    const readCall = { ...identified, read, request: countableInput(exchange, read) }
    const batchFile = await findBatchFile(readCall, gateway)
    const call = { ...readCall, plan: planCall(readCall, batchFile, gateway) }

    // admit
    if (method === 'DELETE') {
      const refusal = await gateway.deferrals.refuseDelete(surface, target.path, digest)
      if (refusal !== null) return refuseCall(call, refusal, gateway)
    }
    const turns = call.socketId === null ? null : turnsOf(call, gateway)
    try {
      const admission = (await turns?.open()) ?? (await admit(call, gateway))
      if (admission.kind === 'client_left') return
      if (admission.kind === 'refused') {
        const { refusal, balanceNanos } = admission
        return refuseCall(call, refusal, gateway, { balanceNanos, modelAsked: call.plan.modelAsked })
      }
      gateway.reached('admitted')

      // forward, observe, settle, answer; after an accepted handshake the same for each turn
      const admitted = { ...call, admission, ...upstreamOfAdmission(call, admission, gateway) }
      const switched = await runAdmittedCall(admitted, gateway)
      if (switched !== null) await serveSocket(admitted, switched, turns, gateway)
    } finally {
      await turns?.end(true)
    }
  } finally {
    if (read.body.kind === 'held') read.body.held.dispose()
  }
}

/** From here on there is a hold, and every path closes it. */
async function runAdmittedCall(call: AdmittedCall, gateway: Gateway): Promise<Switched | null> {
  const sent = new SentCall(call, gateway)
  try {
    // forward, and observe the reply as it passes
    const end = await forward(sent, gateway)
    sent.recordEnd(end)
    if (end.kind === 'switched') {
      await sent.settleHandshake(end)
      return end
    }
    const outcome = await sent.observe(end)

    // settle, or leave the hold where the cost comes later
    const settled = await sent.settle(outcome)
    await sent.settleEarlierCalls(outcome)

    // answer
    sent.answer(end, settled)
    return null
  } catch (defect) {
    await sent.fail(defect)
    throw defect
  } finally {
    sent.finish()
  }
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
