import type { Condensed } from './condensed.ts'

/** A JSON text that was read, as far as it matters. */
export interface JsonDocument {
  readonly value: unknown
  /** Something that may matter was too long to be read and is null here. */
  readonly overflow: boolean
  /** Some object names a member twice: parsers differ on which one counts, `value` has the last. */
  repeatsNames(): boolean
}

export type UnreadableDocument = 'too_large' | 'not_json'

export function readDocument(condensed: Condensed): JsonDocument | UnreadableDocument {
  if (condensed.kind === 'too_large') return 'too_large'
  let value: unknown
  try {
    // A byte order mark is no JSON, but clients skip it.
    value = JSON.parse(condensed.text.charCodeAt(0) === 0xfeff ? condensed.text.slice(1) : condensed.text)
  } catch {
    return 'not_json'
  }
  return {
    value,
    overflow: condensed.overflow,
    repeatsNames: () => countNames(value) < condensed.names,
  }
}

/** The depth is that of the condensed text, which is limited. */
function countNames(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  let names = 0
  if (Array.isArray(value)) {
    for (const element of value) names += countNames(element)
    return names
  }
  // Whatever JSON.parse makes has no other names than its own.
  for (const name in value) names += 1 + countNames((value as Readonly<Record<string, unknown>>)[name])
  return names
}
