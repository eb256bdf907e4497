/** The whitespace-separated words of a text. */
export function words(text: string): string[] {
  return text.trim().split(/\s+/)
}
