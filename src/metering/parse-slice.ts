/** A value, and the names that an object in it has twice or writes with needless escapes. */
export interface ParsedSlice {
  readonly value: unknown
  readonly twice: readonly string[]
  /** Characters searched, for tests: at most a constant times the length. */
  readonly work: number
}

const NONE: readonly string[] = []
const BLANKS = ' \t\r\n'
/** A name of letters and digits, which no encoder escapes. */
const WORD = /^\w+$/

/**
 * Parses a small valid JSON text and lists names given twice, since JSON.parse silently uses the last one.
 *
 * Escaped words count as given twice: after parsing `{"\"":0,"\\":0}`, V8 (13.6) misreads the second name of
 * `{"\"":0,"\"":0}`, so `"\u006dodel"` can hide from JSON.parse.
 */
export function parseSlice(text: string): ParsedSlice {
  const value: unknown = JSON.parse(text)
  const work = { searched: 0 }
  const twice = oddNames(text, value, work)
  return { value, twice, work: text.length + work.searched }
}

interface Work {
  searched: number
}

/** The names given twice in one object, and escaped words. `value` is the result of JSON.parse. */
export function oddNames(text: string, value: unknown, work: Work = { searched: 0 }): readonly string[] {
  if (typeof value !== 'object' || value === null) return NONE
  const names = new NamesIn(text, work)
  let count = 0
  for (; names.next(); count++) if (names.isEscaped) return namesTwice(text, true, work)
  // If no name is given twice, each name is one key of the value.
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

/** Few strings have escapes. Null for a string with a control character. */
export function parseString(text: string): string | null {
  if (!text.includes('\\')) return text.slice(1, -1)
  try {
    return JSON.parse(text) as string
  } catch {
    return null
  }
}

function countKeys(value: object): number {
  const inner: readonly unknown[] = Object.values(value)
  let keys = Array.isArray(value) ? 0 : inner.length
  for (const one of inner) if (typeof one === 'object' && one !== null) keys += countKeys(one)
  return keys
}

const [QUOTE, BACKSLASH, COLON] = [0x22, 0x5c, 0x3a]

/** Iterates over the names of all objects in text order. Reads each character once. */
class NamesIn {
  readonly #text: string
  start = 0
  end = -1
  isEscaped = false
  readonly #work: Work

  constructor(text: string, work: Work) {
    this.#text = text
    this.#work = work
  }

  /** Loops over characters: a native search per quote takes three times as long. */
  next(): boolean {
    const text = this.#text
    const before = this.end
    for (let i = before + 1; i < text.length; i++) {
      if (text.charCodeAt(i) !== QUOTE) continue
      const start = i
      let isEscaped = false
      for (let code = text.charCodeAt(++i); code !== QUOTE; code = text.charCodeAt(++i)) {
        if (code !== BACKSLASH) continue
        isEscaped = true
        i++
      }
      let colon = i + 1
      while (BLANKS.includes(text.charAt(colon)) && colon < text.length) colon++
      if (text.charCodeAt(colon) !== COLON) continue
      this.start = start
      this.end = i
      this.isEscaped = isEscaped
      this.#work.searched += i - before
      return true
    }
    this.#work.searched += text.length - before
    return false
  }
}

/** Opens and closes the objects between two names. Strings in between are values. */
function walkBrackets(text: string, from: number, to: number, open: Set<string>[]): void {
  for (let i = from; i < to; i++) {
    const code = text.charCodeAt(i)
    if (code === 0x7b) open.push(new Set())
    else if (code === 0x7d) open.pop()
    else if (code === QUOTE) while (text.charCodeAt(++i) !== QUOTE) if (text.charCodeAt(i) === BACKSLASH) i++
  }
}
