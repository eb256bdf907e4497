import { parseUsd } from '../kernel/money.ts'
import type { Unit } from '../kernel/usage.ts'
import type { Tariff, TierRates } from './price-book.ts'
import type { ModelEntry } from './price-file.ts'
import { TIERS, type Tier } from './rate-keys.ts'

/** What a tier costs of the standard rate, as a fraction. */
type Ratio = readonly [over: bigint, under: bigint]

/** What most families list. */
const USUAL: Readonly<Record<Tier, Ratio>> = {
  standard: [1n, 1n],
  batch: [1n, 2n],
  flex: [1n, 2n],
  priority: [2n, 1n],
  fast: [2n, 1n],
  ultrafast: [6n, 1n],
}

/** `gpt-5.1` of `gpt-5.1-codex-max`, `o3` of `o3-mini`, `claude-opus` of `claude-opus-4-7`. */
const FAMILY = /^(?:ft:)?(gpt-\d+(?:\.\d+)?o?|o\d+|claude-[a-z]+)(?=-|$)/

function familyOf(id: string): string | null {
  return FAMILY.exec(id)?.[1] ?? null
}

/** What tiers cost in each family of a book: the dearest ratio that a model of the family lists. */
export class TierRatios {
  readonly #listed = new Map<string, Ratio>()

  constructor(models: readonly ModelEntry[]) {
    for (const { id, rates } of models) {
      const family = familyOf(id)
      const under = parseUsd(rates.standard.input ?? '') ?? 0n
      if (family === null || under === 0n) continue
      for (const tier of TIERS) {
        const over = parseUsd(rates[tier]?.input ?? '')
        if (over !== null) this.#raise(`${family} ${tier}`, [over, under])
      }
    }
  }

  /** The rates of a tier that the list does not name for a model. */
  derive(id: string, tier: Tier, { short, long }: TierRates): TierRates {
    const ratio = this.#listed.get(`${familyOf(id)} ${tier}`) ?? USUAL[tier]
    return { listed: false, short: times(short, ratio), long: long === null ? null : times(long, ratio) }
  }

  #raise(name: string, ratio: Ratio): void {
    const known = this.#listed.get(name)
    if (known === undefined || ratio[0] * known[1] > known[0] * ratio[1]) this.#listed.set(name, ratio)
  }
}

/** A fraction of a billionth of a dollar for a million units is rounded up. */
function times(tariff: Tariff, [over, under]: Ratio): Tariff {
  const rates = new Map<Unit, bigint>()
  for (const [unit, nanos] of tariff) rates.set(unit, (nanos * over + under - 1n) / under)
  return rates
}
