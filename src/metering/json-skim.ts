import { JsonSelection } from './json-selection.ts'
import { type Shape, SKIM_LIMITS, type Skimmed, type SkimOptions, type UnreadableJson } from './json-shape.ts'
import { endOfShort, JsonString, QUOTE, Utf8Check } from './json-string.ts'
import {
  BLANKS,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  LITERAL_ENDS,
  LITERAL_STATES,
  MARK_START,
  OPEN_BRACE,
  OPEN_BRACKET,
  parseString,
  TextPart,
} from './json-tokens.ts'
import { MARK_BYTES_MAX, type MarkTable, NO_MARKS } from './mark-table.ts'

const [BEFORE_VALUE, BEFORE_ELEMENT, BEFORE_FIRST_NAME, BEFORE_NAME, BEFORE_COLON, AFTER_VALUE] = [
  0, 1, 2, 3, 4, 5,
]
const [AFTER_ROOT, IN_NAME, IN_STRING, IN_LITERAL] = [6, 7, 8, 9]

const DENSE_BYTES_PER_TOKEN = 8
const NOTHING = Buffer.alloc(0)

/**
 * Reads a JSON text that arrives in pieces, in one pass and constant memory. A `Shape` says which members to read; the
 * grammar of everything else is checked, and its content skipped.
 *
 *   const skim = new JsonSkim(objectShape({ model: VALUE, input: eachShape(objectShape({ type: SCALAR })) }), { onElement })
 *   skim.write(chunk) …
 *   const skimmed = skim.end()     // { value: { model: 'm', input: UNREAD }, spans, duplicates, marks, … }
 *
 * - `VALUE`: copied and parsed with JSON.parse. All values of a text together may have `copiedBytesMax` bytes; further
 *   ones are UNREAD.
 * - `SCALAR`: a short string, a number, a boolean or null. Every other value is UNREAD, and takes no memory.
 * - `SIZE`: like SCALAR, but every other value is a `Sized` with its length.
 * - `objectShape`: the members of an object. A value of another type is read like SCALAR.
 * - `eachShape`: an array whose elements are passed to `onElement` one by one and not stored. The array itself is UNREAD.
 * - `listShape`: an array whose elements are stored, at most `listedMax` per text.
 *
 * Accepts what RFC 8259 and JSON.parse accept, in UTF-8, if the outermost value is a container of the shape. Texts on
 * which parsers disagree are refused: see UnreadableJson. One exception: control characters in skipped strings are not
 * detected (json-string.ts says why that is safe). The result does not depend on how the text was split. Work per byte
 * is bounded by a constant (`work` counts it).
 */
export class JsonSkim {
  readonly #selection: JsonSelection
  readonly #marks: MarkTable
  readonly #depthMax: number
  #utf8 = new Utf8Check()
  readonly #string = new JsonString()
  /** The current string, if it cannot be recognised as a mark in one step. */
  readonly #mark = new TextPart()
  #stack = new Uint8Array(64)
  #depth = 0
  #state = BEFORE_VALUE
  #literalState = 0
  #offset = 0
  #failure: UnreadableJson | null = null
  #steps = 0
  /** The number of brackets, separators, names and values read so far. */
  tokens = 0

  constructor(shape: Shape, options: SkimOptions = {}) {
    this.#selection = new JsonSelection(shape, options.onElement ?? null)
    this.#marks = options.marks ?? NO_MARKS
    this.#depthMax = options.depthMax ?? SKIM_LIMITS.depthMax
  }

  get failed(): boolean {
    return this.#failure !== null
  }

  /** The number of steps, and of bytes copied or searched. Tests check that it grows only linearly. */
  get work(): number {
    return this.#steps + this.#string.work + this.#selection.work
  }

  /** Returns whether the text so far is dense, so that reading it takes long: other JSON is mostly text and base64. */
  write(chunk: Buffer): boolean {
    if (this.#failure !== null || chunk.length === 0) return false
    if (!this.#utf8.accepts(chunk)) this.#fail('not_utf8')
    this.#string.enterChunk()
    this.#scan(chunk)
    this.#mark.endChunk(chunk, this.#offset)
    this.#selection.endChunk(chunk, this.#offset)
    this.#offset += chunk.length
    return this.tokens * DENSE_BYTES_PER_TOKEN > this.#offset
  }

  end(): Skimmed {
    if (this.#state === BEFORE_VALUE && this.#depth === 0) this.#fail('empty')
    if (this.#utf8.isOpen) this.#fail('not_utf8')
    if (this.#state !== AFTER_ROOT) this.#fail('truncated')
    if (this.#failure !== null) return { kind: 'unreadable', reason: this.#failure }
    return this.#selection.end(this.#offset)
  }

  /** Ends a text that was cut off: closes what is open. A value that is cut is not read, but the size of a string counts. */
  endCut(): Skimmed {
    if (this.#failure !== null || this.#depth === 0) return this.end()
    this.#utf8 = new Utf8Check()
    this.#selection.dropValue()
    // The size of a string includes a closing quote.
    if (this.#state === IN_STRING) this.#endValue(NOTHING, 1)
    if (this.#state === IN_LITERAL) this.#endValue(NOTHING, 0)
    while (this.#depth > 0) this.#close(NOTHING, -1)
    return this.end()
  }

  #scan(bytes: Buffer): void {
    let i = 0
    while (i < bytes.length && this.#failure === null) {
      this.#steps++
      if (this.#state === IN_LITERAL) i = this.#readLiteral(bytes, i)
      else if (this.#state >= IN_NAME) i = this.#readString(bytes, i)
      else if (BLANKS[bytes[i] as number] === 1) i++
      else i = this.#token(bytes, i)
    }
  }

  /** Reads a token. Like the other methods, returns the offset of the next byte to read. */
  #token(bytes: Buffer, i: number): number {
    const byte = bytes[i] as number
    this.tokens++
    switch (this.#state) {
      case BEFORE_ELEMENT:
        return byte === CLOSE_BRACKET ? this.#close(bytes, i) : this.#startValue(bytes, i, byte)
      case BEFORE_VALUE:
        return this.#startValue(bytes, i, byte)
      case BEFORE_FIRST_NAME:
        if (byte === CLOSE_BRACE) return this.#close(bytes, i)
        return byte === QUOTE ? this.#startString(bytes, i, true) : this.#fail('not_json')
      case BEFORE_NAME:
        return byte === QUOTE ? this.#startString(bytes, i, true) : this.#fail('not_json')
      case BEFORE_COLON:
        if (byte !== COLON) return this.#fail('not_json')
        this.#state = BEFORE_VALUE
        return i + 1
      case AFTER_VALUE: {
        const inObject = this.#stack[this.#depth - 1] === 1
        if (byte === (inObject ? CLOSE_BRACE : CLOSE_BRACKET)) return this.#close(bytes, i)
        if (byte !== COMMA) return this.#fail('not_json')
        this.#state = inObject ? BEFORE_NAME : BEFORE_VALUE
        return i + 1
      }
      default:
        return this.#fail('trailing_bytes')
    }
  }

  #startValue(bytes: Buffer, i: number, byte: number): number {
    const isInShape = this.#depth === this.#selection.level
    if (isInShape) this.#selection.openValue(this.#offset + i, byte)
    switch (byte) {
      case QUOTE:
        if (this.#depth > 0) return this.#startString(bytes, i, false)
        break
      case OPEN_BRACE:
      case OPEN_BRACKET:
        return this.#open(i, byte === OPEN_BRACE, isInShape)
      default:
        this.#literalState = LITERAL_STATES[byte] as number
        if (this.#literalState === 0) {
          const isMark = byte === MARK_START && this.#offset + i === 0
          return this.#fail(isMark ? 'byte_order_mark' : 'not_json')
        }
        this.#state = IN_LITERAL
    }
    return this.#depth === 0 ? this.#fail('not_an_object') : i + 1
  }

  #open(i: number, isObject: boolean, isInShape: boolean): number {
    if (this.#depth === this.#depthMax) return this.#fail('too_deep')
    if (this.#depth === this.#stack.length) this.#growStack()
    const isRead = isInShape && this.#selection.open(isObject)
    if (this.#depth === 0 && !isRead) return this.#fail('not_an_object')
    this.#stack[this.#depth] = isObject ? 1 : 0
    this.#depth++
    this.#state = isObject ? BEFORE_FIRST_NAME : BEFORE_ELEMENT
    return i + 1
  }

  #growStack(): void {
    const grown = new Uint8Array(this.#stack.length * 2)
    grown.set(this.#stack)
    this.#stack = grown
  }

  #close(bytes: Buffer, i: number): number {
    const isRead = this.#depth === this.#selection.level
    this.#depth--
    if (isRead) {
      this.#state = this.#depth === 0 ? AFTER_ROOT : AFTER_VALUE
      this.#selection.close(this.#offset + i + 1)
    } else this.#endValue(bytes, i + 1)
    return i + 1
  }

  #endValue(bytes: Buffer, i: number): void {
    this.#state = AFTER_VALUE
    if (this.#depth === this.#selection.level) this.#selection.endValue(bytes, this.#offset, i)
  }

  /** Reads a string whose opening quote is at `i`. Nearly all are short and complete in the chunk. */
  #startString(bytes: Buffer, i: number, isName: boolean): number {
    const isRead = isName && this.#depth === this.#selection.level
    const stop = endOfShort(bytes, i)
    if (stop >= 0) {
      this.#steps += stop - i
      if (isRead) this.#selection.beginName()
      this.#selection.marks |= this.#marks.markOf(bytes, i + 1, stop)
      if (!isName) this.#endValue(bytes, stop + 1)
      else if (isRead) this.#endName(bytes, i + 1, stop)
      else this.#state = BEFORE_COLON
      return stop + 1
    }
    this.#mark.open(this.#offset + i, MARK_BYTES_MAX + 2)
    if (isRead) this.#selection.openName(this.#offset + i + 1)
    this.#string.open(isRead || this.#selection.copies)
    this.#state = isName ? IN_NAME : IN_STRING
    return i + 1
  }

  #readString(bytes: Buffer, i: number): number {
    const at = this.#string.read(bytes, i)
    if (at < 0) return this.#fail('not_json')
    if (at === bytes.length) return at
    const isRead = this.#state === IN_NAME && this.#depth === this.#selection.level
    if (isRead) this.#selection.beginName()
    const written = this.#mark.take(bytes, this.#offset, at + 1)
    if (written !== null) this.#selection.marks |= this.#markIn(written)
    if (this.#state === IN_STRING) {
      this.#endValue(bytes, at + 1)
      return at + 1
    }
    this.#state = BEFORE_COLON
    if (!isRead) return at + 1
    const name = this.#selection.takeName(bytes, this.#offset, at)
    if (name === null) return this.#fail('name_too_long')
    this.#endName(name, 0, name.length)
    return at + 1
  }

  /** The mark of a quoted string, with escapes decoded. */
  #markIn(written: Buffer): number {
    const bytes = Buffer.from(parseString(written.toString()) ?? '')
    return this.#marks.markOf(bytes, 0, bytes.length)
  }

  #endName(bytes: Buffer, from: number, to: number): void {
    this.#state = BEFORE_COLON
    this.#steps += to - from
    if (!this.#selection.endName(bytes, from, to)) this.#fail('ambiguous_name')
  }

  #readLiteral(bytes: Buffer, from: number): number {
    for (let i = from; i < bytes.length; i++) {
      const next = LITERAL_STATES[(this.#literalState << 8) | (bytes[i] as number)] as number
      if (next === 0) return this.#fail('not_json')
      if (next === LITERAL_ENDS) {
        this.#endValue(bytes, i)
        return i
      }
      this.#literalState = next
      this.#steps++
    }
    return bytes.length
  }

  /** Records the failure, and returns an offset that ends the scan. */
  #fail(reason: UnreadableJson): number {
    this.#failure ??= reason
    this.#selection.drop()
    this.#mark.drop()
    return 0
  }
}

export function skimWhole(text: Buffer, shape: Shape, depthMax?: number): Skimmed {
  const skim = new JsonSkim(shape, { depthMax })
  skim.write(text)
  return skim.end()
}
