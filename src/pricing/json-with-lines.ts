export type JsonRead =
  | { readonly kind: 'json'; readonly value: unknown; readonly lineOf: (path: JsonPath) => number }
  | { readonly kind: 'bad'; readonly line: number; readonly message: string }

export type JsonPath = readonly PropertyKey[]

const DEPTH_MAX = 32
/** LiteLLM's whole catalog is 1.7 MB. */
export const JSON_CHARS_MAX = 16 * 1024 * 1024

/**
 * Reads JSON and remembers the line of every value, because a price file is written by hand and a refusal must
 * point at the line. JSON.parse gives no positions and takes the last of two equal members without a word; a price
 * stated twice has to be a mistake.
 */
export function readJsonWithLines(given: string): JsonRead {
  if (given.length > JSON_CHARS_MAX)
    return { kind: 'bad', line: 1, message: 'the file is larger than 16 MiB' }
  // A byte order mark means nothing; some editors put it first.
  const text = given.startsWith('\u{feff}') ? given.slice(1) : given
  try {
    const root = new LineReader(text).document()
    return { kind: 'json', value: JSON.parse(text), lineOf: (path) => lineAt(root, path) }
  } catch (error) {
    if (!(error instanceof BadJson)) throw error
    return { kind: 'bad', line: error.line, message: error.message }
  }
}

/** The line of a value, and the lines of its members or elements by name or index. */
interface Lines {
  readonly line: number
  readonly inner: ReadonlyMap<string, Lines>
}

/** The line of the path, or of its deepest part that exists: a missing member is reported where its owner begins. */
function lineAt(root: Lines, path: JsonPath): number {
  let lines = root
  for (const step of path) {
    const next = lines.inner.get(String(step))
    if (next === undefined) break
    lines = next
  }
  return lines.line
}

class BadJson extends Error {
  readonly line: number
  constructor(line: number, message: string) {
    super(message)
    this.line = line
  }
}

const TOKEN =
  /[{}[\],:]|"[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\u0000-\u001f]*)*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y

const NOTHING_INSIDE: ReadonlyMap<string, Lines> = new Map()

/** Walks through the tokens of a document. A document that it walks through to the end is one that JSON.parse takes. */
class LineReader {
  readonly #text: string
  #at = 0
  /** The line of the last token. */
  #line = 1

  constructor(text: string) {
    this.#text = text
  }

  document(): Lines {
    const lines = this.#value(0)
    if (this.#next() !== '') this.#fail('there is more after the end of the document')
    return lines
  }

  #fail(message: string): never {
    throw new BadJson(this.#line, message)
  }

  /** The next token, or nothing at the end. */
  #next(): string {
    for (; /[ \t\r\n]/.test(this.#text.charAt(this.#at)); this.#at++)
      if (this.#text[this.#at] === '\n') this.#line++
    if (this.#at === this.#text.length) return ''
    TOKEN.lastIndex = this.#at
    const [token] = TOKEN.exec(this.#text) ?? []
    if (token === undefined) {
      const isString = this.#text[this.#at] === '"'
      const string = 'this string does not end on its line, or holds a bad escape'
      return this.#fail(isString ? string : 'this is not a JSON value')
    }
    this.#at = TOKEN.lastIndex
    return token
  }

  #value(depth: number, token = this.#next()): Lines {
    const line = this.#line
    if (depth > DEPTH_MAX) this.#fail(`the document is nested deeper than ${DEPTH_MAX} levels`)
    switch (token) {
      case '{':
        return { line, inner: this.#members(depth) }
      case '[':
        return { line, inner: this.#elements(depth) }
      case '':
        return this.#fail('the document ends too early')
      default:
        if (/^[}\],:]/.test(token)) this.#fail('this is not a JSON value')
        return { line, inner: NOTHING_INSIDE }
    }
  }

  #members(depth: number): Map<string, Lines> {
    const inner = new Map<string, Lines>()
    let token = this.#next()
    if (token === '}') return inner
    for (;;) {
      if (!token.startsWith('"')) this.#fail('a member name in double quotes is missing here')
      const key = JSON.parse(token) as string
      const line = this.#line
      if (inner.has(key)) this.#fail(`the member "${key}" is given twice`)
      if (this.#next() !== ':') this.#fail(`a colon is missing after "${key}"`)
      inner.set(key, { line, inner: this.#value(depth + 1).inner })
      token = this.#next()
      if (token === '}') return inner
      if (token !== ',') this.#fail('a comma or a closing brace is missing here')
      token = this.#next()
    }
  }

  #elements(depth: number): Map<string, Lines> {
    const inner = new Map<string, Lines>()
    let token = this.#next()
    if (token === ']') return inner
    for (;;) {
      inner.set(String(inner.size), this.#value(depth + 1, token))
      token = this.#next()
      if (token === ']') return inner
      if (token !== ',') this.#fail('a comma or a closing bracket is missing here')
      token = this.#next()
    }
  }
}
