import type { Quantities, Unit } from '../../kernel/usage.ts'

/** No call comes near a trillion of anything. Sums of a few thousand such numbers are still exact. */
const COUNT_MAX = 1e12

/**
 * Reads the numbers of a reply and remembers whether all of them can be true.
 *
 * The rule for those that cannot: a count is a whole number from 0 to a trillion. Anything else (negative,
 * fractional, larger, a string, an object) is left out as if it had not been sent, and makes the call suspect.
 * A number that is left out never makes a call cheaper by itself: where it was a total, that side of the call is
 * counted by us; where it was a part of a total (cached, audio), the total is charged as if there was no such part.
 */
export class Counts {
  #suspect = false

  get suspect(): boolean {
    return this.#suspect
  }

  doubt(): void {
    this.#suspect = true
  }

  /** Null when upstream did not say, or said what cannot be. */
  read(value: unknown): number | null {
    if (value === null || value === undefined) return null
    // The addition makes a 0 of -0.
    if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= COUNT_MAX)
      return value + 0
    this.#suspect = true
    return null
  }

  /** The same for an amount of time in seconds, which may have a fraction, in milliseconds. */
  readSeconds(value: unknown): number | null {
    if (value === null || value === undefined) return null
    if (typeof value === 'number' && value >= 0 && value <= COUNT_MAX / 1000) return Math.round(value * 1000)
    this.#suspect = true
    return null
  }

  /**
   * The next value of a count that can only rise. One that falls cannot be true, at either end; the larger one is
   * taken, since what was reported once was consumed.
   */
  readRising(value: unknown, before: number | null): number | null {
    const count = this.read(value)
    if (count === null) return before
    if (before !== null && count < before) {
      this.#suspect = true
      return before
    }
    return count
  }
}

/** Quantities without those that are 0. */
export function quantitiesOf(counts: { readonly [U in Unit]?: number | null }): Quantities {
  const quantities: { [U in Unit]?: number } = {}
  for (const unit in counts) {
    const count = counts[unit as Unit] ?? 0
    if (count > 0) quantities[unit as Unit] = count
  }
  return quantities
}
