import { addQuantities, type Usage, type UsagePart } from '../kernel/usage.ts'
import { FACTOR_ONE } from './amounts.ts'
import type { PriceVersion } from './price-book.ts'
import { resolveModel, toolsOf } from './priced-parts.ts'
import type { RatingContext } from './rating-context.ts'

/** Maximum sums per batch. Model names come from upstream, including fine-tuned ones, so their number is unbounded. */
const SUMS_MAX = 10_000

interface Sum {
  requests: number
  readonly first: Usage
  suspect: boolean
  readonly parts: Map<string, UsagePart>
}

/**
 * Sums the usage of a batch's requests per served model. Requests are added only if all their rates are equal, so that
 * rating the sum equals rating each of them. Requests on different sides of any model's long-prompt threshold have
 * separate sums, because this model's price may be added later. So do geographies that change the price.
 */
export function createBatchUsage(context: RatingContext, version: PriceVersion) {
  const tables = version.models.flatMap(({ rates, endpoints }) => [rates, ...endpoints.values()])
  const thresholds = new Set(tables.flatMap(({ longContextAbove }) => longContextAbove ?? []))
  const sums = new Map<string, Sum>()

  /** The factor of the request's geography, also for a model without a price, which may get one later. */
  function factorOf({ modelServed, geography }: Usage): string | null {
    const { model } = resolveModel(modelServed, context, version)
    if (model === null) return geography
    return String(model.factors.geography.get(geography ?? '') ?? FACTOR_ONE)
  }

  function partsOf({ parts, freeRefusal }: Usage): readonly UsagePart[] {
    if (!freeRefusal) return parts
    return parts.map((part) => ({ ...part, quantities: toolsOf(part.quantities) }))
  }

  function thresholdsPassed({ promptTokens }: UsagePart): number {
    let length = 0
    for (const above of thresholds) if (promptTokens > above) length++
    return length
  }

  return {
    add(usage: Usage): void {
      const key = JSON.stringify([usage.modelServed, factorOf(usage)])
      let sum = sums.get(key)
      if (sum === undefined) {
        if (sums.size === SUMS_MAX) throw new Error('too many models have served one batch')
        sum = { requests: 0, first: usage, suspect: false, parts: new Map() }
        sums.set(key, sum)
      }
      sum.requests++
      if (usage.suspect) sum.suspect = true
      for (const part of partsOf(usage)) {
        const partKey = `${part.model} ${thresholdsPassed(part)}`
        const before = sum.parts.get(partKey)
        sum.parts.set(partKey, before === undefined ? part : addParts(before, part))
      }
    },
    byModel() {
      return Array.from(sums, ([name, { requests, first, suspect, parts }]) => ({
        /** Unique within the batch, and the same each time the results are read. */
        name,
        model: first.modelServed,
        requests,
        usage: { ...first, parts: [...parts.values()], stopReason: null, freeRefusal: false, suspect },
      }))
    },
  }
}

function addParts(left: UsagePart, right: UsagePart): UsagePart {
  return {
    model: left.model,
    quantities: addQuantities(left.quantities, right.quantities),
    promptTokens: Math.max(left.promptTokens, right.promptTokens),
  }
}
