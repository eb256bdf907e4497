import type { Identity } from '../identity.ts'
import type { JsonObject } from '../json.ts'
import type { Refusal } from '../refusal.ts'
import { type BodyReply, jsonReply } from '../reply.ts'
import { dataFrame, type Frame } from '../sse.ts'
import { chatHeaders, exhaustedHeaders } from './chat-headers.ts'

interface Failure {
  readonly message: string
  readonly type: string
  readonly code: string | null
}

/** The errors of upstream when it fails for reasons of its own, by status. */
export const chatFailures: ReadonlyMap<number, Failure> = new Map([
  [400, { message: 'Your request could not be understood.', type: 'invalid_request_error', code: null }],
  [
    401,
    {
      message:
        'Incorrect API key provided. You can find your API key at https://platform.openai.com/account/api-keys.',
      type: 'invalid_request_error',
      code: 'invalid_api_key',
    },
  ],
  [
    403,
    {
      message: 'Country, region, or territory not supported',
      type: 'request_forbidden',
      code: 'unsupported_country_region_territory',
    },
  ],
  [404, { message: 'The requested resource does not exist.', type: 'invalid_request_error', code: null }],
  [
    409,
    { message: 'The resource was changed by another request.', type: 'invalid_request_error', code: null },
  ],
  [413, { message: 'Request exceeds the maximum size', type: 'invalid_request_error', code: null }],
  [
    429,
    {
      message:
        'Rate limit reached on requests per min (RPM): Limit 10000, Used 10000. Please try again in 2s.',
      type: 'requests',
      code: 'rate_limit_exceeded',
    },
  ],
  [
    500,
    {
      message: 'The server had an error while processing your request. Sorry about that!',
      type: 'server_error',
      code: null,
    },
  ],
  [
    503,
    {
      message:
        'The server is currently overloaded with other requests. Sorry about that! Please retry later.',
      type: 'service_unavailable_error',
      code: 'server_is_overloaded',
    },
  ],
])

export function chatErrorReply(refusal: Refusal, identity: Identity): BodyReply {
  const { status, details } = refusal
  const error = chatErrorJson(refusal)
  const headers = status === 429 ? exhaustedHeaders(identity) : chatHeaders(identity)
  return jsonReply(status, { error }, { headers: [...headers, ...(details.headers ?? [])] })
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
  const message = 'The server had an error while processing your request. Sorry about that!'
  return dataFrame({ error: { message, type: 'server_error', param: null, code: null } })
}
