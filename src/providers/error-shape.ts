import { ERRORS, type ErrorCode, type ErrorRow, type Refusal } from '../kernel/errors.ts'
import type { Surface } from '../kernel/surface.ts'
import { SURFACES } from './surfaces.ts'

/** The client that reads the error: one of a surface, or of our own endpoints. */
export type Audience = Surface | 'own'

interface ShapedError {
  readonly status: number
  /** Flat name, value pairs. */
  readonly headers: readonly string[]
  readonly body: Buffer
}

/** Gives a refusal the form that the client's SDK understands. Our own endpoints answer in OpenAI's form plus `request_id`. */
export function shapeError(audience: Audience, refusal: Refusal, requestId: string): ShapedError {
  const row: ErrorRow = ERRORS[refusal.code]
  const { requestIdHeader, body: shape } = SURFACES[formOf(audience)].errors
  const json = shape(errorType(audience, refusal.code), refusal, requestId)
  const body = Buffer.from(JSON.stringify(audience === 'own' ? { ...json, request_id: requestId } : json))
  const headers = ['content-type', 'application/json', 'content-length', String(body.length)]
  headers.push(requestIdHeader, requestId)
  if (row.retryAfterSeconds !== undefined) headers.push('retry-after', String(row.retryAfterSeconds))
  // SDKs retry only some statuses by themselves, but coding agents retry them all: a revoked key for three minutes.
  if (row.retry === 'never') headers.push('x-should-retry', 'false')
  if (refusal.headers !== undefined) headers.push(...refusal.headers)
  return { status: statusOf(audience, refusal.code), headers, body }
}

export function statusOf(audience: Audience, code: ErrorCode): number {
  return SURFACES[formOf(audience)].errors.statuses[code] ?? ERRORS[code].status
}

/** What the surface calls an error of this kind. */
export function errorType(audience: Audience, code: ErrorCode): string {
  return SURFACES[formOf(audience)].errors.type(code, statusOf(audience, code))
}

function formOf(audience: Audience): Surface {
  return audience === 'own' ? 'chat' : audience
}
