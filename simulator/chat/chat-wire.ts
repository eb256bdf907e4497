import type { Identity } from '../identity.ts'
import type { JsonObject } from '../json.ts'
import type { Refusal, RefusalDetails } from '../refusal.ts'
import { eventFrame, type Frame, type Header } from '../reply.ts'

// Errors and headers of the Chat surface.

const serverError = 'The server had an error while processing your request. Sorry about that!'

/** Message and details of upstream's own failures, by status; any other status is an overloaded server. */
const failures: ReadonlyMap<number, readonly [message: string, details: RefusalDetails]> = new Map([
  [400, ['Your request could not be understood.', {}]],
  [401, ['Incorrect API key provided.', { code: 'invalid_api_key' }]],
  [403, ['Country, region, or territory not supported', { type: 'request_forbidden' }]],
  [404, ['The requested resource does not exist.', {}]],
  [409, ['The resource was changed by another request.', {}]],
  [413, ['Request exceeds the maximum size', {}]],
  [429, ['Rate limit reached. Please try again in 2s.', { type: 'requests', code: 'rate_limit_exceeded' }]],
  [500, [serverError, {}]],
])

export function chatFailure(status: number): readonly [message: string, details: RefusalDetails] {
  const overloaded = { type: 'service_unavailable_error', code: 'server_is_overloaded' }
  return failures.get(status) ?? ['The server is currently overloaded. Please retry later.', overloaded]
}

export function chatErrorJson({ status, message, details }: Refusal): JsonObject {
  return {
    message,
    type: details.type ?? (status >= 500 ? 'server_error' : 'invalid_request_error'),
    param: details.param ?? null,
    code: details.code ?? null,
  }
}

export function chatErrorFrame(): Frame {
  const error = { message: serverError, type: 'server_error', param: null, code: null }
  return eventFrame(null, { error })
}

/** The error event of a Responses stream. */
export function responseErrorFrame(sent: number): Frame {
  const error = { type: 'error', code: 'server_error', message: serverError, param: null }
  return eventFrame('error', { ...error, sequence_number: sent })
}

/** Rate limits as upstream reports them; the simulator counts nothing. */
export function chatHeaders(requestId: string, status = 200): Header[] {
  const isExhausted = status === 429
  return [
    ['openai-organization', 'simulator-org'],
    ['openai-processing-ms', '42'],
    ['openai-project', 'proj_simulator'],
    ['openai-version', '2020-10-01'],
    ['x-ratelimit-limit-requests', '10000'],
    ['x-ratelimit-limit-tokens', '30000000'],
    ['x-ratelimit-remaining-requests', isExhausted ? '0' : '9999'],
    ['x-ratelimit-remaining-tokens', '29999000'],
    ['x-ratelimit-reset-requests', isExhausted ? '2s' : '6ms'],
    ['x-ratelimit-reset-tokens', '0s'],
    ['x-request-id', requestId],
    ['access-control-expose-headers', 'X-Request-ID'],
    ...(isExhausted ? [['retry-after', '2'] as const] : []),
  ]
}

export function newChatRequestId(identity: Identity): string {
  return `req_${identity.hex(32)}`
}
