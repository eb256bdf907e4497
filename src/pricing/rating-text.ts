import { formatUsd } from '../kernel/money.ts'
import { type Discount, readDiscount } from './discount.ts'
import { ONE } from './modifiers.ts'
import type { RatingContext } from './rating-context.ts'

/** How a call was rated, apart from its usage and its prices, as it is kept with the call. */
export interface KeptRating {
  readonly context: RatingContext
  readonly discount: Discount
}

/** The last text for each model, of so many. Calls of one kind are rated alike, and writing how took 2 µs of each. */
const written = new Map<string | null, KeptRating & { readonly text: string }>()
const WRITTEN_MAX = 256

export function writeRating(context: RatingContext, discount: Discount): string {
  const last = written.get(context.modelAsked)
  if (last !== undefined && last.discount === discount && isSame(last.context, context)) return last.text
  // One object behind the other: calls differ in the first, and hardly ever in the second.
  const text = `${JSON.stringify(context).slice(0, -1)},${discountText(discount)}`
  if (written.size >= WRITTEN_MAX) written.clear()
  written.set(context.modelAsked, { context, discount, text })
  return text
}

function isSame(a: RatingContext, b: RatingContext): boolean {
  return (
    a.surface === b.surface &&
    a.modelAsked === b.modelAsked &&
    a.endpoint === b.endpoint &&
    a.regional === b.regional &&
    a.batch === b.batch &&
    a.imageToolModel === b.imageToolModel &&
    a.tierAsked === b.tierAsked &&
    a.video === b.video
  )
}

const discountTexts = new WeakMap<Discount, string>()

/** The members of the discount and the brace behind them. */
function discountText(discount: Discount): string {
  const known = discountTexts.get(discount)
  if (known !== undefined) return known
  const { payable: keep, overrides } = discount
  const fraction = (kept: bigint) => formatUsd(ONE - kept)
  const members = {
    discount: fraction(keep),
    ...(overrides.length === 0
      ? {}
      : { discounts: Object.fromEntries(overrides.map((each) => [each.pattern, fraction(each.payable)])) }),
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
