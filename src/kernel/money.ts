/** Money is a bigint of whole nanodollars (1e-9 USD), everywhere. No floating-point number is involved. */
export type Nanos = bigint

export const NANOS_PER_USD = 1_000_000_000n

export type Bound =
  | {
      readonly kind: 'bound'
      readonly listNanos: Nanos
      readonly costNanos: Nanos
      /** For a batch, the cost of its most expensive line. */
      readonly largestNanos?: Nanos
    }
  /** No known limit: the hold is the rest of the budget. */
  | {
      readonly kind: 'unbounded'
      readonly reason: string
      /** For a batch, the cost of the other lines. */
      readonly othersNanos?: Nanos
    }
  | { readonly kind: 'unpriced'; readonly model: string }

export const NO_COST: Bound = { kind: 'bound', listNanos: 0n, costNanos: 0n }

/** The largest hold. The sum of ten thousand such holds still fits a 64-bit column. */
export const HOLD_NANOS_MAX = 100_000n * NANOS_PER_USD

export function limitHold(nanos: Nanos): Nanos {
  return nanos < HOLD_NANOS_MAX ? nanos : HOLD_NANOS_MAX
}

/** The sum of two bounds of one call. It is unpriced if one of them is, because an unpriced call may be refused. */
export function addBounds(one: Bound, other: Bound): Bound {
  if (one.kind === 'bound' && other.kind === 'bound') {
    const listNanos = one.listNanos + other.listNanos
    return { kind: 'bound', listNanos, costNanos: one.costNanos + other.costNanos }
  }
  if (one.kind === 'unpriced' || other.kind === 'bound') return one
  return one.kind === 'bound' || other.kind === 'unpriced' ? other : one
}

/** Adds a line to the bound of a batch, and remembers the cost of the most expensive line. */
export function addBatchLine(lines: Bound, line: Bound): Bound {
  const sum = addBounds(lines, line)
  if (sum.kind === 'bound' && lines.kind === 'bound' && line.kind === 'bound') {
    const { largestNanos = 0n } = lines
    return { ...sum, largestNanos: largestNanos > line.costNanos ? largestNanos : line.costNanos }
  }
  if (sum.kind !== 'unbounded') return sum
  if (lines.kind === 'bound') return { ...sum, othersNanos: lines.costNanos }
  const before = (lines.kind === 'unbounded' ? lines.othersNanos : null) ?? 0n
  return { ...sum, othersNanos: before + (line.kind === 'bound' ? line.costNanos : UNFITTING_NANOS) }
}

/** The cost of a batch with two unbounded lines: more than any cap. */
const UNFITTING_NANOS = 1_000_000_000n * NANOS_PER_USD

const PLACES = 9
const ZERO = 0x30

/** Decimal text to nanodollars, or null if it is not a plain decimal with at most nine places. */
export function parseUsd(text: string): Nanos | null {
  const match = /^(-?)(\d{1,12})(?:\.(\d{1,9}))?$/.exec(text)
  if (match === null) return null
  const [, sign, whole = '', fraction = ''] = match
  const nanos = BigInt(whole) * NANOS_PER_USD + BigInt(fraction.padEnd(9, '0'))
  return sign === '-' ? -nanos : nanos
}

/** Plain decimal text: no exponent, at most nine places, no trailing zeros, `-` if negative. */
export function formatUsd(nanos: Nanos, places = PLACES): string {
  const size = nanos < 0n ? -nanos : nanos
  const digits = size.toString().padStart(places + 1, '0')
  const pointAt = digits.length - places
  let end = digits.length
  while (end > pointAt && digits.charCodeAt(end - 1) === ZERO) end--
  const whole = (nanos < 0n ? '-' : '') + digits.slice(0, pointAt)
  return end === pointAt ? whole : `${whole}.${digits.slice(pointAt, end)}`
}

export interface Fraction {
  readonly numerator: bigint
  readonly denominator: bigint
}

/** Rounds to the nearest integer, and halves to the even neighbour, so that rounding favours neither side. */
export function roundHalfEven({ numerator, denominator }: Fraction): bigint {
  const floor = floorDivide(numerator, denominator)
  const twiceRest = (numerator - floor * denominator) * 2n
  if (twiceRest > denominator) return floor + 1n
  if (twiceRest < denominator) return floor
  return floor % 2n === 0n ? floor : floor + 1n
}

export function floorDivide(numerator: bigint, denominator: bigint): bigint {
  const quotient = numerator / denominator
  return numerator % denominator !== 0n && numerator < 0n !== denominator < 0n ? quotient - 1n : quotient
}

/** A number as text, which JSON.stringify prints unchanged. */
export interface RawNumber {
  readonly rawJSON: string
}

/** TypeScript's library does not know JSON.rawJSON yet. `rawJSON` refuses a text that is not a JSON scalar. */
export function rawNumber(text: string): RawNumber {
  return (JSON as unknown as { rawJSON(text: string): RawNumber }).rawJSON(text)
}

type Reviver = (name: string, value: unknown, context: { readonly source?: string }) => unknown

/** JSON.parse with a reviver that gets the digits of numbers, because a double cannot hold every nanodollar. */
export function parseWithDigits(
  text: string,
  revive: (name: string, value: unknown, digits: string) => unknown,
): unknown {
  const reviver: Reviver = (name, value, { source = '' }) => revive(name, value, source)
  // TypeScript's library does not know the third argument yet.
  return JSON.parse(text, reviver as (name: string, value: unknown) => unknown)
}

/** An integer as text: sums can exceed the exact range of doubles. */
export function rawInteger(value: bigint): RawNumber {
  return rawNumber(String(value))
}

/** An integer with thousands separators. The first `toLocaleString` would add 20 to 40 ms to the startup. */
export function withCommas(count: number | bigint): string {
  return String(count).replace(/\B(?=(?:\d{3})+$)/g, ',')
}
