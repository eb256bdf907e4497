import { nearestName } from '../kernel/settings.ts'

/** A sentence that names what was probably typed, or nothing. */
export function didYouMean(typed: string, known: readonly string[]): string {
  const meant = known.filter((name) => typed.length > 1 && name.startsWith(typed))
  const near = meant.length === 1 ? (meant[0] ?? null) : nearestName(typed, known, changesMax(typed))
  return near === null ? '' : ` Did you mean ${near}?`
}

/** Of a short word nearly every other one is a few changes away. */
function changesMax(typed: string): number {
  const letters = typed.replace(/^-+/, '').length
  if (letters <= 3) return 1
  return letters <= 7 ? 2 : 3
}
