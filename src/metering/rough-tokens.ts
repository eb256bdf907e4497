import { limits } from '../kernel/limits.ts'
import { PromptTexts } from './prompt-texts.ts'

/** The surface whose tokens are counted: each has a vocabulary of its own. */
export type CountedAs = 'chat' | 'messages'

/** Shares of a token, so that a quarter, a half and two sevenths are whole numbers. */
export const SHARES_PER_TOKEN = 28
const HALF = SHARES_PER_TOKEN / 2

/**
 * The shares of each ASCII character: of letters and blanks, and of all others. Anthropic publishes no tokenizer for
 * its current models; its documentation puts a token at about 3.5 English characters.
 */
const ASCII_SHARES = {
  chat: asciiShares(SHARES_PER_TOKEN / 4, HALF),
  messages: asciiShares(SHARES_PER_TOKEN / 3.5, SHARES_PER_TOKEN / 3.5),
}

/** Below this code are the alphabets of Europe, the Near East and India, with two or three letters to a token. */
const DENSE_FROM = 0x0e00

/**
 * The tokens of a text by its script, in shares, without a vocabulary. Held against o200k: English prose 1.07 to 1.29 times
 * the real figure, source code 1.02, JSON 1.17, a table of numbers 0.87, German 1.25, Russian 1.80, Arabic 1.24, Hindi 1.55,
 * Thai 2.06, Chinese 1.23, Japanese 1.18, Korean 1.41, emoji 1.04. Low are base64 (0.43) and scripts and characters that
 * are rare on the web (Amharic 0.47, rare ideographs 0.52).
 */
export function roughShares(text: string, countedAs: CountedAs): number {
  const ascii = ASCII_SHARES[countedAs]
  let shares = 0
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit < 0x80) shares += ascii[unit] as number
    else shares += unit < DENSE_FROM ? HALF : SHARES_PER_TOKEN
  }
  return shares
}

export function roughTokens(texts: readonly string[], countedAs: CountedAs): number {
  const shares = texts.reduce((sum, text) => sum + roughShares(text, countedAs), 0)
  return Math.ceil(shares / SHARES_PER_TOKEN)
}

function asciiShares(letter: number, other: number): Uint8Array {
  return Uint8Array.from({ length: 0x80 }, (_, unit) => {
    const small = unit | 0x20
    return unit <= 0x20 || (small >= 0x61 && small <= 0x7a) ? letter : other
  })
}

/** For a body of which only the size is known: JSON around English text has about this many bytes to a token. */
const BODY_BYTES_PER_TOKEN = 4

export function roughBodyTokens(bytes: number): number {
  return Math.ceil(bytes / BODY_BYTES_PER_TOKEN)
}

/** How much of a body may be settings, ids and white space that no model reads. */
const UNREAD_BYTES_MAX = 2048
/** JSON of prose, code or schemas has fewer bytes to a token. */
const BODY_BYTES_PER_TOKEN_MAX = 8

/**
 * The least tokens of a body without media. Upstream reads text where PromptTexts does not look for it: names and
 * values of schemas, refusals, grammars, content that is encrypted or nested deeply.
 */
export function leastBodyTokens(bytes: number): number {
  return Math.ceil(Math.max(0, bytes - UNREAD_BYTES_MAX) / BODY_BYTES_PER_TOKEN_MAX)
}

/** The prompt tokens of a body: by the script of its texts where it is small enough to look without delay, else by its length. */
export function roughRequestTokens(countedAs: CountedAs, chunks: readonly Buffer[], bytes: number): number {
  if (bytes > limits.roughLookBytesMax) return roughBodyTokens(bytes)
  let shares = 0
  const texts = new PromptTexts({
    add: (piece) => {
      shares += roughShares(piece, countedAs)
    },
    endText: () => {},
    token: () => {
      shares += SHARES_PER_TOKEN
    },
  })
  for (const chunk of chunks) texts.write(chunk)
  return texts.end() ? Math.ceil(shares / SHARES_PER_TOKEN) : roughBodyTokens(bytes)
}
