export const [COMMA, COLON, MARK_START, LETTER_N] = [0x2c, 0x3a, 0xef, 0x6e]
export const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = [0x7b, 0x7d, 0x5b, 0x5d]
export const BLANKS = new Uint8Array(256)
for (const byte of Buffer.from(' \t\r\n')) BLANKS[byte] = 1

/**
 * Numbers and literals: `LITERAL_STATES[state * 256 + byte]` is the next state, 0 for an invalid byte, or LITERAL_ENDS for the
 * first byte after the end. State 0 is the start. The states of numbers are 1 minus, 2 a zero, 3 digits, 4 dot, 5
 * fraction, 6 e, 7 sign of the exponent, 8 exponent; those of literals follow.
 */
export const LITERAL_STATES = new Uint8Array(22 * 256)
export const LITERAL_ENDS = 255

function transition(state: number, bytes: string, next: number): void {
  for (const byte of Buffer.from(bytes)) LITERAL_STATES[state * 256 + byte] = next
}

const [ALL_DIGITS, DIGITS] = ['0123456789', '123456789']
const ENDS = [2, 3, 5, 8]
transition(0, '-', 1)
for (const state of [0, 1]) {
  transition(state, '0', 2)
  transition(state, DIGITS, 3)
}
transition(3, ALL_DIGITS, 3)
for (const state of [2, 3]) transition(state, '.', 4)
for (const state of [4, 5]) transition(state, ALL_DIGITS, 5)
for (const state of [2, 3, 5]) transition(state, 'eE', 6)
transition(6, '+-', 7)
for (const state of [6, 7, 8]) transition(state, ALL_DIGITS, 8)
let last = 8
for (const literal of ['true', 'false', 'null']) {
  for (let i = 0; i < literal.length; i++, last++) transition(i === 0 ? 0 : last, literal.charAt(i), last + 1)
  ENDS.push(last)
}
for (const state of ENDS)
  for (let at = state * 256; at < (state + 1) * 256; at++)
    if (LITERAL_STATES[at] === 0) LITERAL_STATES[at] = LITERAL_ENDS

const NOWHERE = -1

/** A name or value that may span pieces of the text. `offset`: where the current piece begins in the text. */
export class TextPart {
  #start = NOWHERE
  #bytesMax = 0
  #copies: Buffer[] = []

  get isOpen(): boolean {
    return this.#start !== NOWHERE
  }

  open(start: number, bytesMax: number): void {
    this.#start = start
    this.#bytesMax = bytesMax
  }

  endChunk(chunk: Buffer, offset: number): void {
    if (this.#start === NOWHERE) return
    if (offset + chunk.length - this.#start > this.#bytesMax) this.#copies = []
    else this.#copies.push(Buffer.from(chunk.subarray(Math.max(0, this.#start - offset))))
  }

  /** The bytes of the part, valid only until the next piece; null if no part is open or it is too long. */
  take(chunk: Buffer, offset: number, end: number): Buffer | null {
    if (this.#start === NOWHERE) return null
    const from = this.#start - offset
    const fits = end - from <= this.#bytesMax
    const copies = this.#copies
    this.drop()
    if (!fits) return null
    if (from >= 0) return chunk.subarray(from, end)
    // The part may have ended in an earlier piece.
    return Buffer.concat([...copies, chunk.subarray(0, Math.max(0, end))], end - from)
  }

  /** Like `take`, as a string: nearly all parts are in one piece, which needs no view of it. */
  text(chunk: Buffer, offset: number, end: number): string | null {
    const from = this.#start - offset
    if (from < 0) return this.take(chunk, offset, end)?.toString() ?? null
    const fits = end - from <= this.#bytesMax
    this.drop()
    return fits ? chunk.toString('utf8', from, end) : null
  }

  drop(): void {
    this.#start = NOWHERE
    if (this.#copies.length > 0) this.#copies = []
  }
}

const [QUOTE, BACKSLASH] = [0x22, 0x5c]
/** A name of letters and digits, which no encoder escapes. */
const WORD = /^\w+$/

/** The duplicate names in a valid JSON text, with escapes decoded. JSON.parse silently uses the last value. */
export function duplicateNames(text: string, withEscapedWords = false): ReadonlySet<string> {
  const found = new Set<string>()
  const open: Set<string>[] = []
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === OPEN_BRACE) open.push(new Set())
    else if (code === CLOSE_BRACE) open.pop()
    if (code !== QUOTE) continue
    const start = i
    i = closingQuote(text, start + 1)
    let colon = i + 1
    while (BLANKS[text.charCodeAt(colon)] === 1) colon++
    if (text.charCodeAt(colon) !== COLON) continue
    const written = text.slice(start + 1, i)
    const isEscaped = written.includes('\\')
    const name = isEscaped ? (JSON.parse(`"${written}"`) as string) : written
    const names = open.at(-1) ?? new Set()
    const count = names.size
    names.add(name)
    if (names.size === count || (withEscapedWords && isEscaped && WORD.test(name))) found.add(name)
  }
  return found
}

/** Also escaped words: V8 (13.6) may misread a second name, so JSON.parse may not find `"\u006dodel"`. */
export function ambiguousNames(text: string): ReadonlySet<string> {
  return duplicateNames(text, true)
}

/** Names and other short strings are shorter than this. */
const SHORT_CHARS = 32

/** A native search is faster than a loop for long strings, and slower for short ones. */
function closingQuote(text: string, from: number): number {
  let i = from
  for (; i < from + SHORT_CHARS; i++) {
    const code = text.charCodeAt(i)
    if (code === QUOTE) return i
    if (code === BACKSLASH) i++
  }
  for (let quote = text.indexOf('"', i); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let unescaped = quote
    while (unescaped > i && text.charCodeAt(unescaped - 1) === BACKSLASH) unescaped--
    if ((quote - unescaped) % 2 === 0) return quote
  }
  return text.length
}

/** The value of a string; null if it has a control character. Few strings have escapes. */
export function parseString(text: string): string | null {
  if (!text.includes('\\')) return text.slice(1, -1)
  try {
    return JSON.parse(text) as string
  } catch {
    return null
  }
}
