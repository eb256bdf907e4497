import { type Refusal, refuse } from '../kernel/errors.ts'
import type { HeaderNames } from '../kernel/header-names.ts'
import { limits } from '../kernel/limits.ts'
import { formatUsd, rawNumber } from '../kernel/money.ts'
import { refuseKey } from '../keys/identity.ts'
import type { Budget, CallRefusal, HeldBy } from '../ledger/call.ts'

/** What of a call a refusal may name. */
export interface AskedFor {
  /** Method and path. */
  readonly endpoint: string
  readonly model: string | null
  /** Why the call cannot be metered though its endpoint can. */
  readonly unmeteredMember: string | null
  /** Of the key; known only where the call was refused for its models. */
  readonly allowedModels: readonly string[]
}

/** What the client is told of a call that the store did not admit. It names the limit and what can be done. */
export function explainRefusal(refusal: CallRefusal, asked: AskedFor, names: HeaderNames): Refusal {
  switch (refusal.reason) {
    case 'unknown_key':
    case 'revoked_key':
    case 'expired_key':
      return refuseKey(refusal.reason)
    case 'ambiguous_body':
      return refuse('bad_request', refusal.detail)
    case 'model_not_allowed': {
      const message = `This key may not use the model ${quoted(refusal.model)}. ${mayUse(asked.allowedModels)}`
      return refuse('model_not_allowed', message, { param: 'model' })
    }
    case 'models_unknown':
      return refuse(
        'model_not_allowed',
        `${refusal.detail} This key has a list of allowed models, so it may only call what names its models. ` +
          mayUse(asked.allowedModels),
      )
    case 'model_not_priced': {
      const model = asked.model === null ? 'The model of this request' : `The model ${quoted(asked.model)}`
      return refuse('model_not_priced', `${model} has no price in this gateway yet. Ask its operator.`, {
        param: 'model',
      })
    }
    case 'endpoint_not_metered':
      if (asked.unmeteredMember !== null) {
        const message = `What "${asked.unmeteredMember}" of this request leads to cannot be metered by this gateway yet. Send it without, or ask its operator.`
        return refuse('endpoint_not_metered', message, { param: asked.unmeteredMember })
      }
      return refuse(
        'endpoint_not_metered',
        `What ${asked.endpoint} costs cannot be metered by this gateway yet. Ask its operator.`,
      )
    case 'budget_exceeded':
      return refuse(
        'budget_exceeded',
        `The monthly budget of this key is spent: ${shown(refusal.budget)}. It ${resetsOn(refusal.budget)}.`,
        figuresOf(refusal.budget, names),
      )
    case 'credit_exhausted':
      return creditExhausted()
  }
}

/** After a wait that was too long. */
export function explainHeld(by: HeldBy, names: HeaderNames): Refusal {
  if (by.limit === 'credit') return creditExhausted()
  return refuse(
    'budget_held',
    `Calls in flight hold what is left of this key's monthly budget: ${shown(by.budget)}. Try again when they have ended. ` +
      'A call with a smaller max_tokens holds less; a larger cap leaves more room; with budgets.mode "settled" the ' +
      `operator lets calls in flight pass the cap. The budget ${resetsOn(by.budget)}.`,
    figuresOf(by.budget, names),
  )
}

/** Clients of Anthropic recognise an empty account by these words. */
function creditExhausted(): Refusal {
  return refuse(
    'credit_balance_exhausted',
    'Your credit balance is too low to access this gateway. Ask its operator to add credit.',
  )
}

/** A key may have hundreds. */
const MODELS_NAMED_MAX = 10

function mayUse(models: readonly string[]): string {
  if (models.length === 0) return 'Use one of its allowed_models.'
  const named = models.slice(0, MODELS_NAMED_MAX).map(quoted).join(', ')
  const others = models.length - MODELS_NAMED_MAX
  return others > 0 ? `It may use ${named} and ${others} more.` : `It may use ${named}.`
}

/** Whatever a model is called, what is said of it stays readable. */
function quoted(model: string): string {
  return JSON.stringify(model.slice(0, limits.recordedCharsMax))
}

function shown({ spentNanos, heldNanos, capNanos }: Budget): string {
  const held = heldNanos === 0n ? '' : ` and ${formatUsd(heldNanos)} held`
  return `${formatUsd(spentNanos)} spent${held} of ${formatUsd(capNanos)} USD`
}

const MONTHS = [
  ...['January', 'February', 'March', 'April', 'May', 'June', 'July'],
  ...['August', 'September', 'October', 'November', 'December'],
]

/** A month ends where the next begins, on its first day. */
function resetsOn({ resetsAtMs }: Budget): string {
  return `resets on 1 ${MONTHS[new Date(resetsAtMs).getUTCMonth()]} (UTC)`
}

function resetOf({ resetsAtMs }: Budget): string {
  return new Date(resetsAtMs).toISOString()
}

function figuresOf(budget: Budget, names: HeaderNames): Pick<Refusal, 'details' | 'headers'> {
  const { spentNanos, heldNanos, capNanos } = budget
  return {
    details: {
      spent_usd: rawNumber(formatUsd(spentNanos)),
      held_usd: rawNumber(formatUsd(heldNanos)),
      cap_usd: rawNumber(formatUsd(capNanos)),
      resets_at: resetOf(budget),
    },
    headers: [
      names.budgetSpentUsd,
      formatUsd(spentNanos),
      names.budgetHeldUsd,
      formatUsd(heldNanos),
      names.budgetCapUsd,
      formatUsd(capNanos),
      names.budgetResetsAt,
      resetOf(budget),
    ],
  }
}
