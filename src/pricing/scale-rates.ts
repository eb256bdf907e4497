import { formatUsd, type Nanos, parseUsd } from '../kernel/money.ts'
import { UNIT_PRICES } from '../kernel/usage.ts'

const SIDES: ReadonlyMap<unknown, string> = new Map(
  Object.values(UNIT_PRICES).map(({ key, side }) => [key, side]),
)

/** A rate in the proportion of two others, rounded up to nine places. */
export function scaleRate(rate: Nanos, from: Nanos, to: Nanos): string {
  return formatUsd((rate * to + from - 1n) / from)
}

/**
 * The rates of another model for new prices of its standard input and output: in all tiers and for long prompts, each rate
 * of a side changes in proportion. A side without a new price stays as it is.
 */
export function scaleRates<T extends object>(
  rates: T,
  standard: Readonly<Record<string, unknown>>,
  given: Readonly<Record<string, string>>,
): T {
  const scaled = Object.entries(rates).map(([key, rate]: [string, unknown]) => {
    if (typeof rate === 'object' && rate !== null) return [key, scaleRates(rate, standard, given)]
    const side = SIDES.get(key) ?? ''
    const [from, to, nanos] = [standard[side], given[side], rate].map((text) => parseUsd(String(text)))
    return [key, from && to != null && nanos != null ? scaleRate(nanos, from, to) : rate]
  })
  return Object.fromEntries(scaled) as T
}
