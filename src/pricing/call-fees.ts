import type { Quantities, Unit, Usage, UsagePart } from '../kernel/usage.ts'
import type { ModelPrice, PriceVersion } from './price-book.ts'
import { resolveModel } from './priced-parts.ts'
import type { RatingContext } from './rating-context.ts'
import type { RequestProfile } from './request-profile.ts'

type FeeRules = Pick<RequestProfile, 'searchFee' | 'searchSize' | 'codeRunsFree'>

/** Whether the answer costs a web search that no reply states. */
export function isSearchPaid({ searchFee }: Pick<FeeRules, 'searchFee'>, model: ModelPrice | null): boolean {
  return searchFee === 'asked' || (searchFee === 'by_model' && model?.searchesEachCall === true)
}

/** Adds the fees that no reply states, and removes fees for free work. The same for a call and for a line of a batch. */
export function withCallFees(
  usage: Usage,
  rules: FeeRules,
  context: RatingContext,
  version: PriceVersion,
): Usage {
  if (rules.codeRunsFree) return { ...usage, parts: usage.parts.map(withoutCode) }
  if (rules.searchFee === 'never') return usage
  const { model } = resolveModel(usage.modelServed, context, version)
  if (!isSearchPaid(rules, model)) return usage
  const sized = SEARCHES_BY_SIZE.get(rules.searchSize ?? 'medium')
  const unit = sized !== undefined && model?.tools.has(sized) === true ? sized : 'web_searches'
  return { ...usage, parts: withToolCalls(usage.parts, { [unit]: 1 }) }
}

const SEARCHES_BY_SIZE: ReadonlyMap<string, Unit> = new Map([
  ['low', 'web_searches_low'],
  ['medium', 'web_searches_medium'],
  ['high', 'web_searches_high'],
])

/** Sets tool calls on the part of the response's own model. */
export function withToolCalls(parts: readonly UsagePart[], calls: Quantities): readonly UsagePart[] {
  if (Object.keys(calls).length === 0) return parts
  const at = parts.findLastIndex((part) => part.model === null)
  if (at < 0) return [...parts, { model: null, quantities: calls, promptTokens: 0 }]
  return parts.map((part, i) => (i === at ? { ...part, quantities: { ...part.quantities, ...calls } } : part))
}

function withoutCode(part: UsagePart): UsagePart {
  const { code_executions: _free, ...quantities } = part.quantities
  return { ...part, quantities }
}
