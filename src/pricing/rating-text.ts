import { formatUsd } from '../kernel/money.ts'
import { type Discount, readDiscount } from './discount.ts'
import { ONE } from './modifiers.ts'
import type { RatingContext } from './rating-context.ts'

/** How a call was rated, apart from its usage and its prices, as it is kept with the call. */
export interface KeptRating {
  readonly context: RatingContext
  readonly discount: Discount
}

export function writeRating(context: RatingContext, discount: Discount): string {
  // One object behind the other: calls differ in the first, and hardly ever in the second.
  return `${JSON.stringify(context).slice(0, -1)},${discountText(discount)}`
}

const discountTexts = new WeakMap<Discount, string>()

/** The members of the discount and the brace behind them. */
function discountText(discount: Discount): string {
  const known = discountTexts.get(discount)
  if (known !== undefined) return known
  const { keep, overrides } = discount
  const fraction = (kept: bigint) => formatUsd(ONE - kept)
  const members = {
    discount: fraction(keep),
    ...(overrides.length === 0
      ? {}
      : { discounts: Object.fromEntries(overrides.map((each) => [each.pattern, fraction(each.keep)])) }),
  }
  const text = JSON.stringify(members).slice(1)
  discountTexts.set(discount, text)
  return text
}

/** The reverse. Null if the text is not one of ours. */
export function readRating(text: string): KeptRating | null {
  try {
    const {
      discount: all,
      discounts,
      ...context
    } = JSON.parse(text) as RatingContext & {
      discount: string
      discounts?: Record<string, string>
    }
    const read = readDiscount(all, discounts)
    return read.kind === 'discount' ? { context, discount: read.discount } : null
  } catch {
    return null
  }
}
