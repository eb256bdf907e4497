import type { Identity } from '../identity.ts'
import type { Refusal } from '../refusal.ts'
import { type BodyReply, type Header, jsonReply } from '../reply.ts'
import { type Frame, namedFrame } from '../sse.ts'
import { messagesHeaders, newMessagesRequestId, rateLimitHeaders } from './messages-headers.ts'

const typeByStatus: ReadonlyMap<number, string> = new Map([
  [400, 'invalid_request_error'],
  [401, 'authentication_error'],
  [402, 'billing_error'],
  [403, 'permission_error'],
  [404, 'not_found_error'],
  [405, 'invalid_request_error'],
  [409, 'conflict_error'],
  [413, 'request_too_large'],
  [429, 'rate_limit_error'],
  [500, 'api_error'],
  [503, 'api_error'],
  [529, 'overloaded_error'],
])

/** The words of upstream when it fails for reasons of its own, by status. */
export const messagesFailures: ReadonlyMap<number, string> = new Map([
  [400, 'Your request could not be understood.'],
  [401, 'invalid x-api-key'],
  [403, 'Your API key does not have permission to use the specified resource.'],
  [404, 'The requested resource could not be found.'],
  [409, 'The resource was changed by another request.'],
  [413, 'Request exceeds the maximum size'],
  [429, "This request would exceed your organization's rate limit of 2,000,000 input tokens per minute."],
  [500, 'Internal server error'],
  [503, 'Service unavailable'],
  [529, 'Overloaded'],
])

export function messagesErrorReply(refusal: Refusal, identity: Identity): BodyReply {
  const requestId = newMessagesRequestId(identity)
  const { status, details } = refusal
  const error = {
    type: details.type ?? typeByStatus.get(status) ?? 'api_error',
    message: refusal.message,
    ...(details.code == null ? {} : { details: { error_code: details.code } }),
  }
  const isRetried = status === 429 || status >= 500 || status === 409
  const headers: Header[] = [
    ...(status === 429 ? exhausted(identity, requestId) : messagesHeaders(identity, requestId)),
    ['x-should-retry', String(isRetried)],
    ...(details.headers ?? []),
  ]
  return jsonReply(status, { type: 'error', error, request_id: requestId }, { headers })
}

function exhausted(identity: Identity, requestId: string): Header[] {
  return [
    ['request-id', requestId],
    ['retry-after', '2'],
    ...rateLimitHeaders(identity, Number.POSITIVE_INFINITY),
    ['server', 'simulator'],
  ]
}

export function messagesErrorFrame(): Frame {
  return namedFrame('error', { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } })
}
