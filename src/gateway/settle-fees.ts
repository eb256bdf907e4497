import type { Quantities, Usage } from '../kernel/usage.ts'
import type { PriceVersion } from '../pricing/price-book.ts'
import { resolve } from '../pricing/priced-parts.ts'
import type { RatingContext } from '../pricing/rating-context.ts'
import type { RequestFees } from '../providers/surface.ts'
import { addToolCalls } from '../providers/usage/reading.ts'

/** The usage of an answered call with the fees that only its request or its model tells of, and without those that are none. */
export function settleFees(
  usage: Usage,
  fees: RequestFees,
  context: RatingContext,
  version: PriceVersion,
): Usage {
  if (fees.codeRunsFree) return { ...usage, parts: usage.parts.map(withoutCode) }
  if (context.endpoint !== '/v1/chat/completions') return usage
  const searches = fees.asksForSearch || resolve(usage.modelServed, context, version).model?.searchesEachCall
  return searches ? { ...usage, parts: addToolCalls(usage.parts, ONE_SEARCH) } : usage
}

const ONE_SEARCH: Quantities = { web_searches: 1 }

function withoutCode(part: Usage['parts'][number]): Usage['parts'][number] {
  const { code_executions: _free, ...quantities } = part.quantities
  return { ...part, quantities }
}
