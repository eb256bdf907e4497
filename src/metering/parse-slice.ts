/** A value, and the names that some object in its text has twice or spells with needless escapes. */
export interface ParsedSlice {
  readonly value: unknown
  readonly twice: readonly string[]
}

const NONE: readonly string[] = []
const BLANKS = ' \t\r\n'

/**
 * Parses a small JSON text and says which names are given twice, since JSON.parse silently takes the last one. The text
 * must be valid. The check costs a search for quotes; only a text that fails it is read name by name.
 *
 * Names with escapes are read one by one too: V8 (13.6) takes the second name of `{"\"":0,"\"":0}` for another one, once
 * it has seen `{"\"":0,"\\":0}`, so that `"\u006dodel"` can hide from JSON.parse.
 */
export function parseSlice(text: string): ParsedSlice {
  const value: unknown = JSON.parse(text)
  if (typeof value !== 'object' || value === null) return { value, twice: NONE }
  let names = 0
  let hasEscapes = false
  for (const name of namesIn(text)) {
    names++
    hasEscapes ||= name.isEscaped
  }
  // Each colon outside of strings belongs to one name, and each name that is not given twice to one key of the value.
  if (!hasEscapes && names === countKeys(value)) return { value, twice: NONE }
  return { value, twice: namesTwice(text) }
}

/** Hardly any string has an escape. Null for a string with a control character. */
export function parseString(text: string): string | null {
  if (!text.includes('\\')) return text.slice(1, -1)
  try {
    return JSON.parse(text) as string
  } catch {
    return null
  }
}

function countKeys(value: object): number {
  let keys = 0
  const isList = Array.isArray(value)
  for (const name in value) {
    const inner = (value as Readonly<Record<string, unknown>>)[name]
    if (!isList) keys++
    if (typeof inner === 'object' && inner !== null) keys += countKeys(inner)
  }
  return keys
}

interface NameIn {
  /** Where the name's quotes are. */
  readonly start: number
  readonly end: number
  readonly isEscaped: boolean
}

/** The names of all objects, in the order of the text. */
function* namesIn(text: string): Generator<NameIn> {
  for (let start = text.indexOf('"'); start >= 0; ) {
    let end = text.indexOf('"', start + 1)
    while (isEscapedQuote(text, start, end)) end = text.indexOf('"', end + 1)
    let next = end + 1
    while (next < text.length && BLANKS.includes(text.charAt(next))) next++
    if (text.charAt(next) === ':') {
      const backslash = text.indexOf('\\', start)
      yield { start, end, isEscaped: backslash >= 0 && backslash < end }
    }
    start = text.indexOf('"', next)
  }
}

function isEscapedQuote(text: string, start: number, quote: number): boolean {
  let backslashes = 0
  while (quote - 1 - backslashes > start && text.charAt(quote - 1 - backslashes) === '\\') backslashes++
  return backslashes % 2 === 1
}

/** A name of letters that is written with escapes. */
const WORD = /^\w+$/

function namesTwice(text: string): readonly string[] {
  const twice = new Set<string>()
  const open: Set<string>[] = []
  let from = 0
  for (const { start, end, isEscaped } of namesIn(text)) {
    walkBrackets(text, from, start, open)
    from = end + 1
    const written = text.slice(start, end + 1)
    const name = JSON.parse(written) as string
    const names = open.at(-1)
    if (names?.has(name) === true || (isEscaped && WORD.test(name))) twice.add(name)
    names?.add(name)
  }
  return [...twice]
}

/** Opens and closes the objects between two names. Strings in between are values. */
function walkBrackets(text: string, from: number, to: number, open: Set<string>[]): void {
  for (let i = from; i < to; i++) {
    const character = text.charAt(i)
    if (character === '{') open.push(new Set())
    else if (character === '}') open.pop()
    else if (character === '"') {
      const start = i
      i = text.indexOf('"', i + 1)
      while (isEscapedQuote(text, start, i)) i = text.indexOf('"', i + 1)
    }
  }
}
