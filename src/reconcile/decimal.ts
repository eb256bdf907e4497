import { type Nanos, roundHalfEven } from '../kernel/money.ts'

/** An exact decimal: `units` × 10^-`places`. Providers state fractions of a cent, and sums must not lose them. */
export interface Decimal {
  readonly units: bigint
  readonly places: number
}

export const ZERO: Decimal = { units: 0n, places: 0 }

const PLACES_MAX = 60

/** Reads a JSON number, also one with an exponent. Null if the text is not a number, such as `NaN`. */
export function parseDecimal(text: string): Decimal | null {
  const match = /^(-?)(\d{1,40})(?:\.(\d{1,60}))?(?:[eE]([+-]?\d{1,2}))?$/.exec(text)
  if (match === null) return null
  const [, sign, whole = '', fraction = '', exponent = '0'] = match
  const units = BigInt(`${sign}${whole}${fraction}`)
  const places = fraction.length - Number(exponent)
  if (places > PLACES_MAX) return null
  return places < 0 ? { units: units * 10n ** BigInt(-places), places: 0 } : { units, places }
}

export function addDecimals(one: Decimal, other: Decimal): Decimal {
  const places = Math.max(one.places, other.places)
  const scaled = ({ units, places: own }: Decimal) => units * 10n ** BigInt(places - own)
  return { units: scaled(one) + scaled(other), places }
}

/** Rounds to nanodollars, once. `placesOfDollar`: 0 if the amount is in dollars, 2 if it is in cents. */
export function toNanos({ units, places }: Decimal, placesOfDollar: 0 | 2): Nanos {
  const denominator = 10n ** BigInt(places + placesOfDollar)
  return roundHalfEven({ numerator: units * 1_000_000_000n, denominator })
}
