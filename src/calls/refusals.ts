import { type Refusal, refuse } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import { formatUsd, rawNumber } from '../kernel/money.ts'
import { nearestName } from '../kernel/nearest-name.ts'
import { refuseKey } from '../keys/credential.ts'
import { MONTHS } from '../ledger/calendar.ts'
import type { BlockedBy, Budget, CallRefusal, SpentRefusal } from '../ledger/call.ts'
import { allEndpoints } from '../providers/find-endpoint.ts'

/** What a refusal of the core says. How it goes to the client is the carrier's matter. */

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

export function explainRefusal(refusal: CallRefusal, request: RefusedRequest): Refusal {
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
      const message = `${model} has no price in this gateway yet.${meant} Check the name, or ask the operator to set its price (tollgate prices set).`
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
      return explainBatch(refusal)
    case 'budget_exceeded':
    case 'credit_exhausted':
      return explainSpent(refusal)
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

export function explainSpent(spent: SpentRefusal): Refusal {
  // Anthropic's clients recognise an empty account by this text.
  if (spent.reason === 'credit_exhausted')
    return refuse(
      'credit_balance_exhausted',
      'Your credit balance is too low to access this gateway. Ask its operator to add credit.',
    )
  const { budget } = spent
  const exhausted = `The ${budgetName(budget)} is exhausted: ${describeSpend(budget)}. Wait until it ${resetSentence(budget)}, or ask the operator for a larger budget.`
  const none = `The ${budgetName(budget)} is 0 USD, so this key cannot make paid calls. Ask the operator for a budget.`
  return refuse('budget_exceeded', budget.capNanos === 0n ? none : exhausted, figuresOf(budget))
}

export const SUSPENDED = refuse(
  'account_suspended',
  'The account of this key is suspended. Ask the operator of this gateway to resume it.',
)

export function explainBlocked(by: BlockedBy): Refusal {
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
    figuresOf(by.budget),
  )
}

function explainBatch({
  budget,
  neededNanos,
}: Extract<CallRefusal, { reason: 'batch_exceeds_budget' }>): Refusal {
  const limit =
    budget === null ? "the account's credit" : `the ${budgetName(budget)}: ${describeSpend(budget)}`
  const figures = budget === null ? { details: {} } : figuresOf(budget)
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

function figuresOf(budget: Budget): Pick<Refusal, 'details' | 'budget'> {
  const spentUsd = formatUsd(budget.spentNanos)
  const heldUsd = formatUsd(budget.heldNanos)
  const capUsd = formatUsd(budget.capNanos)
  const resetsAt = resetTime(budget)
  return {
    details: {
      scope: budget.scope,
      period: budget.period,
      spent_usd: rawNumber(spentUsd),
      held_usd: rawNumber(heldUsd),
      cap_usd: rawNumber(capUsd),
      resets_at: resetsAt,
    },
    budget: { spentUsd, heldUsd, capUsd, resetsAt },
  }
}

export function refuseTooManyCalls(callsMax: number): Refusal {
  const message = `This key already has ${callsMax} calls in flight on this node. Retry when some of them have ended.`
  return refuse('too_many_calls', message)
}

export const TOO_MANY_TURNS = refuse(
  'too_many_calls',
  `This WebSocket already has ${limits.turnsPerSocketMax} responses in progress. Retry when some of them have ended.`,
)

/** The refusal of a DELETE before settlement: upstream would no longer report the cost. */
export function refuseDelete(what: 'object' | 'file'): Refusal {
  const message =
    what === 'object'
      ? 'This object cannot be deleted until its cost is known. Retry when it has finished.'
      : 'This file cannot be deleted yet, because it may hold the results of an open batch. Retry when the batch has finished.'
  return refuse('not_settled', message)
}
