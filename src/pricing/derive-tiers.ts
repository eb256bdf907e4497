import { parseUsd } from '../kernel/money.ts'
import type { Unit } from '../kernel/usage.ts'
import { TIERS, type Tier } from '../kernel/usage.ts'
import type { Tariff, TierRates } from './price-book.ts'
import type { ModelEntry } from './price-file.ts'

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
  readonly #models: readonly ModelEntry[]
  /** Looked through when first asked, not at every start: few calls need it. */
  #listed: Map<string, Ratio> | null = null

  constructor(models: readonly ModelEntry[]) {
    this.#models = models
  }

  ratioOf(id: string, tier: Tier): Ratio {
    this.#listed ??= listedRatios(this.#models)
    return this.#listed.get(`${familyOf(id)} ${tier}`) ?? USUAL[tier]
  }
}

function listedRatios(models: readonly ModelEntry[]): Map<string, Ratio> {
  const ratios = new Map<string, Ratio>()
  for (const { id, rates } of models) {
    const family = familyOf(id)
    const under = parseUsd(rates.standard.input ?? '') ?? 0n
    if (family === null || under === 0n) continue
    for (const tier of TIERS) {
      const over = parseUsd(rates[tier]?.input ?? '')
      const known = ratios.get(`${family} ${tier}`) ?? [0n, 1n]
      if (over !== null && over * known[1] > known[0] * under) ratios.set(`${family} ${tier}`, [over, under])
    }
  }
  return ratios
}

/** The rates of the tiers that the list does not name for a model. */
export class DerivedTiers {
  readonly #id: string
  readonly #standard: TierRates
  readonly #ratios: TierRatios
  readonly #known = new Map<Tier, TierRates>()

  constructor(id: string, standard: TierRates, ratios: TierRatios) {
    this.#id = id
    this.#standard = standard
    this.#ratios = ratios
  }

  get(tier: Tier): TierRates {
    const known = this.#known.get(tier)
    if (known !== undefined) return known
    const { short, long } = this.#standard
    const ratio = this.#ratios.ratioOf(this.#id, tier)
    const rates = {
      listed: false,
      short: times(short, ratio),
      long: long === null ? null : times(long, ratio),
    }
    this.#known.set(tier, rates)
    return rates
  }
}

/** A fraction of a billionth of a dollar for a million units is rounded up. */
function times(tariff: Tariff, [over, under]: Ratio): Tariff {
  const rates = new Map<Unit, bigint>()
  for (const [unit, nanos] of tariff) rates.set(unit, (nanos * over + under - 1n) / under)
  return rates
}
