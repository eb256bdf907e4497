import type { Exchange, WholeReply } from '../http/exchange.ts'
import { hidesOwnedPath, isOwnedPath, judgeHead, judgeTarget, type Target } from '../http/judge-head.ts'
import { firstValue, weightsOf } from '../http/raw-headers.ts'
import { type Refusal, refuse } from '../kernel/errors.ts'
import type { Credential } from '../keys/credential.ts'
import { chooseSurface } from '../providers/find-endpoint.ts'
import { type Audience, carriesCredential, shapeError } from '../providers/surfaces.ts'
import { refuseRequest } from './deny.ts'
import type { Gateway } from './gateway.ts'
import { handleRequest } from './handle-request.ts'
import { parseCredential, surfaceOf } from './parse-credential.ts'
import { explainThrown } from './refusals.ts'

/** Answers requests for our own paths. Given by the composition root; the data plane does not know what they do. */
export type HandleOwned = (exchange: Exchange, target: Target, credential: Credential) => Promise<void>

/**
 * Where every request comes in: the head and the target are judged as they stand, then the request is ours or
 * upstream's. Whatever goes wrong behind this door becomes an answer here, and never an unhandled rejection.
 */
export function openFrontDoor(gateway: Gateway, handleOwned: HandleOwned): (exchange: Exchange) => void {
  const { counts } = gateway
  return (exchange) => {
    const { req, method, headers } = exchange
    const rawTarget = req.target
    const bad = judgeHead(req.httpVersion, method, headers)
    if (bad !== null) return refuseRequest(exchange, audienceOf(exchange, rawTarget), bad, counts)
    const judged = judgeTarget(rawTarget, firstValue(headers, 'host'))
    if (judged.kind === 'refused') {
      return refuseRequest(exchange, audienceOf(exchange, rawTarget), judged.refusal, counts)
    }
    const { target } = judged
    if (hidesOwnedPath(target.path)) {
      const refusal = refuse('bad_request', 'Bad request target: the request path has an encoded slash.')
      return refuseRequest(exchange, audienceOf(exchange, target.path), refusal, counts)
    }
    const owned = isOwnedPath(target.path) || isBrowserAtRoot(target.path, exchange)
    const handled = owned
      ? handleOwned(exchange, target, parseCredential(exchange, gateway.credentials))
      : handleRequest(exchange, target, gateway)
    handled.catch((error: unknown) => {
      const audience = owned ? 'own' : audienceOf(exchange, target.path)
      refuseRequest(exchange, audience, explainThrown(error, exchange.requestId, gateway.log), counts)
    })
  }
}

/**
 * A person who typed the address of the gateway: `/` is upstream's, but no call of an SDK asks for a page there without a
 * key, and upstream would never see one.
 */
function isBrowserAtRoot(path: string, { method, headers }: Exchange): boolean {
  if (path !== '/' || method !== 'GET') return false
  return !carriesCredential(headers) && (weightsOf(headers, 'accept').get('text/html') ?? 0) > 0
}

/** The audience of an error about this target, which may not have been judged yet. */
export function audienceOf(exchange: Exchange, rawTarget: string): Audience {
  const path = rawTarget.split('?', 1)[0] ?? ''
  return isOwnedPath(path) ? 'own' : surfaceOf(path, exchange.method, exchange.headers)
}

/**
 * The error for bytes that never became a request, in the shape of the surface they seem to be meant for. The
 * text may be any part of a head, or garbage; it is only searched, never used.
 */
export function shapeBroken(refusal: Refusal, head: string, requestId: string): WholeReply {
  const target = /^[A-Za-z]+ ([^ ?]+)/.exec(head)?.[1] ?? ''
  if (isOwnedPath(target)) return shapeError('own', refusal, requestId)
  const lines = head.toLowerCase().split(/[\r\n]/)
  const surface = chooseSurface(target, (name) => lines.some((line) => line.startsWith(`${name}:`)))
  return shapeError(surface, refusal, requestId)
}
