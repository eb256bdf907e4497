import { type Exchange, sendWhole } from '../http/exchange.ts'
import { firstValue } from '../http/raw-headers.ts'
import { type CallEnd, HANDSHAKE_TIMEOUT } from '../http/upstream-call.ts'
import type { Clock } from '../kernel/clock.ts'
import { type Refusal, redactRefusal, refuse, StoreUnavailable } from '../kernel/errors.ts'
import type { HeaderNames } from '../kernel/header-names.ts'
import { requestInstantMs } from '../kernel/ids.ts'
import { limits } from '../kernel/limits.ts'
import type { Log } from '../kernel/log.ts'
import { formatUsd, type Nanos, rawNumber } from '../kernel/money.ts'
import { redactEncoded, redactForeign } from '../kernel/secret.ts'
import { nearestName, type Surface } from '../kernel/vocabulary.ts'
import { refuseKey } from '../keys/credential.ts'
import { MONTHS } from '../ledger/calendar.ts'
import {
  type BlockedBy,
  type Budget,
  type CallRefusal,
  HOLD_METHOD,
  type SpentRefusal,
} from '../ledger/call.ts'
import type { RefusedCalls } from '../ledger/unsent-calls.ts'
import type { Endpoint } from '../providers/endpoint.ts'
import { allEndpoints } from '../providers/find-endpoint.ts'
import { findMisspelled } from '../providers/path-spelling.ts'
import { type Audience, SURFACES, shapeError, statusOf } from '../providers/surfaces.ts'
import type { CallCounts } from '../telemetry/call-counts.ts'
import type { ObserveCall } from '../telemetry/call-log.ts'
import type { Call } from './call.ts'
import { BodyTooSlow, figureLines } from './permitted-changes.ts'

interface RefusedRequest {
  readonly endpoint: string
  readonly model: string | null
  /** The closest priced model, if `model` has no price. */
  readonly closestModel: string | null
  /** The request member that makes this call unmeterable on a metered endpoint. */
  readonly unmeteredMember: string | null
  readonly allowedModels: readonly string[]
  /** `pricing.unpriced` is `refuse`: keys without limits are refused too. */
  readonly refusesAllKeys: boolean
}

export function explainRefusal(refusal: CallRefusal, request: RefusedRequest, names: HeaderNames): Refusal {
  switch (refusal.reason) {
    case 'unknown_key':
    case 'revoked_key':
    case 'expired_key':
      return refuseKey(refusal.reason)
    case 'account_suspended':
      return SUSPENDED
    case 'ambiguous_body':
      return refuse('bad_request', refusal.detail)
    case 'model_not_allowed': {
      const message = `This key may not use the model ${quoted(refusal.model)}. ${allowedModelsHint(request.allowedModels)}`
      return refuse('model_not_allowed', message, { param: 'model' })
    }
    case 'models_unknown':
      return refuse(
        'model_not_allowed',
        `${refusal.detail} This key has allowed_models, so a request must name every model that it uses. ` +
          allowedModelsHint(request.allowedModels),
      )
    case 'over_limit':
      return refuse(refusal.code, refusal.message, {
        headers: ['retry-after', String(refusal.retryAfterSeconds)],
      })
    case 'model_not_priced': {
      const model =
        request.model === null ? 'The model of this request' : `The model ${quoted(request.model)}`
      const meant = request.closestModel === null ? '' : ` Did you mean ${quoted(request.closestModel)}?`
      const message = `${model} has no price in this gateway yet.${meant} Check the name, or ask the operator to add its price.`
      return refuse('model_not_priced', message, { param: 'model' })
    }
    case 'endpoint_not_metered':
      if (request.unmeteredMember !== null) {
        const message = `This gateway cannot meter requests with "${request.unmeteredMember}". Send the request without it, or ask the operator to set deferred.poll to true.`
        return refuse('endpoint_not_metered', message, { param: request.unmeteredMember })
      }
      return refuse(
        'endpoint_not_metered',
        `This gateway cannot meter ${request.endpoint}, so no key${request.refusesAllKeys ? '' : ' with limits'} can call it.` +
          `${endpointSuggestion(request.endpoint)} Check the path, or ask the operator ` +
          (request.refusesAllKeys ? 'to change pricing.unpriced.' : 'for a key without limits.'),
      )
    case 'batch_file_unknown':
      return refuse(
        'batch_file_unknown',
        'This key has limits, and it did not upload the file of this batch through this gateway. Upload the file here with ' +
          'this key, as JSON Lines with "url" and "body" in each line, and create the batch from the new file.',
        { param: 'input_file_id' },
      )
    case 'batch_exceeds_budget':
      return explainBatch(refusal, names)
    case 'budget_exceeded':
    case 'credit_exhausted':
      return explainSpent(refusal, names)
  }
}

const METERED = allEndpoints().filter(({ billing }) => billing === 'metered')

/** `endpoint`: method and path. Suggests the metered endpoint with the closest path, which may have another method. */
function endpointSuggestion(endpoint: string): string {
  const path = endpoint.slice(endpoint.indexOf(' ') + 1)
  const closest = nearestName(
    path,
    METERED.map(({ template }) => template),
    3,
  )
  const found = METERED.find(({ template }) => template === closest)
  return found === undefined ? '' : ` Did you mean ${found.method} ${found.template}?`
}

export function explainSpent(spent: SpentRefusal, names: HeaderNames): Refusal {
  // Anthropic's clients recognise an empty account by this text.
  if (spent.reason === 'credit_exhausted')
    return refuse(
      'credit_balance_exhausted',
      'Your credit balance is too low to access this gateway. Ask its operator to add credit.',
    )
  const { budget } = spent
  const exhausted = `The ${budgetName(budget)} is exhausted: ${describeSpend(budget)}. Wait until it ${resetSentence(budget)}, or ask the operator for a larger budget.`
  const none = `The ${budgetName(budget)} is 0 USD, so this key cannot make paid calls. Ask the operator for a budget.`
  return refuse('budget_exceeded', budget.capNanos === 0n ? none : exhausted, figuresOf(budget, names))
}

export const SUSPENDED = refuse(
  'account_suspended',
  'The account of this key is suspended. Ask the operator of this gateway to resume it.',
)

export function explainBlocked(by: BlockedBy, names: HeaderNames): Refusal {
  if (by.limit === 'credit')
    return refuse(
      'credit_held',
      "Calls in flight have reserved the rest of the account's credit. Retry when they have ended, or ask the operator to add credit.",
    )
  return refuse(
    'budget_held',
    `Calls in flight have reserved the rest of the ${budgetName(by.budget)}: ${describeSpend(by.budget)}. Retry when they have ended, ` +
      'or send a smaller max_tokens. The operator can set a larger budget, or budgets.mode "settled". ' +
      `The budget ${resetSentence(by.budget)}.`,
    figuresOf(by.budget, names),
  )
}

function explainBatch(
  { budget, neededNanos }: Extract<CallRefusal, { reason: 'batch_exceeds_budget' }>,
  names: HeaderNames,
): Refusal {
  const limit =
    budget === null ? "the account's credit" : `the ${budgetName(budget)}: ${describeSpend(budget)}`
  const figures = budget === null ? { headers: [] } : figuresOf(budget, names)
  return refuse(
    'batch_exceeds_budget',
    `Even without its most expensive line, this batch may cost ${formatUsd(neededNanos)} USD, more than is left of ${limit}. ` +
      'Split the batch, or set a smaller max_tokens in its lines.',
    { ...figures, details: { needed_usd: rawNumber(formatUsd(neededNanos)), ...figures.details } },
  )
}

function budgetName({ scope, period }: Budget): string {
  const owner = scope === 'key' ? 'this key' : 'the account of this key'
  return `${period === 'month' ? 'monthly' : 'daily'} budget of ${owner}`
}

/** Maximum number of models that a refusal names, because a key may have hundreds. */
const MODELS_NAMED_MAX = 10

function allowedModelsHint(models: readonly string[]): string {
  if (models.length === 0) return 'Use one of its allowed_models.'
  const named = models.slice(0, MODELS_NAMED_MAX).map(quoted).join(', ')
  const others = models.length - MODELS_NAMED_MAX
  return `Use one of its allowed_models: ${named}${others > 0 ? ` and ${others} more` : ''}.`
}

function quoted(model: string): string {
  return JSON.stringify(model.slice(0, limits.recordedCharsMax))
}

function describeSpend({ spentNanos, heldNanos, capNanos }: Budget): string {
  const held = heldNanos === 0n ? '' : `, ${formatUsd(heldNanos)} USD reserved`
  return `${formatUsd(spentNanos)} of ${formatUsd(capNanos)} USD spent${held}`
}

function resetSentence({ resetsAtMs }: Budget): string {
  const at = new Date(resetsAtMs)
  return `resets on ${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]} (UTC)`
}

function resetTime({ resetsAtMs }: Budget): string {
  return new Date(resetsAtMs).toISOString()
}

function figuresOf(budget: Budget, names: HeaderNames): Pick<Refusal, 'details' | 'headers'> {
  const { spentNanos, heldNanos, capNanos } = budget
  return {
    details: {
      scope: budget.scope,
      period: budget.period,
      spent_usd: rawNumber(formatUsd(spentNanos)),
      held_usd: rawNumber(formatUsd(heldNanos)),
      cap_usd: rawNumber(formatUsd(capNanos)),
      resets_at: resetTime(budget),
    },
    headers: [
      names.budgetSpentUsd,
      formatUsd(spentNanos),
      names.budgetHeldUsd,
      formatUsd(heldNanos),
      names.budgetCapUsd,
      formatUsd(capNanos),
      names.budgetResetsAt,
      resetTime(budget),
    ],
  }
}

function refuseWebSocket(path: string): Refusal {
  const message = `${path.slice(0, SHOWN_PATH_CHARS_MAX)} does not support WebSockets. Call this endpoint over HTTP, with SSE for streams.`
  // A 426 response must name the protocol to use.
  return refuse('websocket_not_supported', message, { headers: ['upgrade', 'HTTP/1.1'] })
}

export function refuseTooManyCalls(callsMax: number): Refusal {
  const message = `This key already has ${callsMax} calls in flight on this node. Retry when some of them have ended.`
  return refuse('too_many_calls', message)
}

export const TOO_MANY_TURNS = refuse(
  'too_many_calls',
  `This WebSocket already has ${limits.turnsPerSocketMax} responses in progress. Retry when some of them have ended.`,
)

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

/** The refusal of a DELETE before settlement: upstream would no longer report the cost. */
export function refuseDelete(what: 'object' | 'file'): Refusal {
  const message =
    what === 'object'
      ? 'This object cannot be deleted until its cost is known. Retry when it has finished.'
      : 'This file cannot be deleted yet, because it may hold the results of an open batch. Retry when the batch has finished.'
  return refuse('not_settled', message)
}

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
    { ...shaped, headers: [...shaped.headers, ...lines] },
    { close: refusal.close === true },
  )
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
}

/** Refuses a call and records it, so that its id can be looked up. An unknown key leaves no record. */
export function refuseCall(
  call: Call,
  refusal: Refusal,
  gateway: Recorders,
  known: { readonly balanceNanos?: Nanos | null; readonly modelAsked?: string | null } = {},
): void {
  sendRefusal(call.exchange, call.surface, refusal, known)
  recordRefusal(call, refusal, gateway, known.modelAsked ?? null)
}

export function recordRefusal(
  call: Call,
  refusal: Refusal,
  gateway: Recorders,
  modelAsked: string | null,
): void {
  const { surface, digest, exchange, endpoint } = call
  const { clock, counts, refusedCalls, observeCall } = gateway
  const { code } = refusal
  counts.countRefusal(code)
  if (refusal.unknownKey === true && observeCall === null) return
  const unsent = describeUnsent(call, modelAsked, gateway)
  const refused = { ...unsent, status: statusOf(surface, code), code, endedAtMs: Math.trunc(clock.nowMs()) }
  if (refusal.unknownKey !== true) refusedCalls.add({ ...refused, digest })
  observeCall?.({
    ...refused,
    ...{ keyId: null, endpoint, modelServed: null, cut: false, tokens: null, costNanos: 0n },
    ...{ ms: refused.endedAtMs - unsent.startedAtMs, headers: exchange.headers, upstream: null },
  })
}

export function describeCall({ exchange, target, surface, socketId }: Call, modelAsked: string | null) {
  const { names, requestId, method, headers, clientIp } = exchange
  return {
    ...{ requestId, method, surface, clientIp, socketId },
    path: recordable(target.path, names),
    modelAsked: recordable(modelAsked, names),
    userAgent: recordable(firstValue(headers, 'user-agent') ?? null, names),
  }
}

export function describeUnsent(call: Call, modelAsked: string | null, { clock }: Pick<Recorders, 'clock'>) {
  const described = describeCall(call, modelAsked)
  return {
    ...described,
    startedAtMs: requestInstantMs(described.requestId) ?? Math.trunc(clock.nowMs()),
    method: described.method === HOLD_METHOD ? 'WS' : described.method,
  }
}

export function recordable<T extends string | null>(text: T, names: HeaderNames): T
export function recordable(text: string | null, { redact }: HeaderNames): string | null {
  if (text === null) return null
  return redactForeign(redactEncoded(text, redact)).slice(0, limits.recordedCharsMax)
}
