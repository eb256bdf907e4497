/** A value, and the names that some object in its text has twice or spells with needless escapes. */
export interface ParsedSlice {
  readonly value: unknown
  readonly twice: readonly string[]
  /** Characters that were searched, for tests: at most a constant times the length of the text. */
  readonly work: number
}

const NONE: readonly string[] = []
const BLANKS = ' \t\r\n'
/** A name of letters and digits, which no encoder writes with escapes. */
const WORD = /^\w+$/

/**
 * Parses a small JSON text and lists the names given twice, since JSON.parse silently takes the last one. The text must
 * be valid.
 *
 * Words with escapes count as given twice: V8 (13.6) takes the second name of `{"\"":0,"\"":0}` for another one, once it
 * has seen `{"\"":0,"\\":0}`, so that `"\u006dodel"` can hide from JSON.parse.
 */
export function parseSlice(text: string): ParsedSlice {
  const value: unknown = JSON.parse(text)
  const work = { searched: 0 }
  const twice = oddNames(text, value, work)
  return { value, twice, work: text.length + work.searched }
}

/** Counts the characters that were searched. */
interface Work {
  searched: number
}

/** The names given twice in one object, and words with escapes. `value` is the text as JSON.parse gives it. */
export function oddNames(text: string, value: unknown, work: Work = { searched: 0 }): readonly string[] {
  if (typeof value !== 'object' || value === null) return NONE
  const names = new NamesIn(text, work)
  let count = 0
  for (; names.next(); count++) if (names.isEscaped) return namesTwice(text, true, work)
  // Each name that is not given twice is one key of the value.
  return count === countKeys(value) ? NONE : namesTwice(text, true, work)
}

/** The names that one object has twice, escapes decoded, in a valid JSON text. */
export function namesTwice(
  text: string,
  withEscapedWords = false,
  work: Work = { searched: 0 },
): readonly string[] {
  const twice = new Set<string>()
  const open: Set<string>[] = []
  let from = 0
  for (const names = new NamesIn(text, work); names.next(); from = names.end + 1) {
    work.searched += names.end - from
    walkBrackets(text, from, names.start, open)
    const name = JSON.parse(text.slice(names.start, names.end + 1)) as string
    const seen = open.at(-1)
    if (seen?.has(name) === true || (withEscapedWords && names.isEscaped && WORD.test(name))) twice.add(name)
    seen?.add(name)
  }
  return [...twice]
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
  const open: object[] = [value]
  for (let object = open.pop(); object !== undefined; object = open.pop()) {
    const isList = Array.isArray(object)
    for (const name in object) {
      if (!isList) keys++
      const inner = (object as Readonly<Record<string, unknown>>)[name]
      if (typeof inner === 'object' && inner !== null) open.push(inner)
    }
  }
  return keys
}

/** Steps through the names of all objects, in the order of the text. Each byte is searched a constant number of times. */
class NamesIn {
  readonly #text: string
  /** The offsets of the current name's quotes. */
  start = 0
  end = -1
  isEscaped = false
  #backslash = 0
  readonly #work: Work

  constructor(text: string, work: Work) {
    this.#text = text
    this.#work = work
    this.#findBackslash()
  }

  next(): boolean {
    const text = this.#text
    for (let start = text.indexOf('"', this.end + 1); start >= 0; start = text.indexOf('"', this.end + 1)) {
      const before = this.end
      this.start = start
      this.end = endOfString(text, start)
      this.#work.searched += this.end - before
      let colon = this.end + 1
      while (colon < text.length && BLANKS.includes(text.charAt(colon))) colon++
      if (text.charAt(colon) !== ':') continue
      if (this.#backslash < start) this.#findBackslash()
      this.isEscaped = this.#backslash < this.end
      return true
    }
    return false
  }

  #findBackslash(): void {
    const found = this.#text.indexOf('\\', this.start)
    this.#backslash = found < 0 ? this.#text.length : found
    this.#work.searched += this.#backslash - this.start
  }
}

/** The closing quote of the string that opens at `start`. */
function endOfString(text: string, start: number): number {
  for (let quote = text.indexOf('"', start + 1); ; quote = text.indexOf('"', quote + 1)) {
    let before = quote - 1
    while (before > start && text.charAt(before) === '\\') before--
    if ((quote - before) % 2 === 1) return quote
  }
}

/** Opens and closes the objects between two names. Strings in between are values. */
function walkBrackets(text: string, from: number, to: number, open: Set<string>[]): void {
  for (let i = from; i < to; i++) {
    const character = text.charAt(i)
    if (character === '{') open.push(new Set())
    else if (character === '}') open.pop()
    else if (character === '"') i = endOfString(text, i)
  }
}
