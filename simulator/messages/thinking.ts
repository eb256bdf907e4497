import { isIntegerIn, isObject } from '../json.ts'
import { Refusal } from '../refusal.ts'

export type Thinking = { kind: 'off' } | { kind: 'on'; tokens: number; isShown: boolean }

const budgetTokensMin = 1_024
const enabledTokens = 48
const adaptiveTokens = 24

export function readThinking(thinking: unknown, outputTokensMax: number): Thinking {
  if (thinking === undefined || thinking === null) return { kind: 'off' }
  const config = (isObject(thinking) ? thinking : {}) as {
    type?: unknown
    budget_tokens?: unknown
    display?: unknown
  }
  const isShown = config.display !== 'omitted'
  if (config.type === 'disabled' || config.type === 'between_tools') return { kind: 'off' }
  if (config.type === 'adaptive') return { kind: 'on', tokens: adaptiveTokens, isShown }
  if (config.type !== 'enabled') {
    throw new Refusal(
      400,
      "thinking.type: Input should be 'enabled', 'adaptive', 'between_tools' or 'disabled'",
    )
  }
  if (!isIntegerIn(config.budget_tokens, budgetTokensMin, Number.MAX_SAFE_INTEGER)) {
    throw new Refusal(
      400,
      `thinking.enabled.budget_tokens: Input should be greater than or equal to ${budgetTokensMin}`,
    )
  }
  if (config.budget_tokens >= outputTokensMax) {
    throw new Refusal(400, '`max_tokens` must be greater than `thinking.budget_tokens`.')
  }
  return { kind: 'on', tokens: enabledTokens, isShown }
}
