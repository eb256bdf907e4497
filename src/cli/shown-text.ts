/**
 * Text of others for a terminal: names of keys and models, whatever they are made of, must not move the cursor, turn
 * the reading direction or fill the screen. Letters of all scripts stay what they are.
 */
export function shownText(text: string, widthMax = 100): string {
  const plain = text.replace(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, '?')
  if (widthOf(plain) <= widthMax && plain.length <= 4 * widthMax) return plain
  let kept = ''
  for (const char of plain) {
    // Marks have no width, and must not be without number for that.
    if (widthOf(kept + char) >= widthMax || kept.length >= 2 * widthMax) break
    kept += char
  }
  return `${kept}…`
}

const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f900}-\u{1f9ff}\u{20000}-\u{3fffd}]/u

/** How many columns of a terminal it takes. */
export function widthOf(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length
  let width = 0
  for (const char of text) width += /\p{M}/u.test(char) ? 0 : WIDE.test(char) ? 2 : 1
  return width
}

/** An instant of the API, which is in UTC. The heading says so. */
export function shownInstant(instant: string | null): string {
  return instant === null ? '-' : shownText(instant.replace(/^(.{10})T(.{8}).*$/, '$1 $2'), 30)
}
