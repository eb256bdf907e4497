import { type Refusal, refuse } from '../kernel/errors.ts'
import type { HeaderNames } from '../kernel/header-names.ts'
import { formatUsd } from '../kernel/money.ts'
import { rawNumber } from '../kernel/raw-number.ts'
import { refuseKey } from '../keys/identity.ts'
import type { Budget, CallRefusal, HeldBy } from '../ledger/call.ts'

/** What the client is told of a call that the store did not admit. It names the limit and what can be done. */
export function explainRefusal(
  refusal: CallRefusal,
  modelAsked: string | null,
  unmeteredMember: string | null,
  names: HeaderNames,
): Refusal {
  switch (refusal.reason) {
    case 'unknown_key':
    case 'revoked_key':
    case 'expired_key':
      return refuseKey(refusal.reason)
    case 'ambiguous_body':
      return refuse('bad_request', refusal.detail)
    case 'model_not_allowed': {
      const message = `This key may not use the model ${JSON.stringify(refusal.model)}. Use one of its allowed_models.`
      return refuse('model_not_allowed', message, { param: 'model' })
    }
    case 'models_unknown':
      return refuse(
        'model_not_allowed',
        `${refusal.detail} This key has a list of allowed models, so it may only call what names its models.`,
      )
    case 'model_not_priced': {
      const model =
        modelAsked === null ? 'The model of this request' : `The model ${JSON.stringify(modelAsked)}`
      return refuse('model_not_priced', `${model} has no price in this gateway yet. Ask its operator.`, {
        param: 'model',
      })
    }
    case 'endpoint_not_metered':
      if (unmeteredMember !== null) {
        const message = `What "${unmeteredMember}" of this request leads to cannot be metered by this gateway yet. Send it without, or ask its operator.`
        return refuse('endpoint_not_metered', message, { param: unmeteredMember })
      }
      return refuse(
        'endpoint_not_metered',
        'What this endpoint costs cannot be metered by this gateway yet. Ask its operator.',
      )
    case 'budget_exceeded':
      return refuse(
        'budget_exceeded',
        `The monthly budget of this key is spent: ${shown(refusal.budget)}. It is whole again at ${resetOf(refusal.budget)}.`,
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
    `Calls in flight hold what is left of this key's monthly budget: ${shown(by.budget)}. Try again when they have ended.`,
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

function shown({ spentNanos, heldNanos, capNanos }: Budget): string {
  const held = heldNanos === 0n ? '' : ` and ${formatUsd(heldNanos)} held`
  return `${formatUsd(spentNanos)} spent${held} of ${formatUsd(capNanos)} USD`
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
