import { type Fraction, floorDivide, type Nanos, parseUsd, roundHalfEven } from '../kernel/money.ts'
import { UNITS, type Unit } from '../kernel/usage.ts'
import { MULTIPLIER_ONE, ONE } from './modifiers.ts'
import { UNIT_PRICES } from './rate-keys.ts'

/**
 * Amounts of one calculation share a denominator, so adding them adds numerators, and nothing is rounded before the
 * end. 18,000,000 is the least common multiple of the price units (a thousand, a million, an hour in milliseconds); the
 * billions are for the modifiers that can apply together.
 */
const PER_UNITS = 18_000_000n

export const AMOUNT_DENOMINATOR = PER_UNITS * MULTIPLIER_ONE

/** The cost of a quantity without modifiers: nanodollars over PER_UNITS. */
export function plainAmountOf(unit: Unit, quantity: bigint, rateNanos: bigint): bigint {
  return quantity * rateNanos * FACTORS[unit]
}

/** Factors that convert each unit's amounts to the denominator PER_UNITS. */
const FACTORS = Object.fromEntries(
  UNITS.map((unit) => [unit, PER_UNITS / UNIT_PRICES[unit].units]),
) as Readonly<Record<Unit, bigint>>

export function multipliedBy(amount: bigint, multiplier: bigint): Fraction {
  return { numerator: amount * multiplier, denominator: AMOUNT_DENOMINATOR }
}

/**
 * Exact sums of amounts, at list price and after discounts. The denominator grows with the first multiplier, and the
 * cost gets a separate sum with the first discount: most calls have neither, and numbers of one machine word take a
 * third of the time.
 */
export class Totals {
  #list = 0n
  /** Null while the cost equals the list cost. */
  #cost: bigint | null = null
  #multiplied = false

  /** `amount` is a plain amount, of which `payable` billionths are charged. */
  add(amount: bigint, multiplier: bigint, payable: bigint): void {
    if (multiplier !== MULTIPLIER_ONE && !this.#multiplied) {
      this.#multiplied = true
      this.#list *= MULTIPLIER_ONE
      if (this.#cost !== null) this.#cost *= MULTIPLIER_ONE
    }
    const listed = this.#multiplied ? amount * multiplier : amount
    if (payable !== ONE) this.#cost ??= this.#list * ONE
    if (this.#cost !== null) this.#cost += listed * payable
    this.#list += listed
  }

  /** The totals rounded half to even, each once from its exact sum. */
  rounded(): { readonly listNanos: Nanos; readonly costNanos: Nanos } {
    return this.#divided(nearest)
  }

  /** The totals rounded up, because a hold must not be below the cost. */
  raised(): { readonly listNanos: Nanos; readonly costNanos: Nanos } {
    return this.#divided(ceiling)
  }

  #divided(divide: (numerator: bigint, denominator: bigint) => bigint) {
    const denominator = this.#multiplied ? AMOUNT_DENOMINATOR : PER_UNITS
    const listNanos = divide(this.#list, denominator)
    return { listNanos, costNanos: this.#cost === null ? listNanos : divide(this.#cost, denominator * ONE) }
  }
}

function nearest(numerator: bigint, denominator: bigint): bigint {
  return roundHalfEven({ numerator, denominator })
}

function ceiling(numerator: bigint, denominator: bigint): bigint {
  return -floorDivide(-numerator, denominator)
}

/**
 * A discount: one fraction for all models, and others for models whose id matches a pattern. The id is the price
 * book's, so the discount does not depend on the alias that a client or upstream used.
 */
export interface Discount {
  /** The fraction that is charged, in billionths of the list cost. */
  readonly payable: bigint
  /** The most specific pattern first. */
  readonly overrides: readonly { readonly pattern: string; readonly payable: bigint }[]
}

export const NO_DISCOUNT: Discount = { payable: ONE, overrides: [] }

/** One fraction for all models. */
export function flatDiscount(billionths: number): Discount {
  return { payable: ONE - BigInt(billionths), overrides: [] }
}

type ReadDiscount =
  | { readonly kind: 'discount'; readonly discount: Discount }
  | { readonly kind: 'refused'; readonly problems: readonly string[] }

const PATTERNS_MAX = 1_000

/** Reads a discount from decimal text, because 0.15 has no exact binary form. */
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
      problems.push(`the pattern "${pattern}" must be 1 to 200 printable ASCII characters without spaces`)
    return { pattern, payable: payableOf(`the discount of "${pattern}"`, text) }
  })
  if (problems.length > 0) return { kind: 'refused', problems }
  return { kind: 'discount', discount: { payable, overrides: overrides.sort(bySpecificity) } }
}

export function payableFor(discount: Discount, modelId: string): bigint {
  return discount.overrides.find(({ pattern }) => matches(pattern, modelId))?.payable ?? discount.payable
}

/** Names without a wildcard first, then longer patterns. Ties are alphabetical. */
function bySpecificity(a: { readonly pattern: string }, b: { readonly pattern: string }): number {
  const wild = Number(a.pattern.includes('*')) - Number(b.pattern.includes('*'))
  const literal = b.pattern.replaceAll('*', '').length - a.pattern.replaceAll('*', '').length
  return wild || literal || (a.pattern < b.pattern ? -1 : 1)
}

/** `*` matches any text. Pieces are matched from left to right without backtracking, so the time is linear per piece. */
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
