export const [COMMA, COLON, MARK_START] = [0x2c, 0x3a, 0xef]
export const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = [0x7b, 0x7d, 0x5b, 0x5d]
export const [LETTER_T, LETTER_F, LETTER_N] = [0x74, 0x66, 0x6e]
const [MINUS, ZERO, NINE] = [0x2d, 0x30, 0x39]
export const BLANKS = new Uint8Array(256)
for (const byte of Buffer.from(' \t\r\n')) BLANKS[byte] = 1

export const LITERALS = new Map([
  [LETTER_T, Buffer.from('true')],
  [LETTER_F, Buffer.from('false')],
  [LETTER_N, Buffer.from('null')],
])

/**
 * The states of a number: 1 minus, 2 a zero, 3 digits, 4 dot, 5 fraction, 6 e, 7 sign of the exponent, 8 exponent. NEXT
 * has for each the next state by the class of the next byte: 0, 1 to 9, dot, sign, e. ENDS says where a number may end.
 */
const NEXT = ['', '23000', '00406', '33406', '55000', '55006', '88070', '88000', '88000'].map((row) =>
  [...row].map(Number),
)
const ENDS: readonly boolean[] = [false, false, true, true, false, true, false, false, true]
const CLASSES = new Uint8Array(256).fill(5)
for (const [kind, text] of ['0', '123456789', '.', '+-', 'eE'].entries())
  for (const byte of Buffer.from(text)) CLASSES[byte] = kind

/** The state of a number that begins with this byte; 0 if none does. */
export function startNumber(byte: number): number {
  if (byte === MINUS) return 1
  if (byte === ZERO) return 2
  return byte > ZERO && byte <= NINE ? 3 : 0
}

/** The state behind one more byte: 0 if no number has it there, NUMBER_ENDS if the number has ended before it. */
export function nextOfNumber(state: number, byte: number): number {
  const kind = CLASSES[byte] as number
  if (kind === 5) return ENDS[state] === true ? NUMBER_ENDS : 0
  return NEXT[state]?.[kind] ?? 0
}

export const NUMBER_ENDS = 9
