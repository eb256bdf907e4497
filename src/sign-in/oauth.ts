import { type Exchange, sendWhole } from '../http/exchange.ts'
import type { BodyTimes } from '../http/incoming-request.ts'
import { receiveOwnBody } from '../management/read-request.ts'
import { NO_STORE } from '../management/route.ts'

/** The wire format of OAuth's endpoints (RFC 6749, 7009, 8414, 8628): forms in, JSON out. */

export type OAuthError =
  | 'access_denied'
  | 'authorization_pending'
  | 'expired_token'
  | 'invalid_grant'
  | 'invalid_request'
  | 'slow_down'
  | 'temporarily_unavailable'
  | 'unsupported_grant_type'

export interface OAuthReply {
  readonly status: number
  readonly json: object
  readonly headers?: readonly string[]
}

const STATUSES: Partial<Record<OAuthError, number>> = { slow_down: 429, temporarily_unavailable: 503 }

/** `description` says what happened and what to do. */
export function oauthError(
  error: OAuthError,
  description: string,
  headers: readonly string[] = [],
): OAuthReply {
  return { status: STATUSES[error] ?? 400, json: { error, error_description: description }, headers }
}

export const invalidRequest = (description: string) => oauthError('invalid_request', description)

export function sendOAuth(exchange: Exchange, { status, json, headers = [] }: OAuthReply): void {
  const body = Buffer.from(JSON.stringify(json))
  const described = ['content-type', 'application/json', 'content-length', String(body.length)]
  sendWhole(exchange, {
    status,
    headers: [...described, ...NO_STORE, 'pragma', 'no-cache', ...headers],
    body,
  })
}

const FORM_BYTES_MAX = 16 * 1024

/** The body as a form; a member that is given twice is refused. Null: the client has left. */
export async function readForm(
  exchange: Exchange,
  times: BodyTimes,
): Promise<ReadonlyMap<string, string> | OAuthReply | null> {
  const received = await receiveOwnBody(exchange, times, FORM_BYTES_MAX)
  if (received.kind === 'client_left') return null
  if (received.kind === 'refused') return invalidRequest(received.refusal.message)
  const pairs = [...new URLSearchParams(received.bytes.toString('utf8'))]
  const form = new Map(pairs)
  return form.size === pairs.length
    ? form
    : invalidRequest('A member of the form is given twice. Send it once.')
}
