import { limits } from './limits.ts'
import { type Nanos, withCommas } from './money.ts'
import type { Redact } from './secret.ts'

/**
 * Every error that the gateway itself can return: status, fault, whether to retry, and meaning. The `type` of an error
 * depends on the surface (`errors` of its SurfaceSpec). A test compares this table with `docs/ERRORS.md`.
 *
 * fault   client: the client must change the request · operator: the operator must change the configuration
 *         gateway: the gateway has a problem · upstream: the provider has a problem
 * retry   never: the same request fails again, so the answer has `x-should-retry: false` · safe: nothing was sent
 *         upstream · unknown: upstream may have received the request, and a retry may be billed again
 */
export interface ErrorRow {
  readonly status: number
  readonly fault: 'client' | 'operator' | 'gateway' | 'upstream'
  readonly retry: 'never' | 'safe' | 'unknown'
  /** Null: the answer has no `retry-after`, or one that the refusal itself computes. */
  readonly retryAfterSeconds: number | null
  readonly meaning: string
}

const row = (
  status: number,
  fault: ErrorRow['fault'],
  retry: ErrorRow['retry'],
  meaning: string,
  retryAfterSeconds: number | null = null,
): ErrorRow => ({ status, fault, retry, meaning, retryAfterSeconds })

const ROWS = {
  bad_request: row(
    400,
    'client',
    'never',
    'The request line, a header or a field is invalid. The message names it.',
  ),
  unknown_model: row(
    400,
    'client',
    'never',
    'An entry of `allowed_models` matches no model in the price book. The message names the closest match.',
  ),
  model_not_priced: row(
    400,
    'operator',
    'never',
    'The model has no price in this gateway, so the gateway cannot apply the limits of the key. Check the name of the model, or set its price (`tollgate prices set`).',
  ),
  invalid_api_key: row(
    401,
    'client',
    'never',
    'The key is missing, malformed, unknown, revoked, expired, or of the wrong kind.',
  ),
  budget_exceeded: row(
    402,
    'client',
    'never',
    'A budget of the key or of its account is exhausted. `error.details` contains the spend and the time at which the budget resets.',
  ),
  batch_exceeds_budget: row(
    402,
    'client',
    'never',
    'The batch is too expensive. All of its lines except the most expensive one must fit into each budget and into the credit. `error.details.needed_usd` is the sum of these lines. Split the batch.',
  ),
  model_not_allowed: row(
    403,
    'client',
    'never',
    'The key may not use this model, or the gateway cannot know which models the request will use. The message names the allowed models.',
  ),
  account_suspended: row(
    403,
    'client',
    'never',
    'The account of the key is suspended. The operator can resume it.',
  ),
  shared_upstream: row(
    403,
    'operator',
    'never',
    'Several accounts store objects under the same upstream credential, and this endpoint lists them. Give the account its own credential.',
  ),
  admin_key_required: row(403, 'client', 'never', 'This endpoint needs an admin key, not an API key.'),
  insufficient_role: row(
    403,
    'client',
    'never',
    'The role of the admin key or person does not permit this request. The message names the role that does.',
  ),
  endpoint_not_allowed: row(
    403,
    'operator',
    'never',
    'The operator has turned off the endpoints that show or store objects under the shared upstream credential (setting `stateful`).',
  ),
  not_found: row(404, 'client', 'never', 'The endpoint or the object does not exist.'),
  endpoint_not_metered: row(
    404,
    'operator',
    'never',
    'The gateway cannot meter calls to this path, so it cannot apply the limits of the key. If the path resembles the path of a paid endpoint, the message names that endpoint.',
  ),
  batch_file_unknown: row(
    404,
    'client',
    'never',
    'This key did not upload the file of the batch through this gateway, or the gateway could not read the lines of the file. So the gateway cannot apply the limits of the key.',
  ),
  minting_refused: row(
    404,
    'operator',
    'never',
    'The endpoint issues an upstream credential. This credential would still work after the key is revoked.',
  ),
  method_not_allowed: row(
    405,
    'client',
    'never',
    'The endpoint does not support this method. No endpoint supports TRACE or CONNECT.',
  ),
  request_timeout: row(408, 'client', 'safe', 'The head or body of the request stalled or was too slow.'),
  conflict: row(
    409,
    'client',
    'never',
    'The request conflicts with the current state, for example because the key is revoked or expired, a person has as many keys as the account permits, the webhook is disabled, or the `Idempotency-Key` belongs to another request. The message names the reason.',
  ),
  balance_not_positive: row(
    409,
    'operator',
    'never',
    'Enforcing credit while the balance is 0 or less would refuse every call. Add credit first, or send `force`.',
  ),
  last_operator_key: row(
    409,
    'operator',
    'never',
    'The last operator key cannot be revoked. Create another one first.',
  ),
  not_settled: row(
    409,
    'client',
    'safe',
    'A batch or response cannot be deleted before its cost is known. A file cannot be deleted while it may contain the results of an open batch. Nothing was sent upstream.',
    1,
  ),
  body_too_large: row(413, 'client', 'never', 'The request body is too large before or after decompression.'),
  expectation_failed: row(
    417,
    'client',
    'never',
    'The header `Expect` has a value other than `100-continue`.',
  ),
  websocket_not_supported: row(
    426,
    'gateway',
    'never',
    'The endpoint does not support WebSockets. Use HTTP.',
  ),
  budget_held: row(
    429,
    'client',
    'safe',
    'Calls in flight have reserved the rest of a budget, and did not end while this call waited. Nothing was sent upstream.',
    2,
  ),
  credit_held: row(
    429,
    'client',
    'safe',
    "Calls in flight have reserved the rest of the account's credit, and did not end while this call waited. Nothing was sent upstream.",
    2,
  ),
  rate_limit_exceeded: row(
    429,
    'client',
    'safe',
    'The key has reached its `requests_per_minute`, or the account has made 600 changes in this minute, or a person 60, or 20 new keys on this day. Nothing was sent upstream. `retry-after` is the time to wait.',
  ),
  too_many_calls: row(
    429,
    'client',
    'safe',
    "The key has too many calls in flight on this node. Nothing was sent upstream. Retry when some of them have ended. On the gateway's own endpoints: 1,000 requests of the key or its account are waiting on this node.",
    1,
  ),
  credit_balance_exhausted: row(429, 'operator', 'never', "The account's credit is exhausted. Add credit."),
  head_too_large: row(
    431,
    'client',
    'never',
    `The request head is larger than ${limits.headBytesMax / 1024} KiB or has more than ${withCommas(limits.headLinesMax)} lines.`,
  ),
  internal_error: row(500, 'gateway', 'unknown', 'The gateway has a defect. Report it with the request id.'),
  upstream_unreachable: row(
    502,
    'upstream',
    'unknown',
    'Upstream cannot be reached, or closed the connection before it answered.',
  ),
  upstream_invalid_response: row(502, 'upstream', 'unknown', 'Upstream sent an invalid HTTP response.'),
  store_unavailable: row(
    503,
    'gateway',
    'safe',
    'The database of the gateway does not answer. Nothing was sent upstream. A management request may have taken effect: repeat it with the same `Idempotency-Key`.',
    1,
  ),
  no_memory: row(
    503,
    'gateway',
    'safe',
    'Too many calls are in flight, or the gateway has no memory left for the request body. Nothing was sent upstream.',
    1,
  ),
  surface_not_configured: row(
    503,
    'operator',
    'never',
    'No upstream is configured for this API. The message names the variable to set.',
  ),
  upstream_timeout: row(504, 'upstream', 'unknown', 'Upstream did not answer a WebSocket handshake in time.'),
}

export type ErrorCode = keyof typeof ROWS

export const ERRORS: Readonly<Record<ErrorCode, ErrorRow>> = ROWS

/** Why a request is refused. Phases return it as a value; they do not throw it. */
export interface Refusal {
  readonly code: ErrorCode
  /** The message for the client. It names the field and the fix, and contains no secret. */
  readonly message: string
  readonly param?: string
  /** Figures for programs: members of `error.details`. */
  readonly details?: Readonly<Record<string, unknown>>
  /** The budget that refuses the call. Over HTTP, headers repeat it. */
  readonly budget?: Readonly<Record<'spentUsd' | 'heldUsd' | 'capUsd' | 'resetsAt', string>>
  readonly headers?: readonly string[]
  /** Closes the connection, because bytes after this request cannot be trusted. */
  readonly close?: true
  /** The key is unknown, so the refusal leaves no record: no key could look it up. */
  readonly unknownKey?: boolean
}

/** A refusal, and the account's balance if the client may know it. */
export interface Denial {
  readonly refusal: Refusal
  readonly balanceNanos: Nanos | null
}

export function refuse(code: ErrorCode, message: string, more?: Omit<Refusal, 'code' | 'message'>): Refusal {
  return { code, message, ...more }
}

/** Removes secrets from the parts of a refusal that quote the request. */
export function redactRefusal(refusal: Refusal, redact: Redact): Refusal {
  const message = redact(refusal.message)
  return refusal.param === undefined
    ? { ...refusal, message }
    : { ...refusal, message, param: redact(refusal.param) }
}

/** The database does not answer. The store returns all other failures as named results. */
export class StoreUnavailable extends Error {
  override readonly name: string = 'StoreUnavailable'
}

/** The database rejects this command because of a bug in the gateway. A retry does not help. */
export class StoreRefused extends Error {
  override readonly name = 'StoreRefused'
}

/** The database is closed or has failed. This process cannot use it again. */
export class StoreGone extends StoreUnavailable {
  override readonly name = 'StoreGone'
}

/** Why a file operation failed, without Node's code and path. */
export function fileProblem(error: unknown): string {
  const { code = '', message } = error as NodeJS.ErrnoException
  return FILE_PROBLEMS[code] ?? message
}

const FILE_PROBLEMS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or folder',
  EEXIST: 'it already exists',
  EACCES: 'this user has no permission',
  EISDIR: 'it is a folder',
  ENOTDIR: 'part of the path is not a folder',
  ENOSPC: 'the disk is full',
  EROFS: 'the file system is read-only',
}

/** A problem that the operator of the installation can fix. The message says how. */
export class InstallationError extends Error {
  override readonly name = 'InstallationError'
}

/** The configuration cannot be used. All its problems are reported together. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(`The configuration cannot be used:\n${problems.map((p) => `  - ${p}`).join('\n')}`)
    this.problems = problems
  }
}
