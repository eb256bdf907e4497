import { limits } from '../kernel/limits.ts'
import { PromptTexts } from './prompt-texts.ts'
import { type CountedAs, roughShares, SHARES_PER_TOKEN } from './rough-tokens.ts'

/** Where only the size of a body is known: JSON around English text has about this many bytes to a token. */
const BODY_BYTES_PER_TOKEN = 4

export function roughBodyTokens(bytes: number): number {
  return Math.ceil(bytes / BODY_BYTES_PER_TOKEN)
}

/** So much of a body may be settings, ids and white space that no model reads. */
const UNREAD_BYTES_MAX = 2048
/** JSON of prose, code or schemas has fewer bytes to a token. */
const BODY_BYTES_PER_TOKEN_MAX = 8

/**
 * What a body without media has at least. Upstream reads text where it is not looked for: names and values of schemas,
 * refusals, grammars, what is encrypted or nested deeply.
 */
export function leastBodyTokens(bytes: number): number {
  return Math.ceil(Math.max(0, bytes - UNREAD_BYTES_MAX) / BODY_BYTES_PER_TOKEN_MAX)
}

/** The prompt tokens of a body: by their script where it is so small that looking takes no time, else by its length. */
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
