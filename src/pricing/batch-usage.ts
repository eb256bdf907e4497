import type { Quantities, Unit, Usage, UsagePart } from '../kernel/usage.ts'
import { addToolCalls } from '../providers/reading.ts'
import { ONE, type RatingContext } from './modifiers.ts'
import type { PriceVersion } from './price-book.ts'
import { resolve, toolsOf } from './priced-parts.ts'

/** The usage of those requests of a batch that one model served. */
export interface ModelUsage {
  readonly model: string | null
  readonly requests: number
  readonly usage: Usage
  /** A name that no other part of the batch has, and that is the same each time the results are read. */
  readonly name: string
}

/** The most sums of a batch. Names of models are upstream's, fine-tuned models included, so their number is not known before. */
const SUMS_MAX = 10_000

interface Sum {
  requests: number
  readonly first: Usage
  suspect: boolean
  readonly parts: Map<string, UsagePart>
}

/**
 * Adds up the usage of the requests of a batch, for each model that served them. Requests are added only where all rates
 * are the same, so that rating the sum is rating each of them, and rounding once: requests stand apart if a threshold for
 * long prompts lies between them, whichever model of the book has it, since the price of this one may be stated later. A
 * geography has a sum of its own where it changes the price.
 */
export class BatchUsage {
  readonly #context: RatingContext
  readonly #version: PriceVersion
  readonly #thresholds: ReadonlySet<number>
  readonly #sums = new Map<string, Sum>()

  constructor(context: RatingContext, version: PriceVersion) {
    this.#context = context
    this.#version = version
    const tables = version.models.flatMap(({ rates, endpoints }) => [rates, ...endpoints.values()])
    this.#thresholds = new Set(tables.flatMap(({ longContextAbove }) => longContextAbove ?? []))
  }

  /** `isKnown`: upstream has stated all of the usage. */
  add(usage: Usage, isKnown: boolean): void {
    const key = JSON.stringify([usage.modelServed, this.#factorOf(usage)])
    let sum = this.#sums.get(key)
    if (sum === undefined) {
      if (this.#sums.size === SUMS_MAX) throw new Error('too many models have served one batch')
      sum = { requests: 0, first: usage, suspect: false, parts: new Map() }
      this.#sums.set(key, sum)
    }
    sum.requests++
    if (usage.suspect || !isKnown) sum.suspect = true
    for (const part of this.#partsOf(usage)) {
      const partKey = `${part.model} ${this.#lengthOf(part)}`
      const before = sum.parts.get(partKey)
      sum.parts.set(partKey, before === undefined ? part : addParts(before, part))
    }
  }

  byModel(): readonly ModelUsage[] {
    return Array.from(this.#sums, ([name, { requests, first, suspect, parts }]) => ({
      name,
      model: first.modelServed,
      requests,
      usage: { ...first, parts: [...parts.values()], stopReason: null, freeRefusal: false, suspect },
    }))
  }

  /** The factor of the geography in which upstream ran the request. A model without a price may be priced by it later. */
  #factorOf({ modelServed, geography }: Usage): string | null {
    const { model } = resolve(modelServed, this.#context, this.#version)
    if (model === null) return geography
    return String(model.factors.geography.get(geography ?? '') ?? ONE)
  }

  #partsOf({ parts, modelServed, freeRefusal }: Usage): readonly UsagePart[] {
    if (freeRefusal) return parts.map((part) => ({ ...part, quantities: toolsOf(part.quantities) }))
    if (this.#context.endpoint !== '/v1/chat/completions') return parts
    const { model } = resolve(modelServed, this.#context, this.#version)
    return model?.searchesEachCall === true ? addToolCalls(parts, { web_searches: 1 }) : parts
  }

  #lengthOf({ promptTokens }: UsagePart): number {
    let length = 0
    for (const above of this.#thresholds) if (promptTokens > above) length++
    return length
  }
}

function addParts(one: UsagePart, other: UsagePart): UsagePart {
  const quantities: { [U in Unit]?: number } = { ...one.quantities }
  for (const unit in other.quantities) {
    const name = unit as keyof Quantities
    quantities[name] = (quantities[name] ?? 0) + (other.quantities[name] ?? 0)
  }
  return { model: one.model, quantities, promptTokens: Math.max(one.promptTokens, other.promptTokens) }
}
