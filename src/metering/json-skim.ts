import {
  AMBIGUOUS,
  type Frame,
  type JsonObject,
  openFrame,
  type Shape,
  Sized,
  SKIM_LIMITS,
  type Skimmed,
  type SkimmedElement,
  type Span,
  UNDECODED,
  UNREAD,
  type UnreadableJson,
} from './json-shape.ts'
import { endOfShort, JsonString, QUOTE, Utf8Check } from './json-string.ts'
import {
  ambiguousNames,
  BLANKS,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  LETTER_N,
  LITERAL_ENDS,
  LITERAL_STATES,
  MARK_BYTES_MAX,
  MARK_START,
  markOf,
  OPEN_BRACE,
  OPEN_BRACKET,
  parseString,
  TextPart,
} from './json-tokens.ts'

const [BEFORE_VALUE, BEFORE_ELEMENT, BEFORE_FIRST_NAME, BEFORE_NAME, BEFORE_COLON, AFTER_VALUE] = [
  0, 1, 2, 3, 4, 5,
]
const [AFTER_ROOT, IN_NAME, IN_STRING, IN_LITERAL] = [6, 7, 8, 9]

const DENSE_BYTES_PER_TOKEN = 8

/**
 * Reads a JSON text that arrives in pieces, in one pass and constant memory. A `Shape` says which members to read; the
 * grammar of everything else is checked, and its content skipped.
 *
 *   const skim = new JsonSkim(objectShape({ model: VALUE, input: eachShape(objectShape({ type: SCALAR })) }), onItem)
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
  readonly #root: Shape
  readonly #onElement: ((element: SkimmedElement) => void) | null
  readonly #depthMax: number
  readonly #utf8 = new Utf8Check()
  readonly #string = new JsonString()
  #stack = new Uint8Array(64)
  #depth = 0
  #state = BEFORE_VALUE
  #offset = 0
  #frame: Frame | null = null
  /** The number of open frames, and the depth of values in the innermost frame. */
  #level = 0

  #shape: Shape | null = null
  #valueStart = 0
  #firstByte = 0
  #marksBefore = 0
  /** The current name or value if it is read, and the total size of all read values. */
  readonly #captured = new TextPart()
  #copiedBytes = 0

  #literalState = 0
  /** The current string, if it cannot be recognised as a mark in one step. */
  readonly #mark = new TextPart()

  #marks = 0
  #value: JsonObject = {}
  readonly #spans = new Map<string, Span>()
  readonly #duplicates = new Set<string>()
  readonly #nestedDuplicates = new Set<string>()
  #listed = 0
  #undecodedNames = 0
  #rootEnd = 0
  #failure: UnreadableJson | null = null
  #steps = 0
  /** The number of brackets, separators, names and values read so far. */
  tokens = 0

  constructor(
    shape: Shape,
    onElement: ((element: SkimmedElement) => void) | null = null,
    depthMax: number = SKIM_LIMITS.depthMax,
  ) {
    this.#root = shape
    this.#onElement = onElement
    this.#depthMax = depthMax
  }

  get failed(): boolean {
    return this.#failure !== null
  }

  /** The number of steps, and of bytes copied or searched. Tests check that it grows only linearly. */
  get work(): number {
    return this.#steps + this.#string.work
  }

  /** Returns whether the text so far is dense, so that reading it takes long: other JSON is mostly text and base64. */
  write(chunk: Buffer): boolean {
    if (this.#failure !== null || chunk.length === 0) return false
    if (!this.#utf8.accepts(chunk)) this.#fail('not_utf8')
    this.#string.enterChunk()
    this.#scan(chunk)
    this.#mark.endChunk(chunk, this.#offset)
    this.#captured.endChunk(chunk, this.#offset)
    this.#offset += chunk.length
    return this.tokens * DENSE_BYTES_PER_TOKEN > this.#offset
  }

  end(): Skimmed {
    if (this.#state === BEFORE_VALUE && this.#depth === 0) this.#fail('empty')
    if (this.#utf8.isOpen) this.#fail('not_utf8')
    if (this.#state !== AFTER_ROOT) this.#fail('truncated')
    if (this.#failure !== null) return { kind: 'unreadable', reason: this.#failure }
    return {
      kind: 'object',
      value: this.#value,
      spans: this.#spans,
      duplicates: [...this.#duplicates],
      nestedDuplicates: [...this.#nestedDuplicates],
      marks: this.#marks,
      bytes: this.#offset,
      overflow: this.#listed > SKIM_LIMITS.listedMax,
      objectEnd: this.#rootEnd,
    }
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
    const isInShape = this.#depth === this.#level
    if (isInShape) this.#openValue(i, byte)
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

  #openValue(i: number, byte: number): void {
    const frame = this.#frame
    this.#firstByte = byte
    this.#valueStart = this.#offset + i
    if (frame === null) this.#shape = this.#root
    else if (frame.object === null) {
      this.#shape = frame.shape.each
      frame.elementStart = this.#valueStart
      frame.marksBefore = this.#marks
      frame.copiedBytesBefore = this.#copiedBytes
      this.#marks = 0
    } else this.#shape = frame.member === null ? null : frame.member.shape
    const shape = this.#shape
    if (shape === null) return
    if (shape.kind === 'value')
      this.#captured.open(this.#valueStart, SKIM_LIMITS.copiedBytesMax - this.#copiedBytes)
    else if (byte !== OPEN_BRACE && byte !== OPEN_BRACKET)
      this.#captured.open(this.#valueStart, SKIM_LIMITS.scalarBytesMax)
  }

  #open(i: number, isObject: boolean, isInShape: boolean): number {
    if (this.#depth === this.#depthMax) return this.#fail('too_deep')
    if (this.#depth === this.#stack.length) this.#growStack()
    const shape = isInShape ? this.#shape : null
    const kind = isObject ? 'object' : 'array'
    if (this.#depth === 0 && shape?.kind !== kind) return this.#fail('not_an_object')
    this.#stack[this.#depth] = isObject ? 1 : 0
    this.#depth++
    this.#state = isObject ? BEFORE_FIRST_NAME : BEFORE_ELEMENT
    if (shape?.kind !== kind) return i + 1
    this.#level++
    this.#frame = openFrame(this.#frame, shape, this.#valueStart)
    return i + 1
  }

  #growStack(): void {
    const grown = new Uint8Array(this.#stack.length * 2)
    grown.set(this.#stack)
    this.#stack = grown
  }

  #close(bytes: Buffer, i: number): number {
    const closed = this.#depth === this.#level ? this.#frame : null
    this.#depth--
    if (closed === null) {
      this.#endValue(bytes, i + 1)
      return i + 1
    }
    this.#level--
    this.#frame = closed.outer
    this.#state = this.#depth === 0 ? AFTER_ROOT : AFTER_VALUE
    if (closed.outer === null) {
      this.#value = closed.object ?? {}
      this.#rootEnd = this.#offset + i
    } else this.#put(closed.outer, closed.object ?? closed.list ?? UNREAD, closed.start, this.#offset + i + 1)
    return i + 1
  }

  #endValue(bytes: Buffer, i: number): void {
    this.#state = AFTER_VALUE
    const frame = this.#frame
    if (this.#depth !== this.#level || frame === null) return
    const shape = this.#shape
    if (shape === null) return
    if (shape.unmarked) this.#marks = this.#marksBefore
    this.#put(frame, this.#readValue(bytes, i), this.#valueStart, this.#offset + i)
  }

  #readValue(chunk: Buffer, i: number): unknown {
    const text = this.#captured.text(chunk, this.#offset, i)
    if (this.#firstByte === LETTER_N) return null
    const bytes = this.#offset + i - this.#valueStart
    const isText = this.#firstByte === QUOTE
    const unread = this.#shape?.kind === 'size' ? new Sized(isText ? bytes - 2 : bytes, isText) : UNREAD
    if (text === null) return unread
    if (this.#shape?.kind === 'value') this.#copiedBytes += bytes
    if (isText) return parseString(text) ?? unread
    if (text === 'true' || text === 'false') return text === 'true'
    if (this.#firstByte !== OPEN_BRACE && this.#firstByte !== OPEN_BRACKET) return Number(text)
    this.#steps += text.length
    for (const name of ambiguousNames(text)) this.#nestedDuplicates.add(name)
    return JSON.parse(text)
  }

  #put(frame: Frame, value: unknown, start: number, end: number): void {
    if (frame.list !== null) {
      this.#listed++
      this.#marks |= frame.marksBefore
      if (this.#listed <= SKIM_LIMITS.listedMax) frame.list.push(value)
    } else if (frame.object === null) {
      this.#onElement?.({ value, bytes: end - frame.elementStart, marks: this.#marks })
      this.#marks |= frame.marksBefore
      this.#copiedBytes = frame.copiedBytesBefore
    } else if (frame.member !== null) {
      frame.object[frame.member.name] = value
      if (frame.outer === null) this.#spans.set(frame.member.name, { start, end })
    }
  }

  /** Reads a string whose opening quote is at `i`. Nearly all are short and complete in the chunk. */
  #startString(bytes: Buffer, i: number, isName: boolean): number {
    const isRead = isName && this.#depth === this.#level
    const stop = endOfShort(bytes, i)
    if (stop >= 0) {
      this.#steps += stop - i
      if (isRead) this.#marksBefore = this.#marks
      this.#marks |= markOf(bytes, i + 1, stop)
      if (!isName) this.#endValue(bytes, stop + 1)
      else if (isRead) this.#endName(bytes, i + 1, stop)
      else this.#state = BEFORE_COLON
      return stop + 1
    }
    this.#mark.open(this.#offset + i, MARK_BYTES_MAX + 2)
    if (isRead) this.#captured.open(this.#offset + i + 1, SKIM_LIMITS.nameBytesMax)
    this.#string.open(isRead || (this.#captured.isOpen && this.#shape?.kind === 'value'))
    this.#state = isName ? IN_NAME : IN_STRING
    return i + 1
  }

  #readString(bytes: Buffer, i: number): number {
    const at = this.#string.read(bytes, i)
    if (at < 0) return this.#fail('not_json')
    if (at === bytes.length) return at
    if (this.#state === IN_NAME && this.#depth === this.#level) this.#marksBefore = this.#marks
    const written = this.#mark.take(bytes, this.#offset, at + 1)
    if (written !== null) this.#marks |= markIn(written)
    if (this.#state === IN_STRING) {
      this.#endValue(bytes, at + 1)
      return at + 1
    }
    this.#state = BEFORE_COLON
    if (this.#depth !== this.#level) return at + 1
    const name = this.#captured.take(bytes, this.#offset, at)
    if (name === null) return this.#fail('name_too_long')
    this.#endName(name, 0, name.length)
    return at + 1
  }

  /** Handles the name of a member of the innermost frame, between `from` and `to`. */
  #endName(bytes: Buffer, from: number, to: number): void {
    const frame = this.#frame as Frame
    this.#state = BEFORE_COLON
    this.#steps += to - from
    frame.member = null
    const found = this.#findName(frame, bytes, from, to)
    if (found === AMBIGUOUS) this.#fail('ambiguous_name')
    else if (found !== null && frame.object !== null && Object.hasOwn(frame.object, found.name))
      this.#duplicates.add(found.name)
    else frame.member = found
  }

  #findName({ shape: { names } }: Frame, bytes: Buffer, from: number, to: number) {
    if (names === null) return null
    const found = names.find(bytes, from, to)
    if (found !== UNDECODED) return found
    if (++this.#undecodedNames > SKIM_LIMITS.undecodedNamesMax) return AMBIGUOUS
    return names.findText(JSON.parse(`"${bytes.toString('utf8', from, to)}"`) as string)
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
    this.#frame = null
    this.#captured.drop()
    this.#mark.drop()
    return 0
  }
}

/** The mark of a quoted string, with escapes decoded. */
function markIn(written: Buffer): number {
  const text = parseString(written.toString())
  const bytes = Buffer.from(text ?? '')
  return markOf(bytes, 0, bytes.length)
}

export function skimWhole(text: Buffer, shape: Shape, depthMax?: number): Skimmed {
  const skim = new JsonSkim(shape, null, depthMax)
  skim.write(text)
  return skim.end()
}
