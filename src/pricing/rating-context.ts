import { formatUsd } from '../kernel/money.ts'
import type { Surface } from '../kernel/vocabulary.ts'
import { type Discount, FACTOR_ONE, readDiscount } from './amounts.ts'
import type { Mode } from './price-file.ts'
import type { RequestProfile } from './request-profile.ts'

/** The inputs of rating other than usage and prices, as stored with the call. */
export interface RatingContext {
  readonly surface: Surface
  readonly modelAsked: string | null
  readonly endpoint: string
  readonly regional: boolean
  readonly batch: boolean
  /** The kinds of models that can serve the endpoint, if the request names no model. */
  readonly modes?: readonly Mode[]
  /** The model that the request's image tool names, which upstream does not repeat. */
  readonly imageToolModel?: string | null
  /** The requested tier, else the upstream project's default. Only where the reply does not state the tier. */
  readonly tierAsked?: string | null
  /** The call has no maximum cost. Rating ignores this: the bill says so. */
  readonly isUnbounded?: true
  readonly discount: Discount
}

export function ratingContextOf(profile: RequestProfile, discount: Discount): RatingContext {
  const { surface, endpoint, regional, batch, model: modelAsked, modes, tools } = profile
  return {
    surface,
    modelAsked,
    endpoint,
    regional,
    batch,
    ...(modelAsked === null ? { modes } : {}),
    ...(tools.imageModel === null ? {} : { imageToolModel: tools.imageModel }),
    ...(profile.statesTier ? {} : { tierAsked: profile.serviceTier }),
    discount,
  }
}

/** The context as JSON, in which it is stored with the call. */
export function writeRating(context: RatingContext): string {
  return JSON.stringify({ ...context, ...writtenDiscount(context.discount) } satisfies RatingFile)
}

/** Cached: a process has few discounts. */
const writtenDiscounts = new WeakMap<Discount, WrittenDiscount>()

function writtenDiscount(discount: Discount): WrittenDiscount {
  const known = writtenDiscounts.get(discount)
  if (known !== undefined) return known
  const fraction = (payable: bigint) => formatUsd(FACTOR_ONE - payable)
  const discounts = discount.overrides.map((each) => [each.pattern, fraction(each.payable)] as const)
  const written = {
    discount: fraction(discount.payable),
    ...(discounts.length === 0 ? {} : { discounts: Object.fromEntries(discounts) }),
  }
  writtenDiscounts.set(discount, written)
  return written
}

interface WrittenDiscount {
  readonly discount: string
  readonly discounts?: Record<string, string>
}

interface RatingFile extends Omit<RatingContext, 'discount'>, WrittenDiscount {}

/** Null if the text is not a rating context. */
export function readRating(text: string): RatingContext | null {
  try {
    const { discount, discounts, ...context } = JSON.parse(text) as RatingFile
    return { ...context, discount: readDiscount(discount, discounts) }
  } catch {
    return null
  }
}
