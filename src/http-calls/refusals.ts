import { describeUnsent } from '../calls/admit.ts'
import type { Asked } from '../calls/ask.ts'
import { type Exchange, sendWhole } from '../http/exchange.ts'
import type { RawHeaders } from '../http/raw-headers.ts'
import { type CallEnd, HANDSHAKE_TIMEOUT } from '../http/upstream-call.ts'
import type { Clock } from '../kernel/clock.ts'
import { type Refusal, redactRefusal, refuse, StoreUnavailable } from '../kernel/errors.ts'
import type { HeaderNames } from '../kernel/header-names.ts'
import type { Log } from '../kernel/log.ts'
import type { Nanos } from '../kernel/money.ts'
import type { Surface } from '../kernel/vocabulary.ts'
import type { RefusedCalls } from '../ledger/unsent-calls.ts'
import type { Endpoint } from '../providers/endpoint.ts'
import { findMisspelled } from '../providers/path-spelling.ts'
import { type Audience, SURFACES, shapeError, statusOf } from '../providers/surfaces.ts'
import type { CallCounts } from '../telemetry/call-counts.ts'
import type { ObserveCall } from '../telemetry/call-log.ts'
import type { Call } from './call.ts'
import type { OwnUpstreams } from './own-upstreams.ts'
import { BodyTooSlow, figureLines } from './permitted-changes.ts'

function refuseWebSocket(path: string): Refusal {
  const message = `${path.slice(0, SHOWN_PATH_CHARS_MAX)} does not support WebSockets. Call this endpoint over HTTP, with SSE for streams.`
  // A 426 response must name the protocol to use.
  return refuse('websocket_not_supported', message, { headers: ['upgrade', 'HTTP/1.1'] })
}

export const IN_MAINTENANCE = refuse(
  'surface_not_configured',
  'This gateway is in maintenance mode and sends nothing upstream. Ask its operator to start it without --maintenance.',
)

export function refuseUnconfigured(surface: Surface): Refusal {
  const { key, url } = SURFACES[surface].upstream.variables
  const message = `No upstream is configured for this API. Ask the operator to set ${key} (or ${url}).`
  return refuse('surface_not_configured', message)
}

export function refuseEndpoint(
  { exchange, target: { path }, endpoint }: Call,
  { minting, stateful }: { readonly minting: 'pass' | 'refuse'; readonly stateful: 'pass' | 'refuse' },
): Refusal | null {
  if (exchange.res.maySwitch && endpoint === null) return refuseWebSocket(path)
  const refusal =
    endpoint === null ? refuseMisspelled(exchange.method, path) : refuseMinting(endpoint, minting)
  return refusal ?? refuseStored(endpoint, stateful)
}

const SHOWN_PATH_CHARS_MAX = 200

function refuseMisspelled(method: string, path: string): Refusal | null {
  const misspelled = findMisspelled(method, path)
  if (misspelled === null) return null
  const { meant } = misspelled
  const shown = path.length > SHOWN_PATH_CHARS_MAX ? `${path.slice(0, SHOWN_PATH_CHARS_MAX)}…` : path
  const advice =
    meant === null
      ? 'Check the path.'
      : `Did you mean ${meant.method} ${meant.template}? Check the method and the base URL.`
  return refuse('endpoint_not_metered', `There is no endpoint ${method} ${shown}. ${advice}`)
}

function refuseMinting({ billing }: Endpoint, minting: 'pass' | 'refuse'): Refusal | null {
  if (billing !== 'mints_credential' || minting === 'pass') return null
  const message =
    'This endpoint issues an upstream credential, which would still work after your key is revoked. Only the operator of this gateway can allow this endpoint.'
  return refuse('minting_refused', message)
}

/** Refuses unknown paths, and endpoints that show stored objects: keys on one credential share these. */
function refuseStored(endpoint: Endpoint | null, stateful: 'pass' | 'refuse'): Refusal | null {
  if (stateful === 'pass' || (endpoint !== null && !endpoint.stateful)) return null
  const message =
    'This gateway refuses endpoints that show or store objects of the shared upstream account. Ask its operator to allow them.'
  return refuse('endpoint_not_allowed', message)
}

/** The refusal of lists of stored objects, which would show the objects of other accounts on the credential. */
export const SHARED_UPSTREAM = refuse(
  'shared_upstream',
  'This endpoint lists objects that other accounts store under the same upstream credential. Ask the operator to give your account its own credential.',
)

/** The refusal if upstream sent no response head. The cause is only logged, because it names our upstream. */
export function explainFailure(end: CallEnd & { kind: 'failed' }): Refusal {
  const code = 'code' in end.error ? String(end.error.code) : ''
  if (end.error instanceof BodyTooSlow) {
    return refuse('request_timeout', end.error.message, { close: true })
  }
  if (code === HANDSHAKE_TIMEOUT) {
    return refuse('upstream_timeout', 'Upstream did not answer the WebSocket handshake in time. Retry later.')
  }
  if (code.startsWith('HPE_') || code === '') {
    return refuse(
      'upstream_invalid_response',
      'Upstream sent an invalid HTTP response. It may have processed the request, so you may pay twice if you retry.',
    )
  }
  const message = end.sent
    ? 'Upstream closed the connection before it answered. It may have received the request, so you may pay twice if you retry.'
    : 'Upstream cannot be reached. Nothing was sent to it, so you can retry.'
  return refuse('upstream_unreachable', message)
}

/** The refusal for an exception. `isOwn`: the store may have executed the command before its answer was lost. */
export function explainThrown(error: unknown, request: string, log: Log, isOwn = false): Refusal {
  if (error instanceof StoreUnavailable) {
    log.error({ request, cause: error.message }, 'the database does not answer')
    return refuse(
      'store_unavailable',
      isOwn
        ? "The gateway's database does not answer, so the request may or may not have taken effect. Repeat it with the same " +
            'Idempotency-Key, or check the result first.'
        : 'The gateway cannot check the key, because its database does not answer. Nothing was sent upstream, so you can retry.',
    )
  }
  log.error({ request, err: error }, 'unexpected error')
  return refuse(
    'internal_error',
    'The gateway failed with an internal error. Report it to the operator with the request id.',
  )
}

export function sendRefusal(
  exchange: Exchange,
  audience: Audience,
  refusal: Refusal,
  known: { readonly balanceNanos?: Nanos | null; readonly upstreamMs?: number } = {},
): void {
  // A response that has begun cannot become an error response, so break the connection.
  if (exchange.res.headersSent) {
    exchange.res.destroy()
    return
  }
  const shaped = shapeError(audience, redactRefusal(refusal, exchange.names.redact), exchange.requestId)
  const figures = { costNanos: 0n, listNanos: 0n, balanceNanos: known.balanceNanos ?? null }
  const lines = audience === 'own' ? [] : figureLines(exchange.names, figures, known.upstreamMs ?? 0)
  sendWhole(
    exchange,
    { ...shaped, headers: [...shaped.headers, ...budgetLines(refusal, exchange.names), ...lines] },
    { close: refusal.close === true },
  )
}

function budgetLines({ budget }: Refusal, names: HeaderNames): readonly string[] {
  if (budget === undefined) return []
  return [
    ...[names.budgetSpentUsd, budget.spentUsd, names.budgetHeldUsd, budget.heldUsd],
    ...[names.budgetCapUsd, budget.capUsd, names.budgetResetsAt, budget.resetsAt],
  ]
}

/** Refuses a request without a record, and counts the refusal if the path is proxied. */
export function refuseRequest(
  exchange: Exchange,
  audience: Audience,
  refusal: Refusal,
  counts: CallCounts,
): void {
  if (audience !== 'own') counts.countRefusal(refusal.code)
  sendRefusal(exchange, audience, refusal)
}

interface Recorders {
  readonly clock: Clock
  readonly counts: CallCounts
  readonly refusedCalls: RefusedCalls
  readonly observeCall: ObserveCall | null
  readonly ownUpstreams: Pick<OwnUpstreams, 'isUsed'>
}

/** Refuses a call and records it, so that its id can be looked up. An unknown key leaves no record. */
export function refuseCall(
  call: Call,
  refusal: Refusal,
  gateway: Recorders,
  known: { readonly balanceNanos?: Nanos | null; readonly modelAsked?: string | null } = {},
): void {
  const { exchange } = call
  sendRefusal(exchange, call.surface, refusal, known)
  recordRefusal(call, refusal, gateway, exchange.headers, known.modelAsked ?? null)
}

export function recordRefusal(
  asked: Asked,
  refusal: Refusal,
  gateway: Recorders,
  headers: RawHeaders,
  modelAsked: string | null,
): void {
  const { clock, counts, refusedCalls, observeCall, ownUpstreams } = gateway
  const { code } = refusal
  counts.countRefusal(code)
  if (refusal.unknownKey === true && observeCall === null) return
  const { surface } = asked
  const unsent = describeUnsent(asked, modelAsked, clock)
  // An account's own upstream may offer models that the installation's does not list.
  const isUnpriced =
    code === 'model_not_priced' && (counts.countUnpriced(surface, unsent.modelAsked) || ownUpstreams.isUsed)
  const endedAtMs = Math.trunc(clock.nowMs())
  const refused = { ...unsent, status: statusOf(surface, code), code, endedAtMs, isUnpriced }
  if (refusal.unknownKey !== true) refusedCalls.add({ ...refused, digest: asked.caller.digest })
  observeCall?.({
    ...refused,
    keyId: null,
    endpoint: asked.endpoint,
    modelServed: null,
    cut: false,
    tokens: null,
    costNanos: 0n,
    ms: endedAtMs - unsent.startedAtMs,
    headers,
    upstream: null,
  })
}
