import { parseUsd } from '../kernel/money.ts'
import { TEXT_MODES } from '../kernel/usage.ts'
import { suggestModel } from './price-book.ts'
import type { ModelEntry } from './price-file.ts'
import { scaleRate } from './scale-rates.ts'

/**
 * What the price of a new model leaves out. Without limits, each call would reserve the whole budget; without cache rates,
 * cached tokens would cost ten times too much. Both are taken from the listed model with the closest name: limits as they are,
 * rates in proportion to the input rate. A member that is null stays so.
 */
export interface Assumption {
  readonly member: string
  readonly value: number | string
  /** The model that it is taken from. */
  readonly from: string
}

const BOUNDING_LIMITS = ['context_window_tokens', 'max_output_tokens'] as const

/** The entry may be invalid: it is checked later, as a part of its version. */
export function assumptionsFor(entry: ModelEntry, listed: readonly ModelEntry[]): readonly Assumption[] {
  const own = (entry as Partial<ModelEntry>).rates?.standard
  const closest = closestTo(entry, listed)
  if (own === undefined || closest === null) return []
  const from = closest.id
  const limits = BOUNDING_LIMITS.flatMap((member) => {
    const value = closest[member] ?? null
    return entry[member] === undefined && value !== null ? [{ member, value, from }] : []
  })
  return [...limits, ...cacheRates(own, closest.rates.standard).map((rate) => ({ ...rate, from }))]
}

export function withAssumptions(entry: ModelEntry, assumptions: readonly Assumption[]): ModelEntry {
  if (assumptions.length === 0) return entry
  const [limits, rates] = [true, false].map((isLimit) =>
    Object.fromEntries(
      assumptions
        .filter(({ value }) => (typeof value === 'number') === isLimit)
        .map(({ member, value }) => [member, value]),
    ),
  )
  const { standard, ...tiers } = entry.rates
  return { ...entry, ...limits, rates: { ...tiers, standard: { ...standard, ...rates } } }
}

/** Null: none has a similar name. */
function closestTo({ id, provider, mode = 'chat' }: ModelEntry, listed: readonly ModelEntry[]) {
  if (!TEXT_MODES.some((each) => each === mode)) return null
  const alike = listed.filter((each) => each.provider === provider && (each.mode ?? 'chat') === mode)
  const named = new Map(
    alike.flatMap((each) => [each.id, ...(each.aliases ?? [])].map((name) => [name, each])),
  )
  return named.get(suggestModel(named.keys(), id) ?? '') ?? null
}

type StandardRates = ModelEntry['rates']['standard']

function cacheRates(
  own: StandardRates,
  theirs: StandardRates,
): readonly Pick<Assumption, 'member' | 'value'>[] {
  const [input, theirInput] = [parseUsd(own.input ?? ''), parseUsd(theirs.input ?? '')]
  if (input === null || theirInput === null || theirInput === 0n) return []
  return Object.entries(theirs).flatMap(([member, rate]) => {
    const nanos = typeof rate === 'string' ? parseUsd(rate) : null
    if (nanos === null || !member.startsWith('cache_') || own[member as keyof StandardRates] !== undefined)
      return []
    return [{ member, value: scaleRate(nanos, theirInput, input) }]
  })
}
