import type { Tier, Unit } from '../kernel/usage.ts'
import { maxRate } from './modifiers.ts'
import { type RateTable, ratesOf, type Tariff, type TierRates } from './price-book.ts'
import { UNIT_PRICES, UNITS_OF } from './rate-keys.ts'

/** Which of a model's rates a call is rated with. */
export interface Tariffs {
  readonly tier: Tier
  /** False where the list has no rates for the tier: those of `standard` stand in, or others derived from them. */
  readonly listed: boolean
  readonly long: boolean
  readonly tariff: Tariff
  /** That it was taken from. */
  readonly table: RateTable
}

export function tariffsFor(table: RateTable, tier: Tier, promptTokens: number): Tariffs {
  const own = ratesOf(table, tier)
  const rates: TierRates = own ?? table.standard
  const long = table.longContextAbove !== null && promptTokens > table.longContextAbove && rates.long !== null
  return {
    tier,
    listed: own?.listed ?? false,
    long,
    tariff: long && rates.long !== null ? rates.long : rates.short,
    table,
  }
}

/** OpenAI's. Its models before gpt-5.6 report writes and charge nothing extra for them. */
const CHAT_CACHE_WRITES: readonly Unit[] = ['cache_write_30m_tokens', 'cache_write_12h_tokens']

/**
 * - `listed`: the price list names it.
 * - `no_fee`: writing to the cache costs no more than reading the prompt.
 * - `sibling`: the list names no rate for this unit, so the dearest one of the same side stands in.
 * - `none`: nothing on the list can stand in.
 */
export interface FoundRate {
  readonly nanos: bigint
  readonly how: 'listed' | 'no_fee' | 'sibling' | 'none'
}

const NONE: FoundRate = { nanos: 0n, how: 'none' }

/** Whether writing to a cache has a price of its own at all. */
function writesCost({ standard }: RateTable): boolean {
  return CHAT_CACHE_WRITES.some((unit) => standard.short.has(unit))
}

export function findRate({ tariff, table }: Tariffs, unit: Unit): FoundRate {
  const listed = tariff.get(unit)
  if (listed !== undefined) return { nanos: listed, how: 'listed' }
  const plain = tariff.get('input_tokens')
  if (plain !== undefined && CHAT_CACHE_WRITES.includes(unit) && !writesCost(table))
    return { nanos: plain, how: 'no_fee' }
  const { side } = UNIT_PRICES[unit]
  if (side !== 'input' && side !== 'output') return NONE
  const siblings = UNITS_OF[side].flatMap((other) => tariff.get(other) ?? [])
  if (siblings.length === 0) return NONE
  return { nanos: siblings.reduce(maxRate), how: 'sibling' }
}
