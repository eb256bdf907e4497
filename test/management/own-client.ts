import assert from 'node:assert/strict'
import { routes } from '../../src/management/endpoints.ts'
import { openApiDocument } from '../../src/management/openapi.ts'
import { findRoute } from '../../src/management/router.ts'
import type { TestGateway } from '../support/gateway.ts'
import { Documented } from './documented.ts'

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: Readonly<Record<string, unknown>>
}

export interface OwnCall {
  readonly json?: unknown
  readonly text?: string | Uint8Array<ArrayBuffer>
  /** The operator key by default. */
  readonly key?: string
  readonly headers?: Readonly<Record<string, string>>
}

export type Ask = (method: string, path: string, call?: OwnCall) => Promise<Answer>

const asSent: unknown = JSON.parse(
  JSON.stringify(openApiDocument(routes, { version: '0', servicePrefix: 'svc' })),
)
const documented = new Documented(asSent as Record<string, unknown>)

/** Calls the management API and asserts that the OpenAPI document describes each response. */
export function askOf(gateway: TestGateway): Ask {
  return async (method, path, call = {}) => {
    const body = call.text ?? (call.json === undefined ? null : JSON.stringify(call.json))
    const response = await fetch(gateway.url + path, {
      method,
      headers: { authorization: `Bearer ${call.key ?? gateway.adminKey}`, ...call.headers },
      body,
    })
    const json = response.status === 204 ? {} : ((await response.json()) as Record<string, unknown>)
    const answer = { status: response.status, headers: response.headers, body: json }
    assertDocumented(method, path, answer)
    return answer
  }
}

function assertDocumented(method: string, path: string, { status, body, headers }: Answer): void {
  assert.match(String(headers.get('x-svc-request-id')), /^req_[0-9A-HJKMNP-TV-Z]{26}$/)
  assert.equal(headers.get('content-type'), status === 204 ? null : 'application/json')
  const found = findRoute(method, path.split('?', 1)[0] ?? '')
  if (found.kind !== 'route') return
  const { content } = documented.response(`${method} ${found.route.template}`, status)
  if (status === 204) assert.equal(content, undefined)
  else documented.assertConforms(content?.['application/json']?.schema, body)
}

/** Asserts that the OpenAPI document describes this message of a webhook. */
export function assertPayload(payload: Readonly<Record<string, unknown>>): void {
  documented.assertConforms(
    documented.resolve({ $ref: `#/components/schemas/${payload['type']}_event` }),
    payload,
  )
}

export interface ErrorBody {
  readonly code: string
  readonly message: string
  readonly param: string | null
}

export function errorOf({ body }: Answer): ErrorBody {
  assert.equal(typeof body['error'], 'object', JSON.stringify(body))
  return body['error'] as ErrorBody
}

export function assertRefused(
  answer: Answer,
  status: number,
  wanted: { readonly code: string; readonly param?: string | null; readonly message?: RegExp },
): void {
  assert.equal(answer.status, status, JSON.stringify(answer.body))
  const { code, param, message } = errorOf(answer)
  assert.equal(code, wanted.code)
  if (wanted.param !== undefined) assert.equal(param, wanted.param)
  if (wanted.message !== undefined) assert.match(message, wanted.message)
  assert.equal(answer.body['request_id'], answer.headers.get('x-svc-request-id'))
}

export function assertUnstored({ headers }: Answer): void {
  assert.equal(headers.get('cache-control'), 'no-store')
}

/** A well-formed id of a key that does not exist. */
export const NO_SUCH_KEY = 'key_01ARZ3NDEKTSV4RRFFQ69G5FAV'
