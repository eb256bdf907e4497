import { parseUsd } from '../kernel/money.ts'
import type { PriceVersion } from './price-book.ts'
import type { ModelEntry } from './price-file.ts'

/** What a change of prices changes. */
export interface RateChange {
  readonly model: string
  /** The tier, if it is not standard, and the name of the rate: `batch.input`. */
  readonly unit: string
  readonly old: string | null
  readonly new: string | null
}

export interface VersionComparison {
  readonly added: readonly string[]
  readonly changed: readonly RateChange[]
}

export function compareVersions(before: PriceVersion, after: PriceVersion): VersionComparison {
  const known = new Map(before.entry.models.map((model) => [model.id, model]))
  const added: string[] = []
  const changed: RateChange[] = []
  for (const model of after.entry.models) {
    const former = known.get(model.id)
    if (former === model) continue
    if (former === undefined) added.push(model.id)
    else changed.push(...rateChanges(former, model))
  }
  return { added, changed }
}

function rateChanges(before: ModelEntry, after: ModelEntry): readonly RateChange[] {
  const [old, next] = [ratesOf(before), ratesOf(after)]
  return [...new Set([...old.keys(), ...next.keys()])].flatMap((unit) => {
    const [from, to] = [old.get(unit) ?? null, next.get(unit) ?? null]
    return from === to ? [] : [{ model: after.id, unit, old: from, new: to }]
  })
}

function ratesOf({ rates, endpoints = {} }: ModelEntry): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  const collect = (value: object, path: readonly string[]): void => {
    for (const [name, rate] of Object.entries(value)) {
      const inner = name === 'standard' ? path : [...path, name]
      if (typeof rate === 'string') found.set(inner.join('.'), rate)
      else if (typeof rate === 'object' && rate !== null) collect(rate, inner)
    }
  }
  collect(rates, [])
  collect(endpoints, [])
  return found
}

const JUMP = 4n

/** Whether a rate changes so much that it may be a mistake: by more than a factor of 4 in either direction. */
export function isJump({ old, new: next }: RateChange): boolean {
  const [before, after] = [parseUsd(old ?? '') ?? 0n, parseUsd(next ?? '') ?? 0n]
  if (old === null || next === null || before === after) return false
  return after > before * JUMP || before > after * JUMP
}
