export const [COMMA, COLON, MARK_START, LETTER_N] = [0x2c, 0x3a, 0xef, 0x6e]
export const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = [0x7b, 0x7d, 0x5b, 0x5d]
export const BLANKS = new Uint8Array(256)
for (const byte of Buffer.from(' \t\r\n')) BLANKS[byte] = 1

/**
 * Numbers and literals: `SCALARS[state * 256 + byte]` is the next state, 0 for a byte that cannot come there, or
 * SCALAR_ENDS for a byte behind the end. State 0 is the start. The states of numbers are 1 minus, 2 a zero, 3 digits,
 * 4 dot, 5 fraction, 6 e, 7 sign of the exponent, 8 exponent; those of literals follow.
 */
export const SCALARS = new Uint8Array(22 * 256)
export const SCALAR_ENDS = 255

function on(state: number, bytes: string, next: number): void {
  for (const byte of Buffer.from(bytes)) SCALARS[state * 256 + byte] = next
}

const [ALL_DIGITS, DIGITS] = ['0123456789', '123456789']
const ENDS = [2, 3, 5, 8]
on(0, '-', 1)
for (const state of [0, 1]) {
  on(state, '0', 2)
  on(state, DIGITS, 3)
}
on(3, ALL_DIGITS, 3)
for (const state of [2, 3]) on(state, '.', 4)
for (const state of [4, 5]) on(state, ALL_DIGITS, 5)
for (const state of [2, 3, 5]) on(state, 'eE', 6)
on(6, '+-', 7)
for (const state of [6, 7, 8]) on(state, ALL_DIGITS, 8)
let last = 8
for (const literal of ['true', 'false', 'null']) {
  for (let i = 0; i < literal.length; i++, last++) on(i === 0 ? 0 : last, literal.charAt(i), last + 1)
  ENDS.push(last)
}
for (const state of ENDS)
  for (let at = state * 256; at < (state + 1) * 256; at++) if (SCALARS[at] === 0) SCALARS[at] = SCALAR_ENDS

/** The offset behind the number or literal at `from`; -1 if it is none, or does not end in the chunk. */
export function endOfScalar(chunk: Buffer, from: number): number {
  let state = 0
  for (let i = from; i < chunk.length; i++) {
    state = SCALARS[(state << 8) | (chunk[i] as number)] as number
    if (state === SCALAR_ENDS) return i
    if (state === 0) return -1
  }
  return -1
}

const NOWHERE = -1

/**
 * A part of a text that arrives in pieces: a name or a value. Only a part that lies in two pieces is copied. `offset` is
 * where in the text the current piece begins, `end` is the offset in the piece behind the part.
 */
export class KeptPart {
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

  /** The piece is used up. */
  endChunk(chunk: Buffer, offset: number): void {
    if (this.#start === NOWHERE) return
    if (offset + chunk.length - this.#start > this.#bytesMax) this.#copies = []
    else this.#copies.push(Buffer.from(chunk.subarray(Math.max(0, this.#start - offset))))
  }

  /** The bytes of the part, to be used at once; null if none is open, or if it is longer than it may be. */
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

  drop(): void {
    this.#start = NOWHERE
    if (this.#copies.length > 0) this.#copies = []
  }
}
