/** The words of a text, which are separated by blanks and line ends. */
export function words(text: string): string[] {
  return text.trim().split(/\s+/)
}
