import { type Exchange, sendStream, sendWhole } from '../http/exchange.ts'
import type { BodyTimes } from '../http/incoming-request.ts'
import type { Target } from '../http/judge-head.ts'
import { type Refusal, redactRefusal, refuse } from '../kernel/errors.ts'
import { type Identity, type RecognitionStore, refuseKey } from '../keys/identity.ts'
import { shapeError } from '../providers/error-shape.ts'
import { readOwnRequest } from './read-own-request.ts'
import type { Management } from './route.ts'
import { findRoute } from './routes.ts'

export interface OwnedParts {
  readonly management: Management
  readonly recognition: RecognitionStore
  readonly bodyTimes: BodyTimes
}

/**
 * Requests for our own paths. The credential is checked before the path is looked up, so that nobody without one
 * learns which paths exist, and a leaked API key learns nothing at all.
 */
export async function handleOwned(
  exchange: Exchange,
  target: Target,
  identity: Identity,
  parts: OwnedParts,
): Promise<void> {
  const deny = (refusal: Refusal) => {
    const clean = redactRefusal(refusal, exchange.names.redact)
    sendWhole(exchange, shapeError('own', clean, exchange.requestId), { close: refusal.close === true })
  }
  if (identity.kind === 'refused') return deny(identity.refusal)
  // Our own endpoints are not for pages of other origins: a preflight is a request without a key.
  if (identity.kind === 'preflight') return deny(refuseKey('unknown_key'))
  const atMs = parts.management.clock.nowMs()
  const caller = await parts.recognition.recognise(identity.digest, atMs)
  if (caller.kind === 'refused') return deny(refuseKey(caller.reason))
  const found = findRoute(exchange.method, target.path)
  // What an API key may call is looked up first; that something else does not exist, it does not learn.
  if (caller.kind === 'api_key' && !(found.kind === 'route' && found.route.access === 'any_key')) {
    return deny(refuse('admin_key_required', 'This endpoint needs an admin key.'))
  }
  if (found.kind === 'none') return deny(refuse('not_found', 'There is no such endpoint.'))
  if (found.kind === 'other_methods') return deny(refuseMethod(exchange, found.allowed))
  const { route, params } = found
  const sender = { accountId: caller.accountId, atMs }
  const request = await readOwnRequest(exchange, target, route, sender, parts.bodyTimes)
  if (request.kind === 'client_left') return
  if (request.kind === 'refused') return deny(request.refusal)
  const { query, body, once } = request
  const answer = await route.handle({ exchange, caller, params, query, body, once }, parts.management)
  if (answer.kind === 'refused') deny(answer.refusal)
  // All of it would have to be made for its length to be known.
  else if (answer.kind === 'stream' && exchange.method === 'HEAD') deny(refuseMethod(exchange, ['GET']))
  else if (answer.kind === 'stream') await sendStream(exchange, answer.reply)
  else sendWhole(exchange, answer.reply)
}

function refuseMethod({ method }: Exchange, methods: readonly string[]): Refusal {
  const allowed = methods.join(', ')
  const message = `This endpoint has ${allowed}, not ${method}.`
  return refuse('method_not_allowed', message, { headers: ['allow', allowed] })
}
