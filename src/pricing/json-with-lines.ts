/**
 * Reads JSON and remembers the line of every value, because a price file is written by hand and a refusal must
 * point at the line. JSON.parse gives no positions and takes the last of two equal members without a word; a price
 * stated twice has to be a mistake.
 */
export type JsonRead =
  | { readonly kind: 'json'; readonly value: unknown; readonly lineOf: (path: JsonPath) => number }
  | { readonly kind: 'bad'; readonly line: number; readonly message: string }

export type JsonPath = readonly PropertyKey[]

interface Place {
  readonly line: number
  readonly inner: ReadonlyMap<string, Place>
}

const DEPTH_MAX = 32
/** LiteLLM's whole catalog is 1.7 MB. */
export const JSON_CHARS_MAX = 16 * 1024 * 1024

class BadJson extends Error {
  readonly at: number
  constructor(at: number, message: string) {
    super(message)
    this.at = at
  }
}

export function readJsonWithLines(text: string): JsonRead {
  if (text.length > JSON_CHARS_MAX) return { kind: 'bad', line: 1, message: 'the file is larger than 16 MiB' }
  // A byte order mark is what some editors put first; it means nothing.
  const reader = new Reader(text.startsWith('\u{feff}') ? text.slice(1) : text)
  try {
    const { value, place } = reader.document()
    return { kind: 'json', value, lineOf: (path) => lineAt(place, path) }
  } catch (error) {
    if (!(error instanceof BadJson)) throw error
    return { kind: 'bad', line: reader.lineAt(error.at), message: error.message }
  }
}

/** The line of the path, or of its deepest part that exists: a missing member is reported where its owner begins. */
function lineAt(root: Place, path: JsonPath): number {
  let place = root
  for (const step of path) {
    const next = place.inner.get(String(step))
    if (next === undefined) break
    place = next
  }
  return place.line
}

const NO_PLACES: ReadonlyMap<string, Place> = new Map()
const LITERALS: Readonly<Record<string, unknown>> = { true: true, false: false, null: null }

interface Found {
  readonly value: unknown
  readonly place: Place
}

class Reader {
  readonly #text: string
  #at = 0
  #line = 1

  constructor(text: string) {
    this.#text = text
  }

  document(): Found {
    const found = this.#value(0)
    this.#blanks()
    if (this.#at < this.#text.length) this.#fail('there is more after the end of the document')
    return found
  }

  lineAt(offset: number): number {
    let line = 1
    for (let at = this.#text.indexOf('\n'); at !== -1 && at < offset; at = this.#text.indexOf('\n', at + 1))
      line++
    return line
  }

  #fail(message: string, at = this.#at): never {
    throw new BadJson(at, message)
  }

  #blanks(): void {
    for (;;) {
      const char = this.#text[this.#at]
      if (char === '\n') this.#line++
      else if (char !== ' ' && char !== '\t' && char !== '\r') return
      this.#at++
    }
  }

  #value(depth: number): Found {
    if (depth > DEPTH_MAX) this.#fail(`the document is nested deeper than ${DEPTH_MAX} levels`)
    this.#blanks()
    const line = this.#line
    switch (this.#text[this.#at]) {
      case '{':
        return this.#object(line, depth)
      case '[':
        return this.#array(line, depth)
      case '"':
        return { value: this.#string(), place: { line, inner: NO_PLACES } }
      case undefined:
        return this.#fail('the document ends too early')
      default:
        return { value: this.#scalar(), place: { line, inner: NO_PLACES } }
    }
  }

  #object(line: number, depth: number): Found {
    // Without a prototype, so that a member called __proto__ is a member like any other.
    const value: Record<string, unknown> = Object.create(null) as Record<string, unknown>
    const inner = new Map<string, Place>()
    this.#at++
    this.#blanks()
    if (this.#take('}')) return { value, place: { line, inner } }
    for (;;) {
      this.#blanks()
      const keyAt = this.#at
      const keyLine = this.#line
      if (this.#text[this.#at] !== '"') this.#fail('a member name in double quotes is missing here')
      const key = this.#string()
      if (inner.has(key)) this.#fail(`the member "${key}" is given twice`, keyAt)
      this.#blanks()
      if (!this.#take(':')) this.#fail(`a colon is missing after "${key}"`)
      const found = this.#value(depth + 1)
      value[key] = found.value
      inner.set(key, { line: keyLine, inner: found.place.inner })
      this.#blanks()
      if (this.#take('}')) return { value, place: { line, inner } }
      if (!this.#take(',')) this.#fail('a comma or a closing brace is missing here')
    }
  }

  #array(line: number, depth: number): Found {
    const value: unknown[] = []
    const inner = new Map<string, Place>()
    this.#at++
    this.#blanks()
    if (this.#take(']')) return { value, place: { line, inner } }
    for (;;) {
      const found = this.#value(depth + 1)
      inner.set(String(value.length), found.place)
      value.push(found.value)
      this.#blanks()
      if (this.#take(']')) return { value, place: { line, inner } }
      if (!this.#take(',')) this.#fail('a comma or a closing bracket is missing here')
    }
  }

  #string(): string {
    const start = this.#at
    const pattern = /"[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\u0000-\u001f]*)*"/y
    pattern.lastIndex = start
    const match = pattern.exec(this.#text)
    if (match === null) return this.#fail('this string does not end on its line, or holds a bad escape')
    this.#at = pattern.lastIndex
    return JSON.parse(match[0]) as string
  }

  #scalar(): unknown {
    const pattern = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y
    pattern.lastIndex = this.#at
    const match = pattern.exec(this.#text)
    if (match === null) return this.#fail('this is not a JSON value')
    this.#at = pattern.lastIndex
    return match[0] in LITERALS ? LITERALS[match[0]] : Number(match[0])
  }

  #take(char: string): boolean {
    if (this.#text[this.#at] !== char) return false
    this.#at++
    return true
  }
}
