import { type Fraction, NANOS_PER_USD } from '../kernel/money.ts'
import { UNITS, type Unit } from '../kernel/usage.ts'
import { UNIT_PRICES } from './rate-keys.ts'

/**
 * Amounts of one calculation share one denominator, so that adding them is adding numerators and nothing is rounded
 * before the end. 18,000,000 is the least common multiple of what prices are per (a thousand, a million, an hour of
 * milliseconds); the two billions are for the two multipliers that can apply at once.
 */
const PER_UNITS = 18_000_000n

/** Multipliers and discounts are decimals with at most nine places, kept as whole billionths. */
export const ONE = NANOS_PER_USD

export const AMOUNT_DENOMINATOR = PER_UNITS * ONE * ONE

/** What so many units cost, in nanodollars over the common denominator. */
export function amountOf(unit: Unit, quantity: bigint, rateNanos: bigint, multipliers: Multipliers): bigint {
  return quantity * rateNanos * FACTORS[unit] * (multipliers[0] * multipliers[1])
}

/** What makes an amount of so many units one over the common denominator. */
const FACTORS = Object.fromEntries(
  UNITS.map((unit) => [unit, PER_UNITS / UNIT_PRICES[unit].units]),
) as Readonly<Record<Unit, bigint>>

/** Two factors in billionths: for the geography, and for the region of the upstream host. */
export type Multipliers = readonly [geography: bigint, regional: bigint]

export const NO_MULTIPLIERS: Multipliers = [ONE, ONE]

export function asNanos(numerator: bigint): Fraction {
  return { numerator, denominator: AMOUNT_DENOMINATOR }
}

/** What is left of an amount when `keep` billionths of it are to be paid. */
export function asDiscountedNanos(numeratorTimesKeep: bigint): Fraction {
  return { numerator: numeratorTimesKeep, denominator: AMOUNT_DENOMINATOR * ONE }
}
