import { MARK_ENDS, markOf } from './content-marks.ts'
import { ESCAPES, NEAR_BYTES, nextStop, QUOTE } from './json-string.ts'

/**
 * RFC 8259 outside strings, as one table: `STEP[state * 256 + byte]` is the next state, or one of the actions below,
 * which the walker carries out. The state behind a string or container is `AFTER` of the state it was met in; the
 * walker's stack holds nothing else. Containers that a selector looks into ("seen" ones) have states of their own, so
 * that all other containers, which are nearly all there is, need no check whether they are looked into.
 */

export const BEFORE_ROOT = 0
export const AFTER_ROOT = 1
/** Strings are not in the table: json-string.ts crosses them. */
export const IN_STRING = 2

/** SEEN_FIRST_NAME: behind `{`, a name or `}` is due. SEEN_NAME: behind a comma, a name is due. */
export const SEEN_FIRST_NAME = 3
const SEEN_NAME = 4
export const SEEN_COLON = 5
/** A value of a seen container is due: the same bytes as SEEN_VALUE, but its first one is an action. */
export const SEEN_MEMBER_AHEAD = 6
export const SEEN_AFTER_MEMBER = 7
export const SEEN_FIRST_ELEMENT = 8
const SEEN_ELEMENT_AHEAD = 9
export const SEEN_AFTER_ELEMENT = 10

const FIRST_NAME = 11
const NAME = 12
const COLON = 13
const AFTER_MEMBER = 14
/** Behind `[`: a value or `]`. */
const FIRST_ELEMENT = 15
const AFTER_ELEMENT = 16

/** Each of SEEN_VALUE, MEMBER and ELEMENT is a value that is due, followed by the states inside a number and inside a literal. */
const VALUE_STATES = 19
export const SEEN_VALUE = 17
const MEMBER = SEEN_VALUE + VALUE_STATES
const ELEMENT = MEMBER + VALUE_STATES

/** Before the first byte of a text that may begin with a byte order mark; then behind each of its bytes. */
export const BEFORE_MARK = ELEMENT + VALUE_STATES
const IN_MARK = BEFORE_MARK + 1
const END_OF_MARK = IN_MARK + 1
/** In a value that is passed over; not in the table: `skip` crosses it. */
export const SKIPPING = END_OF_MARK + 1
const STATES = SKIPPING + 1

/** Every entry from here on is an action, every one below is a state. */
const ACTION = 128
const REFUSE = ACTION
export const OPEN_STRING = ACTION + 1
export const OPEN_OBJECT = ACTION + 2
export const OPEN_ARRAY = ACTION + 3
export const CLOSE = ACTION + 4
export const OPEN_SEEN_NAME = ACTION + 5
/** The first byte of the outermost value, or of a value in a seen container. */
export const START_SEEN_VALUE = ACTION + 6
/** The byte is behind the number and not part of it. */
export const END_SEEN_NUMBER = ACTION + 7
export const END_SEEN_LITERAL = ACTION + 8
/** Only in AFTER and on the stack: the end of a name, of a string or unseen container, and of a seen container. */
export const END_SEEN_NAME = ACTION + 9
export const END_SEEN_VALUE = ACTION + 10
export const END_SEEN_CONTAINER = ACTION + 11

const WHITESPACE = ' \t\n\r'
const DIGITS = '0123456789'

export const STEP: Uint8Array = new Uint8Array(STATES * 256).fill(REFUSE)
export const AFTER: Uint8Array = new Uint8Array(STATES)

function on(state: number, bytes: string, to: number): void {
  for (let i = 0; i < bytes.length; i++) STEP[state * 256 + bytes.charCodeAt(i)] = to
}

function onSpace(...states: number[]): void {
  for (const state of states) on(state, WHITESPACE, state)
}

/** The bytes that may follow a number, and the state or action that each leads to. */
type Followers = readonly (readonly [bytes: string, to: number])[]

function buildValue(value: number, afterLiteral: number, followers: Followers): void {
  onSpace(value)
  on(value, '"', OPEN_STRING)
  on(value, '{', OPEN_OBJECT)
  on(value, '[', OPEN_ARRAY)

  let next = value + 1
  const [minus, zero, integer, point, fraction] = [next++, next++, next++, next++, next++] as const
  const [exponent, exponentSign, exponentDigits] = [next++, next++, next++] as const
  on(value, '-', minus)
  for (const state of [value, minus]) {
    on(state, '0', zero)
    on(state, '123456789', integer)
  }
  on(integer, DIGITS, integer)
  for (const state of [zero, integer]) on(state, '.', point)
  for (const state of [point, fraction]) on(state, DIGITS, fraction)
  for (const state of [zero, integer, fraction]) on(state, 'eE', exponent)
  on(exponent, '+-', exponentSign)
  for (const state of [exponent, exponentSign, exponentDigits]) on(state, DIGITS, exponentDigits)
  for (const state of [zero, integer, fraction, exponentDigits]) {
    for (const [bytes, to] of followers) on(state, bytes, to)
  }

  for (const literal of ['true', 'false', 'null']) {
    on(value, literal.charAt(0), next)
    for (let i = 1; i < literal.length; i++, next++) {
      on(next, literal.charAt(i), i === literal.length - 1 ? afterLiteral : next + 1)
    }
  }
}

onSpace(BEFORE_ROOT, AFTER_ROOT)
for (const state of [BEFORE_ROOT, BEFORE_MARK]) on(state, '{[', START_SEEN_VALUE)
on(BEFORE_MARK, WHITESPACE, BEFORE_ROOT)
on(BEFORE_MARK, '\xef', IN_MARK)
on(IN_MARK, '\xbb', END_OF_MARK)
on(END_OF_MARK, '\xbf', BEFORE_ROOT)

onSpace(SEEN_FIRST_NAME, SEEN_NAME, SEEN_COLON, SEEN_MEMBER_AHEAD, SEEN_AFTER_MEMBER)
onSpace(SEEN_FIRST_ELEMENT, SEEN_ELEMENT_AHEAD, SEEN_AFTER_ELEMENT)
for (const state of [SEEN_FIRST_NAME, SEEN_NAME]) on(state, '"', OPEN_SEEN_NAME)
on(SEEN_COLON, ':', SEEN_MEMBER_AHEAD)
for (const state of [SEEN_MEMBER_AHEAD, SEEN_FIRST_ELEMENT, SEEN_ELEMENT_AHEAD]) {
  on(state, `"{[-${DIGITS}tfn`, START_SEEN_VALUE)
}
buildValue(SEEN_VALUE, END_SEEN_LITERAL, [[`${WHITESPACE},}]`, END_SEEN_NUMBER]])
AFTER[SEEN_VALUE] = END_SEEN_VALUE
on(SEEN_AFTER_MEMBER, ',', SEEN_NAME)
on(SEEN_AFTER_ELEMENT, ',', SEEN_ELEMENT_AHEAD)
for (const state of [SEEN_FIRST_NAME, SEEN_AFTER_MEMBER]) on(state, '}', CLOSE)
for (const state of [SEEN_FIRST_ELEMENT, SEEN_AFTER_ELEMENT]) on(state, ']', CLOSE)

onSpace(FIRST_NAME, NAME, COLON, AFTER_MEMBER)
for (const state of [FIRST_NAME, NAME]) {
  on(state, '"', OPEN_STRING)
  AFTER[state] = COLON
}
on(COLON, ':', MEMBER)
buildValue(MEMBER, AFTER_MEMBER, [
  [WHITESPACE, AFTER_MEMBER],
  [',', NAME],
  ['}', CLOSE],
])
AFTER[MEMBER] = AFTER_MEMBER
on(AFTER_MEMBER, ',', NAME)
for (const state of [FIRST_NAME, AFTER_MEMBER]) on(state, '}', CLOSE)

buildValue(ELEMENT, AFTER_ELEMENT, [
  [WHITESPACE, AFTER_ELEMENT],
  [',', ELEMENT],
  [']', CLOSE],
])
AFTER[ELEMENT] = AFTER_ELEMENT
STEP.copyWithin(FIRST_ELEMENT * 256, ELEMENT * 256, (ELEMENT + 1) * 256)
onSpace(FIRST_ELEMENT, AFTER_ELEMENT)
AFTER[FIRST_ELEMENT] = AFTER_ELEMENT
on(AFTER_ELEMENT, ',', ELEMENT)
for (const state of [FIRST_ELEMENT, AFTER_ELEMENT]) on(state, ']', CLOSE)

/** The compiler treats a constant of this module as known, an imported constant not, which costs a tenth of the speed. */
const markEnds = MARK_ENDS
const escapes = ESCAPES
const BACKSLASH = 0x5c

/** Where a scan stands: the next byte of the chunk, the grammar's state, and how many containers are open. */
export interface Cursor {
  i: number
  state: number
  depth: number
  /** The marks among the strings that came by: bits of content-marks.ts. */
  marks: number
  /** How many containers are open in the value that is passed over. */
  skipped: number
}

/** The chunk is used up. */
export const END_OF_CHUNK = 0

/**
 * Walks through text that no selector looks into until the walker has to act on a byte: answers the action of the
 * grammar for `cursor.i`, or END_OF_CHUNK. Strings that are short and whole and have no escapes but those of one
 * character, and containers within an unseen one, which together are nearly everything, never leave this function. Its
 * loops hold no call and no field access, but for the rare string that may be a mark: either one halves the speed.
 */
export function walk(chunk: Buffer, words: DataView, stack: Uint8Array, cursor: Cursor): number {
  const length = chunk.length
  let { i, state, depth } = cursor
  let action = END_OF_CHUNK
  while (i < length) {
    let next = STEP[(state << 8) | (chunk[i] as number)] as number
    while (next < ACTION) {
      state = next
      i++
      if (i === length) break
      next = STEP[(state << 8) | (chunk[i] as number)] as number
    }
    if (i === length) break
    const back = AFTER[state] as number
    if (next === OPEN_STRING) {
      const near = Math.min(i + NEAR_BYTES, length)
      let stop = nextStop(chunk, words, i + 1, near)
      while (stop + 1 < near && chunk[stop] === BACKSLASH && escapes[chunk[stop + 1] as number] === 1) {
        stop = nextStop(chunk, words, stop + 2, near)
      }
      if (stop < length && chunk[stop] === QUOTE && back < ACTION) {
        if (markEnds[chunk[stop - 1] as number] === 1) cursor.marks |= markOf(chunk, i + 1, stop)
        i = stop + 1
        state = back
        continue
      }
    } else if (next === OPEN_OBJECT || next === OPEN_ARRAY) {
      if (depth < stack.length) {
        stack[depth] = back
        depth++
        state = next === OPEN_OBJECT ? FIRST_NAME : FIRST_ELEMENT
        i++
        continue
      }
    } else if (next === CLOSE) {
      const outside = stack[depth - 1] as number
      if (outside < ACTION) {
        depth--
        state = outside
        i++
        continue
      }
    }
    action = next
    break
  }
  cursor.i = i
  cursor.state = state
  cursor.depth = depth
  return action
}

const [PLAIN, COMMA, OPENS, CLOSES, STRING] = [0, 1, 2, 3, 4]
const KINDS = new Uint8Array(256)
for (const [kind, bytes] of [
  [COMMA, ','],
  [OPENS, '{['],
  [CLOSES, '}]'],
  [STRING, '"'],
] as const) {
  for (const byte of Buffer.from(bytes)) KINDS[byte] = kind
}

/**
 * Passes over a value without judging its grammar: nothing but its strings and brackets is looked at. Servers in Python
 * write NaN and -Infinity among log probabilities, and that is no reason not to read the usage behind them.
 * Answers END_SEEN_VALUE at the comma or bracket behind the value, OPEN_STRING at a string that is long, has escapes or
 * is not whole, or END_OF_CHUNK.
 */
export function skip(chunk: Buffer, words: DataView, cursor: Cursor): number {
  const length = chunk.length
  let { i, skipped } = cursor
  let action = END_OF_CHUNK
  while (i < length) {
    const kind = KINDS[chunk[i] as number] as number
    if (kind === PLAIN) {
      i++
      continue
    }
    if (kind === STRING) {
      const near = Math.min(i + NEAR_BYTES, length)
      let stop = nextStop(chunk, words, i + 1, near)
      while (stop + 1 < near && chunk[stop] === BACKSLASH && escapes[chunk[stop + 1] as number] === 1) {
        stop = nextStop(chunk, words, stop + 2, near)
      }
      if (stop === length || chunk[stop] !== QUOTE) {
        action = OPEN_STRING
        break
      }
      i = stop
    } else if (kind === OPENS) skipped++
    else if (skipped === 0) {
      action = END_SEEN_VALUE
      break
    } else if (kind === CLOSES) skipped--
    i++
  }
  cursor.i = i
  cursor.skipped = skipped
  return action
}
