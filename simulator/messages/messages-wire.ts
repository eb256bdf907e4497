import type { Identity } from '../identity.ts'
import type { JsonObject } from '../json.ts'
import type { Refusal } from '../refusal.ts'
import { eventFrame, type Frame, type Header } from '../reply.ts'

// Errors and headers of the Messages surface.

/** Type and default message of an error, by status. */
const errors: ReadonlyMap<number, readonly [type: string, message: string]> = new Map([
  [400, ['invalid_request_error', 'Your request could not be understood.']],
  [401, ['authentication_error', 'invalid x-api-key']],
  [402, ['billing_error', 'Your account has a billing problem.']],
  [403, ['permission_error', 'Your API key does not have permission to use the specified resource.']],
  [404, ['not_found_error', 'The requested resource could not be found.']],
  [405, ['invalid_request_error', 'Method Not Allowed']],
  [409, ['conflict_error', 'The resource was changed by another request.']],
  [413, ['request_too_large', 'Request exceeds the maximum size']],
  [429, ['rate_limit_error', "This request would exceed your organization's rate limit."]],
  [529, ['overloaded_error', 'Overloaded']],
])

export function messagesFailure(status: number): string {
  return errors.get(status)?.[1] ?? 'Internal server error'
}

export function messagesErrorJson({ status, message }: Refusal, requestId: string): JsonObject {
  const [type] = errors.get(status) ?? ['api_error']
  return { type: 'error', error: { type, message }, request_id: requestId }
}

export function messagesErrorFrame(): Frame {
  const error = { type: 'overloaded_error', message: 'Overloaded' }
  return eventFrame('error', { type: 'error', error })
}

const limits = [
  ['requests', 4_000],
  ['input-tokens', 2_000_000],
  ['output-tokens', 400_000],
  ['tokens', 2_400_000],
] as const

/** Rate limits as upstream reports them; the simulator counts nothing. */
export function messagesHeaders(identity: Identity, requestId: string, status: number): Header[] {
  const isExhausted = status === 429
  const reset = `${identity.now().toISOString().slice(0, 19)}Z`
  return [
    ['request-id', requestId],
    ['anthropic-organization-id', '5a1f0c3e-7d42-4b8e-9f36-51a7e0d2c4b8'],
    ...limits.flatMap(([name, limit]): Header[] => [
      [`anthropic-ratelimit-${name}-limit`, String(limit)],
      [`anthropic-ratelimit-${name}-remaining`, String(isExhausted ? 0 : limit - 1)],
      [`anthropic-ratelimit-${name}-reset`, reset],
    ]),
    ...(status < 400 ? [] : [['x-should-retry', String(isExhausted || status >= 500)] as const]),
    ...(isExhausted ? [['retry-after', '2'] as const] : []),
  ]
}

export function newMessagesRequestId(identity: Identity): string {
  return `req_011C${identity.base62(20)}`
}
