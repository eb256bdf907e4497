import { ERRORS, type ErrorCode, type ErrorRow } from '../kernel/errors.ts'
import { errorType } from '../providers/error-shape.ts'
import type { JsonObject } from './openapi-schemas.ts'
import type { Route } from './route.ts'

/** What any request to any endpoint can be answered with: bad credentials, and trouble of our own. */
const EVERYWHERE: readonly ErrorCode[] = [
  'bad_request',
  'invalid_api_key',
  'internal_error',
  'store_unavailable',
]

const OF_ADMIN_ENDPOINTS: readonly ErrorCode[] = ['admin_key_required']

/** Its `Idempotency-Key` may have been used for something else. */
const OF_REPEATABLE: readonly ErrorCode[] = ['conflict']

const OF_BODIES: readonly ErrorCode[] = ['body_too_large', 'request_timeout']

/** What is said before an endpoint is found, or instead of one. */
const BEFORE_A_ROUTE: readonly ErrorCode[] = [
  'expectation_failed',
  'head_too_large',
  'method_not_allowed',
  'request_timeout',
]

const requestId = { type: 'string', description: 'Names this request in the log of the service.' } as const

/** The codes that the endpoint can answer with, by status. */
export function errorCodesOf(route: Route): ReadonlyMap<number, readonly ErrorCode[]> {
  const codes = new Set([
    ...EVERYWHERE,
    ...(route.access === 'admin' ? OF_ADMIN_ENDPOINTS : []),
    ...(route.body === null ? [] : OF_BODIES),
    ...(route.repeatable ? OF_REPEATABLE : []),
    ...route.errors,
  ])
  const byStatus = Map.groupBy([...codes].sort(), (code) => ERRORS[code].status)
  return new Map([...byStatus].sort(([one], [other]) => one - other))
}

/** The error object, whatever went wrong. */
export function errorSchema(routes: readonly Route[]): JsonObject {
  const codes = new Set(routes.flatMap((route) => [...errorCodesOf(route).values()].flat()))
  for (const code of BEFORE_A_ROUTE) codes.add(code)
  const sorted = [...codes].sort()
  return {
    type: 'object',
    properties: {
      error: {
        type: 'object',
        properties: {
          message: { type: 'string', description: 'What is wrong and what to change. For people.' },
          type: { type: 'string', enum: [...new Set(sorted.map((code) => errorType('own', code)))].sort() },
          param: { type: ['string', 'null'], description: 'The field or parameter at fault.' },
          code: { type: 'string', enum: sorted, description: 'What is wrong. For programs.' },
          details: {
            type: 'object',
            additionalProperties: true,
            description: 'Figures, where there are any.',
          },
        },
        required: ['message', 'type', 'param', 'code'],
        additionalProperties: false,
      },
      request_id: requestId,
    },
    required: ['error', 'request_id'],
    additionalProperties: false,
  }
}

/** Collects the error answers; endpoints that fail alike share one. */
export interface ErrorBook {
  responsesOf(route: Route): JsonObject
  readonly named: Readonly<Record<string, JsonObject>>
}

export function createErrorBook(headersOf: (codes: readonly ErrorCode[]) => JsonObject): ErrorBook {
  const named: Record<string, JsonObject> = {}
  function referTo(codes: readonly ErrorCode[], name = codes.join('.')): JsonObject {
    named[name] ??= errorResponse(codes, headersOf(codes))
    return { $ref: `#/components/responses/${name}` }
  }
  return {
    named,
    responsesOf(route) {
      const responses: JsonObject = {}
      for (const [status, codes] of errorCodesOf(route)) responses[status] = referTo(codes)
      responses['default'] = referTo(BEFORE_A_ROUTE, 'other')
      return responses
    },
  }
}

function errorResponse(codes: readonly ErrorCode[], headers: JsonObject): JsonObject {
  const schema = {
    allOf: [{ $ref: '#/components/schemas/error' }],
    properties: { error: { type: 'object', properties: { code: { type: 'string', enum: codes } } } },
    type: 'object',
  }
  return {
    description: codes.map((code) => `\`${code}\`: ${ERRORS[code].meaning}`).join('\n\n'),
    headers,
    content: { 'application/json': { schema } },
  }
}

export function isToldWhenToRetry(codes: readonly ErrorCode[]): boolean {
  return codes.some((code) => (ERRORS[code] as ErrorRow).retryAfterSeconds !== undefined)
}
