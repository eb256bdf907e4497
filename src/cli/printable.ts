const CHARS_MAX = 100

/** Models are named by whoever called: a name must not move the cursor of the operator's terminal, or fill it. */
export function printable(text: string): string {
  const plain = text.replace(/[^\x20-\x7e]/g, '?')
  return plain.length <= CHARS_MAX ? plain : `${plain.slice(0, CHARS_MAX - 3)}...`
}
