import { matchesPattern } from '../kernel/model-names.ts'
import {
  type Fraction,
  floorDivide,
  NANOS_PER_USD,
  type Nanos,
  parseUsd,
  roundHalfEven,
} from '../kernel/money.ts'
import { UNIT_PRICES, UNITS, UNITS_OF, type Unit } from '../kernel/usage.ts'

/** Factors and discounts are decimals with at most nine places, stored as whole billionths. */
export const FACTOR_ONE = NANOS_PER_USD

export const MULTIPLIER_ONE = FACTOR_ONE * FACTOR_ONE

/** A common denominator, so that nothing is rounded: a multiple of a thousand, a million and an hour in ms. */
const PER_UNITS = 18_000_000n

/** The denominator of amounts that multipliers have been applied to. */
export const AMOUNT_DENOMINATOR = PER_UNITS * MULTIPLIER_ONE

/** The cost of a quantity without modifiers: nanodollars over PER_UNITS. */
export function plainAmountOf(unit: Unit, quantity: bigint, rateNanos: bigint): bigint {
  return quantity * rateNanos * FACTORS[unit]
}

/** Factors that convert each unit's amounts to the denominator PER_UNITS. */
const FACTORS = Object.fromEntries(
  UNITS.map((unit) => [unit, PER_UNITS / UNIT_PRICES[unit].units]),
) as Readonly<Record<Unit, bigint>>

/** Avoids scaling for calls without multiplier and discount: dividing long numbers took 6 µs of a call. */
export class Totals {
  #list = 0n
  /** Null while the cost equals the list cost. */
  #cost: bigint | null = null
  #scale = 1n

  /** Adds a plain amount, of which `payable` billionths are charged. */
  add(amount: bigint, multiplier: bigint, payable: bigint): void {
    if (multiplier !== MULTIPLIER_ONE && this.#scale === 1n) {
      this.#scale = MULTIPLIER_ONE
      this.#list *= MULTIPLIER_ONE
      if (this.#cost !== null) this.#cost *= MULTIPLIER_ONE
    }
    const listed = this.#scale === 1n ? amount : amount * multiplier
    if (payable !== FACTOR_ONE) this.#cost ??= this.#list * FACTOR_ONE
    if (this.#cost !== null) this.#cost += listed * payable
    this.#list += listed
  }

  /** The totals rounded half to even, each once from its exact sum. */
  rounded(): { readonly listNanos: Nanos; readonly costNanos: Nanos } {
    return this.#divided(roundHalfEven)
  }

  /** The totals, rounded up. For holds, which must not be below the cost. */
  roundedUp(): { readonly listNanos: Nanos; readonly costNanos: Nanos } {
    return this.#divided(({ numerator, denominator }) => -floorDivide(-numerator, denominator))
  }

  #divided(divide: (fraction: Fraction) => bigint) {
    const denominator = PER_UNITS * this.#scale
    const listNanos = divide({ numerator: this.#list, denominator })
    if (this.#cost === null) return { listNanos, costNanos: listNanos }
    return { listNanos, costNanos: divide({ numerator: this.#cost, denominator: denominator * FACTOR_ONE }) }
  }
}

/** A fraction for all models, and fractions for patterns of ids in the price book. Aliases do not match. */
export interface Discount {
  /** The fraction that is charged, in billionths of the list cost. */
  readonly payable: bigint
  /** Discounts by pattern, the most specific first. */
  readonly overrides: readonly { readonly pattern: string; readonly payable: bigint }[]
}

export const NO_DISCOUNT: Discount = { payable: FACTOR_ONE, overrides: [] }

export function flatDiscount(billionths: number): Discount {
  return { payable: FACTOR_ONE - BigInt(billionths), overrides: [] }
}

/** Reads a discount from decimal text, because 0.15 has no exact binary form. */
export function readDiscount(all: string, byPattern: Readonly<Record<string, string>> = {}): Discount {
  const overrides = Object.entries(byPattern).map(([pattern, text]) => ({
    pattern,
    payable: payableOf(text),
  }))
  return { payable: payableOf(all), overrides: overrides.sort(bySpecificity) }
}

function payableOf(discount: string): bigint {
  const fraction = parseUsd(discount)
  if (fraction === null || fraction < 0n || fraction > FACTOR_ONE) throw new Error('invalid discount')
  return FACTOR_ONE - fraction
}

export function payableFor(discount: Discount, modelId: string): bigint {
  return (
    discount.overrides.find(({ pattern }) => matchesPattern(pattern, modelId))?.payable ?? discount.payable
  )
}

/** Sorts exact names first, then longer patterns; equal ones alphabetically. */
function bySpecificity(a: { readonly pattern: string }, b: { readonly pattern: string }): number {
  const wild = Number(a.pattern.endsWith('*')) - Number(b.pattern.endsWith('*'))
  return wild || b.pattern.length - a.pattern.length || (a.pattern < b.pattern ? -1 : 1)
}

const TOOLS: ReadonlySet<string> = new Set(UNITS_OF.tool)

export function isTool(unit: string): boolean {
  return TOOLS.has(unit)
}
