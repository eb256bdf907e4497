import { formatUsd } from '../kernel/money.ts'
import { type Discount, FACTOR_ONE, readDiscount } from './amounts.ts'
import type { RatingContext } from './request-profile.ts'

/** The rating context as JSON, in which it is stored with the call. */
export function writeRating(context: RatingContext): string {
  const others = JSON.stringify({ ...context, discount: undefined })
  return `${others.slice(0, -1)},${textOf(context.discount)}`
}

/** Cached: a process has few discounts, and this took a tenth of the time of a plan. */
const discountTexts = new WeakMap<Discount, string>()

function textOf(discount: Discount): string {
  const known = discountTexts.get(discount)
  if (known !== undefined) return known
  const { payable, overrides } = discount
  const fraction = (payable: bigint) => formatUsd(FACTOR_ONE - payable)
  const discounts = overrides.map((each) => [each.pattern, fraction(each.payable)] as const)
  const members = {
    discount: fraction(payable),
    discounts: discounts.length === 0 ? undefined : Object.fromEntries(discounts),
  }
  const text = JSON.stringify(members).slice(1)
  discountTexts.set(discount, text)
  return text
}

interface RatingFile extends Omit<RatingContext, 'discount'> {
  readonly discount: string
  readonly discounts?: Record<string, string>
}

/** Null if the text is not a rating context. */
export function readRating(text: string): RatingContext | null {
  try {
    const { discount, discounts, ...context } = JSON.parse(text) as RatingFile
    return { ...context, discount: readDiscount(discount, discounts) }
  } catch {
    return null
  }
}
