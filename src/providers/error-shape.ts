import { ERRORS, type ErrorCode, type ErrorRow, type Refusal } from '../kernel/errors.ts'
import type { Surface } from './surface.ts'

/** Who reads the error: a client of one of the two surfaces, or of our own endpoints. */
export type Audience = Surface | 'own'

export interface ShapedError {
  readonly status: number
  /** Flat name, value pairs. */
  readonly headers: readonly string[]
  readonly body: Buffer
}

/**
 * Gives a refusal the form that the client's SDK understands: Anthropic's error object with `request-id`, or
 * OpenAI's with `x-request-id`. Our own endpoints answer in OpenAI's form plus `request_id` in the body.
 */
export function shapeError(audience: Audience, refusal: Refusal, requestId: string): ShapedError {
  const row: ErrorRow = ERRORS[refusal.code]
  const json =
    audience === 'messages'
      ? messagesError(row, refusal, requestId)
      : chatError(row, refusal, audience, requestId)
  const body = Buffer.from(JSON.stringify(json))
  const status = statusOf(audience, refusal.code)
  const headers = ['content-type', 'application/json', 'content-length', String(body.length)]
  headers.push(audience === 'messages' ? 'request-id' : 'x-request-id', requestId)
  if (row.retryAfterSeconds !== undefined) headers.push('retry-after', String(row.retryAfterSeconds))
  // SDKs retry only some statuses by themselves, but coding agents retry them all: a revoked key for three minutes.
  if (row.retry === 'never') headers.push('x-should-retry', 'false')
  if (refusal.headers !== undefined) headers.push(...refusal.headers)
  return { status, headers, body }
}

export function statusOf(audience: Audience, code: ErrorCode): number {
  const row: ErrorRow = ERRORS[code]
  return (audience === 'messages' ? row.messagesStatus : undefined) ?? row.status
}

function messagesError(row: ErrorRow, { code, message, details }: Refusal, requestId: string): unknown {
  const error = { type: row.messagesType, message, code }
  // `error_code` is where Anthropic's own billing errors have their code.
  const explained = details === undefined ? error : { ...error, details: { error_code: code, ...details } }
  return { type: 'error', error: explained, request_id: requestId }
}

function chatError(row: ErrorRow, refusal: Refusal, audience: Audience, requestId: string): unknown {
  const error = {
    message: refusal.message,
    type: row.chatType,
    param: refusal.param ?? null,
    code: refusal.code,
    ...(refusal.details === undefined ? {} : { details: refusal.details }),
  }
  return audience === 'own' ? { error, request_id: requestId } : { error }
}
