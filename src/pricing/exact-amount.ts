import { type Fraction, floorDivide, type Nanos, roundHalfEven } from '../kernel/money.ts'
import { UNITS, type Unit } from '../kernel/usage.ts'
import { MULTIPLIER_ONE, ONE } from './modifiers.ts'
import { UNIT_PRICES } from './rate-keys.ts'

/**
 * Amounts of one calculation share one denominator, so that adding them is adding numerators and nothing is rounded
 * before the end. 18,000,000 is the least common multiple of what prices are per (a thousand, a million, an hour of
 * milliseconds); the billions are for the modifiers that can apply at once.
 */
const PER_UNITS = 18_000_000n

export const AMOUNT_DENOMINATOR = PER_UNITS * MULTIPLIER_ONE

/** What so many units cost without modifiers, in nanodollars over what prices are per. */
export function plainAmountOf(unit: Unit, quantity: bigint, rateNanos: bigint): bigint {
  return quantity * rateNanos * FACTORS[unit]
}

/** What makes an amount of so many units one over what prices are per. */
const FACTORS = Object.fromEntries(
  UNITS.map((unit) => [unit, PER_UNITS / UNIT_PRICES[unit].units]),
) as Readonly<Record<Unit, bigint>>

/** A plain amount with its multiplier, exactly. */
export function multipliedBy(amount: bigint, multiplier: bigint): Fraction {
  return { numerator: amount * multiplier, denominator: AMOUNT_DENOMINATOR }
}

/**
 * What several amounts come to, by the list and after discounts, exactly. The denominator grows with the first
 * multiplier, and there is a sum of its own for what is to be paid from the first discount on: most calls have
 * neither, and numbers of one machine word take a third of the time.
 */
export class Totals {
  #list = 0n
  /** Null while it is the same. */
  #cost: bigint | null = null
  #multiplied = false

  /** `amount` is a plain one; `payable` billionths of it are to be paid. */
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

  /** To the nearest, each once from its exact sum. */
  rounded(): { readonly listNanos: Nanos; readonly costNanos: Nanos } {
    return this.#divided(nearest)
  }

  /** Up, because a hold must not be below the cost it stands for. */
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
