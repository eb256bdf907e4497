/**
 * RFC 8259 outside strings, as one table: `STEP[state * 256 + byte]` is the next state, or one of the actions below,
 * which the scanner carries out. Strings and containers come back to `AFTER[state]`, the state they were met in; the
 * scanner's stack holds nothing else. Members of the top-level object have states of their own, so that what lies
 * deeper, which is nearly all there is, never asks how deep it is.
 */

export const BEFORE_OBJECT = 0
export const AFTER_OBJECT = 1
/** Strings are not in the table: json-string.ts crosses them. */
export const IN_STRING = 2

/** Behind `{`, a name or `}`; behind a comma, a name. */
export const TOP_FIRST_NAME = 3
const TOP_NAME = 4
export const TOP_COLON = 5
/** A top-level value is due: the same bytes as TOP_VALUE, but its first one is an action. */
const TOP_VALUE_AHEAD = 6
export const TOP_AFTER_VALUE = 7

export const FIRST_NAME = 8
const NAME = 9
const COLON = 10
const AFTER_MEMBER = 11
/** Behind `[`: a value or `]`. */
export const FIRST_ELEMENT = 12
const AFTER_ELEMENT = 13

/** Each of the three is a value that is due, followed by the states inside a number and inside a literal. */
const VALUE_STATES = 19
export const TOP_VALUE = 14
const MEMBER = TOP_VALUE + VALUE_STATES
const ELEMENT = MEMBER + VALUE_STATES
const STATES = ELEMENT + VALUE_STATES

/** Every entry from here on is an action, every one below is a state. */
export const ACTION = 128
export const REFUSE = ACTION
export const OPEN_STRING = ACTION + 1
export const OPEN_OBJECT = ACTION + 2
export const OPEN_ARRAY = ACTION + 3
export const CLOSE = ACTION + 4
export const OPEN_TOP_OBJECT = ACTION + 5
export const OPEN_TOP_NAME = ACTION + 6
/** The first byte of a top-level value, to be looked at again in TOP_VALUE. */
export const START_TOP_VALUE = ACTION + 7
/** The byte is behind the number and not part of it, to be looked at again in TOP_AFTER_VALUE. */
export const END_TOP_NUMBER = ACTION + 8
export const END_TOP_LITERAL = ACTION + 9
/** Only in AFTER: the end of a top-level name, of a top-level string or container, of the object itself. */
export const END_TOP_NAME = ACTION + 10
export const END_TOP_VALUE = ACTION + 11
export const END_OBJECT = ACTION + 12

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

/** What follows a number or literal: the bytes that end the number, and where each leads. */
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

onSpace(BEFORE_OBJECT, AFTER_OBJECT)
on(BEFORE_OBJECT, '{', OPEN_TOP_OBJECT)
AFTER[BEFORE_OBJECT] = END_OBJECT

onSpace(TOP_FIRST_NAME, TOP_NAME, TOP_COLON, TOP_VALUE_AHEAD, TOP_AFTER_VALUE)
for (const state of [TOP_FIRST_NAME, TOP_NAME]) {
  on(state, '"', OPEN_TOP_NAME)
  AFTER[state] = END_TOP_NAME
}
on(TOP_COLON, ':', TOP_VALUE_AHEAD)
on(TOP_VALUE_AHEAD, '"{[-0123456789tfn', START_TOP_VALUE)
buildValue(TOP_VALUE, END_TOP_LITERAL, [[`${WHITESPACE},}`, END_TOP_NUMBER]])
AFTER[TOP_VALUE] = END_TOP_VALUE
on(TOP_AFTER_VALUE, ',', TOP_NAME)
for (const state of [TOP_FIRST_NAME, TOP_AFTER_VALUE]) on(state, '}', CLOSE)

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
