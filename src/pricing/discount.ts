import { parseUsd } from '../kernel/money.ts'
import { ONE } from './modifiers.ts'

/**
 * How much less than list is billed: one fraction for all models, and others for models whose id matches a pattern.
 * The id is that of the price book, so that a discount does not depend on which alias a client or upstream used.
 */
export interface Discount {
  /** What remains to be paid, in billionths of the list cost. */
  readonly payable: bigint
  /** The most specific pattern first. */
  readonly overrides: readonly { readonly pattern: string; readonly payable: bigint }[]
}

export const NO_DISCOUNT: Discount = { payable: ONE, overrides: [] }

type ReadDiscount =
  | { readonly kind: 'discount'; readonly discount: Discount }
  | { readonly kind: 'refused'; readonly problems: readonly string[] }

const PATTERNS_MAX = 1_000

/** From decimals in text: a fraction such as 0.15 has no exact binary form. */
export function readDiscount(all: string, byPattern: Readonly<Record<string, string>> = {}): ReadDiscount {
  const problems: string[] = []
  const payableOf = (where: string, text: string): bigint => {
    const fraction = parseUsd(text)
    if (fraction !== null && fraction >= 0n && fraction <= ONE) return ONE - fraction
    problems.push(`${where} must be a decimal from 0 to 1 with at most 9 places, not "${text}"`)
    return ONE
  }
  const payable = payableOf('the discount', all)
  const patterns = Object.entries(byPattern)
  if (patterns.length > PATTERNS_MAX) problems.push(`there may be at most ${PATTERNS_MAX} patterns`)
  const overrides = patterns.map(([pattern, text]) => {
    if (!/^[\x21-\x7e]{1,200}$/.test(pattern))
      problems.push(`the pattern "${pattern}" must be 1 to 200 printable ASCII characters without blanks`)
    return { pattern, payable: payableOf(`the discount of "${pattern}"`, text) }
  })
  if (problems.length > 0) return { kind: 'refused', problems }
  return { kind: 'discount', discount: { payable, overrides: overrides.sort(bySpecificity) } }
}

export function payableFor(discount: Discount, modelId: string): bigint {
  return discount.overrides.find(({ pattern }) => matches(pattern, modelId))?.payable ?? discount.payable
}

/** A name without a wildcard is one model; otherwise the pattern that spells out more of it. Ties go by the alphabet. */
function bySpecificity(a: { readonly pattern: string }, b: { readonly pattern: string }): number {
  const wild = Number(a.pattern.includes('*')) - Number(b.pattern.includes('*'))
  const literal = b.pattern.replaceAll('*', '').length - a.pattern.replaceAll('*', '').length
  return wild || literal || (a.pattern < b.pattern ? -1 : 1)
}

/** `*` is any text. Pieces are found from left to right, so that no pattern can take more than linear time each. */
function matches(pattern: string, text: string): boolean {
  const pieces = pattern.split('*')
  const first = pieces[0] ?? ''
  const last = pieces.at(-1) ?? ''
  if (pieces.length === 1) return pattern === text
  if (text.length < first.length + last.length) return false
  if (!text.startsWith(first) || !text.endsWith(last)) return false
  let at = first.length
  for (const piece of pieces.slice(1, -1)) {
    const found = text.indexOf(piece, at)
    if (found === -1 || found + piece.length > text.length - last.length) return false
    at = found + piece.length
  }
  return true
}
