import type { JsonMember } from '../metering/json-scan.ts'
import { count, LIMITLESS } from './count.ts'

/** Where Messages begins to sum up unless it is told otherwise. */
const DEFAULT_TRIGGER_TOKENS = 150_000

type Entry = Readonly<Record<string, unknown>>

/**
 * From how many tokens on a `context_management` has upstream sum them up before it answers, which is a pass of its
 * own; null if it does not, 0 where that cannot be read. Messages has a list of `edits`, Responses the list alone.
 */
export function compactsAbove(member: JsonMember | undefined): number | null {
  if (member === undefined || member.kind === 'null') return null
  if (member.kind !== 'object' && member.kind !== 'array') return 0
  const value = JSON.parse(member.json) as readonly unknown[] | Entry
  const entries = Array.isArray(value) ? (value as readonly unknown[]) : (value as Entry)['edits']
  if (entries === null || entries === undefined) return null
  if (!Array.isArray(entries)) return 0
  let least: number | null = null
  for (const entry of entries as readonly unknown[]) {
    const threshold = thresholdOf((entry ?? {}) as Entry)
    if (threshold !== null) least = Math.min(least ?? threshold, threshold)
  }
  return least
}

function thresholdOf({ type, trigger, compact_threshold: threshold }: Entry): number | null {
  // Edits that only leave something out.
  if (typeof type === 'string' && type.startsWith('clear_')) return null
  if (type === 'compaction') return readable(threshold)
  if (trigger === null || trigger === undefined)
    return type === 'compact_20260112' ? DEFAULT_TRIGGER_TOKENS : 0
  const { type: unit, value } = trigger as Entry
  return unit === 'input_tokens' ? readable(value) : 0
}

function readable(value: unknown): number {
  const tokens = count(value)
  return tokens === LIMITLESS ? 0 : tokens
}
