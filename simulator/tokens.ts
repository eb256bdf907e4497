// One rule for every model: a token is four bytes of UTF-8, rounded up once per piece of text.
// Real tokenisers differ by model; the tests need a count that follows from the text alone.

const bytesPerToken = 4

export function countTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / bytesPerToken)
}

/** The longest beginning of `text` that is worth at most `tokens` tokens, never splitting a character. */
export function cutToTokens(text: string, tokens: number): string {
  const bytesMax = tokens * bytesPerToken
  if (Buffer.byteLength(text) <= bytesMax) return text
  const bytes = Buffer.from(text)
  let end = bytesMax
  // Continuation bytes of UTF-8 begin with the bits 10: a cut there would leave half a character.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1
  return bytes.toString('utf8', 0, end)
}

/** The text as a model would stream it: a word with the blank before it at a time, nothing lost. */
export function splitIntoDeltas(text: string): string[] {
  return text.match(/\s*\S{1,24}|\s+$/gu) ?? []
}

/** JSON arguments stream in pieces that respect no word. */
export function splitIntoPieces(text: string, lengthMax: number): string[] {
  const pieces: string[] = []
  let piece = ''
  for (const character of text) {
    piece += character
    if (piece.length >= lengthMax) {
      pieces.push(piece)
      piece = ''
    }
  }
  if (piece !== '') pieces.push(piece)
  return pieces
}
