import { type RawHeaders, tokensOf } from '../http/raw-headers.ts'

interface MediaRange {
  readonly type: string
  readonly weight: number
}

/**
 * Whether `Accept` asks for CSV rather than JSON: it weighs more, or it is named where JSON is only covered by a
 * wildcard. Who accepts neither gets JSON.
 */
export function prefersCsv(headers: RawHeaders): boolean {
  const ranges = tokensOf(headers, 'accept').map(readRange)
  const csv = bestMatch(ranges, ['text/csv', 'text/*', '*/*'])
  const json = bestMatch(ranges, ['application/json', 'application/*', '*/*'])
  if (csv.weight !== json.weight) return csv.weight > json.weight
  return csv.weight > 0 && csv.vagueness < json.vagueness
}

function readRange(token: string): MediaRange {
  const [type = '', ...parameters] = token.split(';').map((part) => part.trim())
  const weight = parameters.find((parameter) => parameter.startsWith('q='))
  return { type, weight: weight === undefined ? 1 : Number(weight.slice(2)) || 0 }
}

/** The most exact range that covers a type decides about it. */
function bestMatch(ranges: readonly MediaRange[], names: readonly string[]) {
  for (const [vagueness, name] of names.entries()) {
    const range = ranges.find(({ type }) => type === name)
    if (range !== undefined) return { weight: range.weight, vagueness }
  }
  return { weight: 0, vagueness: names.length }
}
