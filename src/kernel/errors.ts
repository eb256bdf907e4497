import { limits } from './limits.ts'
import { type Nanos, withCommas } from './money.ts'
import type { Redact } from './secret.ts'

/**
 * The one table of failures the service itself can answer with. For each: the status, whose fault it is, whether the
 * same request may be sent again, and what it means. The `type` of a failure is a word of the surface (`errors` of
 * its SurfaceSpec). `docs/ERRORS.md` shows the same table; a test holds the two together in both directions.
 *
 * fault   client: the request must change · operator: the configuration must change
 *         gateway: our own trouble · upstream: the provider's trouble
 * retry   never: the same request fails again, which `x-should-retry: false` says · safe: nothing was sent upstream,
 *         try again · unknown: the request may have reached upstream, a retry may be a second bill
 */
export interface ErrorRow {
  readonly status: number
  readonly fault: 'client' | 'operator' | 'gateway' | 'upstream'
  readonly retry: 'never' | 'safe' | 'unknown'
  readonly retryAfterSeconds?: number
  readonly meaning: string
}

/** A row is the status, fault, retry and, where there is one, the `retry-after` in seconds, then the meaning. */
const ROWS = {
  bad_request:
    '400 client never: The request line, a header or a field cannot be accepted as it stands; the message names which.',
  unknown_model:
    '400 client never: An entry of `allowed_models` matches no model of the price book; the message names the closest.',
  invalid_api_key:
    '401 client never: No key, a malformed, unknown, revoked or expired key, or a key of the wrong kind.',
  budget_exceeded:
    '402 client never: A ceiling of the key or of its account is spent. `error.details` says which, how much, and when it resets.',
  batch_exceeds_budget:
    '402 client never: All lines of the batch but the most expensive one must fit under every ceiling and the credit, and never could. `error.details.needed_usd` says how much they need.',
  model_not_allowed:
    '403 client never: The request names a model outside the allowlist of the key, or its models cannot be known before it runs.',
  account_suspended: '403 client never: The account of the key is suspended. Its operator can resume it.',
  shared_upstream:
    '403 operator never: The endpoint lists objects that several accounts have stored under one upstream credential. Give the account a credential of its own.',
  admin_key_required: '403 client never: An API key was used where an admin key is needed.',
  insufficient_role:
    '403 client never: The role of the admin key does not permit this. The message names the role that does.',
  endpoint_not_allowed:
    '403 operator never: The operator refuses endpoints that show objects stored under the shared upstream account.',
  not_found: '404 client never: No such endpoint or object of the gateway itself.',
  model_not_priced:
    '404 operator never: The model has no price in this gateway yet, and the call could not be held against a limit.',
  endpoint_not_metered:
    '404 operator never: What the endpoint costs cannot be read off the wire, and the call could not be held against a limit; or the path is another spelling of a paid endpoint, and the message names that one.',
  batch_file_unknown:
    '404 client never: The file that a batch is to be made of was not uploaded here by this key, or its lines could not be read: what it may cost cannot be held against a limit.',
  minting_refused:
    '404 operator never: The endpoint hands out an upstream credential, which would outlive the revocation of the key.',
  method_not_allowed:
    '405 client never: TRACE, CONNECT, or a method that the gateway endpoint does not have.',
  request_timeout:
    '408 client safe: The head or the body of the request stopped arriving, or came too slowly.',
  conflict:
    '409 client never: The key is revoked or expired and cannot be changed, the webhook is disabled or its secret was changed twice within a day, there are as many webhooks as there may be, or an `Idempotency-Key` was used for another request.',
  balance_not_positive:
    '409 operator never: Enforcing credit while the balance is 0 or less would refuse every call. Add credit, or send `force`.',
  last_operator_key:
    '409 operator never: Without an operator key nobody could manage the installation. Create another one first.',
  not_settled:
    '409 client safe 1: A `DELETE` of a batch or response that is not settled, or of a file that may hold the results of an open batch. Nothing was sent upstream.',
  body_too_large:
    '413 client never: The request body is larger than the gateway holds back for admission, or decodes to far more than was sent.',
  expectation_failed: '417 client never: An Expect header other than 100-continue.',
  websocket_not_supported: '426 gateway never: The endpoint has no WebSockets; use its HTTP form.',
  budget_held:
    '429 client safe 2: Calls in flight hold what is left of a ceiling, and the wait for them was too long. Nothing was sent.',
  credit_held:
    "429 client safe 2: Calls in flight hold what is left of the account's prepaid credit, and the wait for them was too long. Nothing was sent.",
  rate_limit_exceeded:
    '429 client safe: The key has made as many calls in this minute (UTC) as its `requests_per_minute` allows. Nothing was sent upstream. `retry-after` is the time to the next minute.',
  too_many_calls:
    '429 client safe 1: The key has as many calls in flight on this node as one key may have. Nothing was sent upstream.',
  credit_balance_exhausted: "429 operator never: The account's prepaid credit is used up.",
  head_too_large: `431 client never: The request head is larger than ${limits.headBytesMax / 1024} KiB or has more than ${withCommas(limits.headLinesMax)} lines.`,
  internal_error: '500 gateway unknown: A defect of the gateway. Report it with the request id.',
  upstream_unreachable:
    '502 upstream unknown: No connection to upstream, or it ended before the head of the answer.',
  upstream_invalid_response: '502 upstream unknown: Upstream answered with something that is not HTTP/1.1.',
  store_unavailable:
    '503 gateway safe 1: The store cannot decide about the key now. Nothing was sent upstream. A command of the management API may have been done: repeat it with the same `Idempotency-Key`.',
  no_memory:
    '503 gateway safe 1: Too many calls are in flight, or there is no room for the request body. Nothing was sent upstream.',
  surface_not_configured:
    '503 operator never: No upstream is configured for this surface; the message names the variable to set.',
  upstream_timeout: '504 upstream unknown: Upstream did not answer a WebSocket handshake in time.',
} as const

export type ErrorCode = keyof typeof ROWS

export const ERRORS = Object.fromEntries(
  Object.entries(ROWS).map(([code, text]) => {
    const [words = '', meaning = ''] = text.split(/: (.*)/)
    const [status, fault, retry, seconds] = words.split(' ')
    const row = { status: Number(status), fault, retry, meaning }
    return [code, seconds === undefined ? row : { ...row, retryAfterSeconds: Number(seconds) }]
  }),
) as Readonly<Record<ErrorCode, ErrorRow>>

/** A named reason not to go on. It is a value that phases return, not an exception that some handler might catch. */
export interface Refusal {
  readonly code: ErrorCode
  /** The text for the client. It names the field and the fix and holds no secret. */
  readonly message: string
  /** The field at fault, where there is one. */
  readonly param?: string
  /** Figures that a program may read: members of `error.details`, and the header lines that repeat them. */
  readonly details?: Readonly<Record<string, unknown>>
  readonly headers?: readonly string[]
  /** The byte stream behind this request cannot be trusted to be in step: close the connection. */
  readonly close?: true
  /** The request came with a key that is none of ours: no key could look the refusal up. */
  readonly stranger?: boolean
}

/** A refusal, and the balance of the account where the client may know it. */
export interface Denial {
  readonly refusal: Refusal
  readonly balanceNanos: Nanos | null
}

export function refuse(
  code: ErrorCode,
  message: string,
  more?: Pick<Refusal, 'param' | 'close' | 'details' | 'headers' | 'stranger'>,
): Refusal {
  return { code, message, ...more }
}

/** Parts of a refusal repeat the request; they must not repeat a secret that stood in it. */
export function redactRefusal(refusal: Refusal, redact: Redact): Refusal {
  const message = redact(refusal.message)
  return refusal.param === undefined
    ? { ...refusal, message }
    : { ...refusal, message, param: redact(refusal.param) }
}

/** Thrown by stores when they cannot answer at all; every other failure of a store is a named result. */
export class StoreUnavailable extends Error {
  override readonly name: string = 'StoreUnavailable'
}

/** The store rejects this command permanently: a bug in the gateway. A retry does not help. */
export class StoreRefused extends Error {
  override readonly name = 'StoreRefused'
}

/** The store will not answer again in the life of this process. */
export class StoreGone extends StoreUnavailable {
  override readonly name = 'StoreGone'
}

/** A problem that the operator of the installation can fix; the message says how. */
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
