import { TIERS, type Tier } from '../kernel/usage.ts'
import type { RateTableEntry, TariffEntry } from './price-file.ts'

/** The tariffs of a table with their names, for those who look at all of them. */
export function tariffsOf(table: RateTableEntry): readonly (readonly [tier: Tier, TariffEntry])[] {
  return TIERS.flatMap((tier) => {
    const entry = table[tier]
    return entry === undefined ? [] : [[tier, entry] as const]
  })
}
