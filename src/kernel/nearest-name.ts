/** The closest known name; null if no name is close. For short names, such as options and settings. */
export function nearestName(name: string, known: readonly string[], changesMax: number): string | null {
  if (name.length > NAME_CHARS_MAX) return null
  let nearest: string | null = null
  let least = changesMax
  for (const candidate of known) {
    if (Math.abs(candidate.length - name.length) > least) continue
    const changes = changesBetween(name, candidate, least)
    if (changes > least || (changes === least && nearest !== null)) continue
    nearest = candidate
    least = changes
  }
  return nearest
}

/** Bounds the time of the comparison. No real name is longer. */
export const NAME_CHARS_MAX = 64

/** Edit distance, in which a transposition counts as one change; Infinity if it is larger than `most`. */
function changesBetween(a: string, b: string, most: number): number {
  let before: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  let least = 0
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const substituted = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next[j] = Math.min(substituted, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        next[j] = Math.min(next[j] ?? 0, (before[j - 2] ?? 0) + 1)
    }
    // Each later row begins from the last two.
    const leastBefore = least
    least = Math.min(...next)
    if (Math.min(least, leastBefore) > most) return Infinity
    before = row
    row = next
  }
  return row[b.length] ?? 0
}
