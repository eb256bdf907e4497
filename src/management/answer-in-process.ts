import type { StreamedReply, WholeReply } from '../http/exchange.ts'
import type { Target } from '../http/judge-head.ts'
import type { RawHeaders } from '../http/raw-headers.ts'
import { type Refusal, refuse } from '../kernel/errors.ts'
import { headerNames } from '../kernel/header-names.ts'
import { Listeners } from '../kernel/listeners.ts'
import type { Caller } from '../keys/identity.ts'
import { shapeError } from '../providers/error-shape.ts'
import { ONCE_HEADER } from './read-once.ts'
import { checkOwnRequest } from './read-own-request.ts'
import type { Management } from './route.ts'
import { findRoute } from './routes.ts'

export interface InProcessRequest {
  readonly method: string
  readonly target: Target
  /** JSON, or nothing. */
  readonly body: Buffer
  /** What an `Idempotency-Key` would say. */
  readonly onceName: string | null
}

export type InProcessReply =
  | { readonly kind: 'reply'; readonly reply: WholeReply }
  | { readonly kind: 'stream'; readonly reply: StreamedReply }

/**
 * Answers whoever is in this process as the socket would have been answered: the same routes, checks and messages,
 * refusals included. That the caller may ask is for whoever calls this to know.
 */
export async function answerInProcess(
  { method, target, body, onceName }: InProcessRequest,
  caller: Caller,
  management: Management,
): Promise<InProcessReply> {
  const deny = (refusal: Refusal): InProcessReply => ({
    kind: 'reply',
    reply: shapeError('own', refusal, `req_${management.nextUlid()}`),
  })
  const found = findRoute(method, target.path)
  if (found.kind !== 'route') return deny(refuse('not_found', 'There is no such endpoint.'))
  const { route, params } = found
  const headers: RawHeaders = onceName === null ? [] : [ONCE_HEADER, onceName]
  const sender = { accountId: caller.accountId, atMs: management.clock.nowMs() }
  const request = checkOwnRequest({ method, headers }, target, route, sender, body)
  if (request.kind === 'refused') return deny(request.refusal)
  const exchange = { headers, names: headerNames(management.servicePrefix), res: STAYS }
  const answer = await route.handle({ ...request, exchange, caller, params }, management)
  return answer.kind === 'refused' ? deny(answer.refusal) : answer
}

/** Nobody hangs up: if the process ends, so does the answer. */
const STAYS = { destroyed: false, whenClosed: new Listeners() }
